//! Writes the metrics of admission.

use pintle_admission::Measures;
use pintle_measure::{Distribution, Series};
use pintle_registry::Registry;
use pintle_registry::admission::Operation;
use pintle_registry::measures::{Phase, PhaseDurations};

use super::families as f;
use super::family::{Family, Page};
use super::{counters, distributions};

/// Writes all metrics of admission.
pub(super) fn write(registry: &Registry, measures: &Measures, page: &mut Page) {
    let steps = [(None, &registry.admission_phases)];
    write_phases(&f::ADMISSION_STEPS, steps, page);
    let plugins = measures.plugins().map(|(name, durations)| (Some(name), durations));
    write_phases(&f::PLUGINS, plugins, page);
    distributions(page, &f::WEBHOOK_DURATION, &measures.calls);
    counters(page, &f::WEBHOOK_REQUESTS, &measures.answers);
    counters(page, &f::WEBHOOK_REJECTIONS, &measures.rejections);
    counters(page, &f::WEBHOOK_FAIL_OPEN, &measures.failed_open);
    distributions(page, &f::CONDITION_SECONDS, &measures.conditions);
    counters(page, &f::CONDITION_ERRORS, &measures.condition_errors);
    counters(page, &f::CONDITION_EXCLUSIONS, &measures.exclusions);
    distributions(page, &f::VALIDATING_POLICY_DURATION, &measures.validations);
    counts(page, &f::VALIDATING_POLICY_CHECKS, &measures.validations);
    distributions(page, &f::MUTATING_POLICY_DURATION, &measures.mutations);
    counts(page, &f::MUTATING_POLICY_CHECKS, &measures.mutations);
    let pod_security = &measures.pod_security;
    counters(page, &f::POD_SECURITY_EVALUATIONS, &pod_security.evaluations);
    counters(page, &f::POD_SECURITY_EXEMPTIONS, &pod_security.exemptions);
    counters(page, &f::POD_SECURITY_ERRORS, &pod_security.errors);
}

/// Writes the number of values of each distribution.
fn counts<const N: usize>(
    page: &mut Page,
    family: &'static Family,
    series: &Series<N, Distribution>,
) {
    let mut samples = page.family(family);
    for (labels, distribution) in series.all() {
        let labels = labels.each_ref().map(|label| &**label);
        samples.value(&labels, distribution.observed().count());
    }
}

/// Writes durations of the phases of admission. The plugin's name, if there is one, comes before
/// the other labels.
fn write_phases<'a>(
    family: &'static Family,
    all: impl IntoIterator<Item = (Option<&'a str>, &'a PhaseDurations)>,
    page: &mut Page,
) {
    let mut samples = page.family(family);
    for (name, durations) in all {
        for operation in Operation::ALL {
            for (rejected, label) in [(false, "false"), (true, "true")] {
                for phase in Phase::ALL {
                    let Some(observed) = durations.observed(phase, operation, rejected) else {
                        continue;
                    };
                    let labels = [operation.name(), label, phase.name()];
                    let labels: Vec<&str> = name.into_iter().chain(labels).collect();
                    samples.distribution(&labels, &observed);
                }
            }
        }
    }
}

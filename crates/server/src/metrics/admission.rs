//! What became of writes in admission.

use pintle_admission::Measures;
use pintle_measure::{Distribution, Series};
use pintle_registry::Registry;
use pintle_registry::admission::Operation;
use pintle_registry::measures::Phase;

use super::families as f;
use super::family::{Family, Page};
use super::{counters, distributions};

/// Writes all of this.
pub(super) fn write(registry: &Registry, measures: &Measures, page: &mut Page) {
    write_steps(registry, page);
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
}

/// Writes how many values each distribution has.
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

fn write_steps(registry: &Registry, page: &mut Page) {
    let mut samples = page.family(&f::ADMISSION_STEPS);
    for operation in Operation::ALL {
        for (rejected, said) in [(false, "false"), (true, "true")] {
            for phase in Phase::ALL {
                let observed = registry.admission_phases.of(phase, operation, rejected).observed();
                if observed.count() > 0 {
                    samples.distribution(&[operation.name(), said, phase.name()], &observed);
                }
            }
        }
    }
}

//! `coordination.k8s.io`: leases.

use pintle_meta::names;
use pintle_registry::NameRule;
use pintle_value::{Map, Value};

use crate::{
    checks::{frozen, unchanged},
    conversion::renamed,
    field::{Errors, Field},
    formats::config_key,
    kind::{Kind, kind},
    rules::{
        Rule::{At, Do, NotNegative, Required},
        Rules, errors,
    },
    strategy::{AS_UPDATE, MetadataChecks, PLAIN, Strategy},
};

const COORDINATION: &str = "coordination.k8s.io";

pub(crate) const KINDS: &[Kind] = &[
    kind(COORDINATION, "leases", LEASE),
    Kind {
        conversions: &[renamed!(
            "v1alpha2",
            "coordination.k8s.io/v1alpha2" => "coordination.k8s.io/v1beta1"
        )],
        ..kind(COORDINATION, "leasecandidates", CANDIDATE)
    },
];

const CANDIDATE: Strategy = Strategy {
    metadata: AS_UPDATE,
    name: NameRule::Custom(|name, _prefix| config_key(name)),
    create_on_update: true,
    unconditional_update: false,
    validate: |new, old| {
        let mut wrong = errors(new, CANDIDATE_RULES);
        wrong.extend(unchanged(new, old, &[frozen(&["spec", "leaseName"])]));
        wrong
    },
    ..PLAIN
};

const LEASE: Strategy = Strategy {
    metadata: MetadataChecks { qualified_finalizers: false, ..AS_UPDATE },
    create_on_update: true,
    unconditional_update: false,
    // CoordinatedLeaderElection is off.
    prepare_create: |lease| drop_coordination(lease, None),
    prepare_update: |new, old| {
        let stored = old.get("spec").and_then(Value::as_object).cloned();
        drop_coordination(new, stored.as_ref());
    },
    validate: |new, _| errors(new, LEASE_RULES),
    ..PLAIN
};

const LEASE_RULES: Rules = &[At(
    "spec",
    &[
        Do(|spec, errors| {
            let duration = spec.get("leaseDurationSeconds");
            if duration.int().is_some_and(|seconds| seconds <= 0) {
                errors.push(duration.invalid("must be greater than 0"));
            }
        }),
        NotNegative("leaseTransitions"),
        Do(|spec, errors| {
            let strategy = spec.get("strategy");
            if strategy.is_set() {
                check_strategy(&strategy, errors);
            }
            let holder = spec.get("preferredHolder");
            if !holder.is_empty() && strategy.is_empty() {
                let words = "may only be specified if `strategy` is defined";
                errors.push(holder.forbidden(words));
            }
        }),
    ],
)];

const OLDEST: &str = "OldestEmulationVersion";

const CANDIDATE_RULES: Rules = &[At(
    "spec",
    &[
        Required("leaseName"),
        Do(check_versions),
        Do(|spec, errors| {
            let strategy = spec.get("strategy");
            if strategy.is_empty() {
                return errors.push(strategy.required(""));
            }
            let emulated = spec.get("emulationVersion");
            if strategy.text() == OLDEST && version(emulated.text()).is_none_or(|v| v == [0; 3]) {
                let words = "must be specified when `strategy` is 'OldestEmulationVersion'";
                errors.push(emulated.required(words));
            }
            check_strategy(&strategy, errors);
        }),
    ],
)];

/// Checks that a candidate's binary version is not older than its emulation version.
fn check_versions(spec: &Field<'_>, errors: &mut Errors) {
    const WORDS: &str = "must be a valid semantic version";
    let (emulated, binary) = (spec.get("emulationVersion"), spec.get("binaryVersion"));
    let acts_as = version(emulated.text());
    if !emulated.is_empty() && acts_as.is_none() {
        errors.push(emulated.invalid(WORDS));
    }
    let is = version(binary.text());
    if binary.is_empty() {
        return errors.push(binary.required(""));
    }
    if is.is_none() {
        errors.push(binary.invalid(WORDS));
    }
    if !emulated.is_empty() && is.unwrap_or_default() < acts_as.unwrap_or_default() {
        errors.push(binary.invalid("must be greater than or equal to `emulationVersion`"));
    }
}

/// The three numbers of a semantic version, whose suffix is ignored.
fn version(text: &str) -> Option<[u64; 3]> {
    let numbers = text.split(['-', '+']).next()?;
    let mut parts = numbers.split('.').map(|part| {
        let is_plain = part == "0" || !part.starts_with('0');
        let is_number = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        (is_plain && is_number).then(|| part.parse().ok()).flatten()
    });
    let version = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(version)
}

/// Checks a strategy. Upstream's path contains `strategy` twice.
fn check_strategy(strategy: &Field<'_>, errors: &mut Errors) {
    let named = strategy.under("strategy");
    let text = strategy.text();
    if text.contains('/') {
        named.all_invalid(names::qualified_name(text), errors);
    } else if text != OLDEST {
        errors.push(named.not_supported(&[OLDEST]));
    }
}

fn drop_coordination(lease: &mut Value, stored: Option<&Map>) {
    if let Some(Value::Object(spec)) = lease.get_mut("spec") {
        let used = |member: &str| stored.is_some_and(|stored| stored.contains_key(member));
        spec.retain(|member, _| {
            !matches!(member.as_str(), "strategy" | "preferredHolder") || used(member)
        });
    }
}

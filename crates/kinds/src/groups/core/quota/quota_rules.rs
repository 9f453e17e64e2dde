//! The rules for ResourceQuotas: resources that can be limited, and scopes.

use std::cell::LazyCell;
use std::collections::BTreeSet;

use pintle_meta::field::Error;
use pintle_value::Value;

use crate::{
    amounts,
    checks::{IMMUTABLE, items, path},
    field::{Errors, Field},
};

/// Scopes that exclude each other.
const OPPOSITES: [[&str; 2]; 2] =
    [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];

/// The warnings about a new quota: no pod can use all of a request that is above the limit.
pub(super) fn warnings(quota: &Value) -> Vec<String> {
    const NAMES: [&str; 4] = ["cpu", "memory", "storage", "ephemeral-storage"];
    let quota = Field::root(quota);
    let hard = quota.at(&["spec", "hard"]);
    let amount = |name: &str| amounts::parse(&hard.get(name)).map(|it| (name.to_owned(), it));
    let warning = |name: &&str| {
        let bare = || amount(name).filter(|_| matches!(*name, "cpu" | "memory"));
        let (request, requested) = amount(&format!("requests.{name}")).or_else(bare)?;
        let (limit, limited) = amount(&format!("limits.{name}"))?;
        (requested > limited).then(|| {
            format!("ResourceQuota {request} ({requested}) should be less than {limit} ({limited})")
        })
    };
    NAMES.iter().filter_map(warning).collect()
}

/// Validates a quota; `old` is the stored one.
pub(super) fn validate(new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = Errors::new();
    let quota = Field::root(new);
    let spec = quota.get("spec");
    check_list(&spec.get("hard"), &mut errors);
    check_scopes(&spec, &mut errors);
    if spec.has("scopeSelector") {
        check_selector(&spec, &mut errors);
    }
    if let Some(old) = old {
        let scopes = |quota: &Value| -> BTreeSet<String> {
            let scopes = items(quota, &["spec", "scopes"]).iter();
            scopes.filter_map(|scope| Some(scope.as_str()?.to_owned())).collect()
        };
        if scopes(new) != scopes(old) {
            errors.push(spec.get("scopes").invalid(IMMUTABLE));
        }
    }
    errors
}

/// Validates a quota's status.
pub(super) fn validate_status(quota: &Value) -> Errors {
    let mut errors = Errors::new();
    let quota = Field::root(quota);
    let status = quota.get("status");
    check_list(&status.get("hard"), &mut errors);
    check_list(&status.get("used"), &mut errors);
    errors
}

fn check_list(list: &Field<'_>, errors: &mut Errors) {
    for (name, field) in list.pairs() {
        amounts::quota_name(&field, name, errors);
        amounts::amount(&field, name, errors);
    }
}

/// For each scope, the number of the quota's standard resources that the scope cannot limit.
struct Beyond([usize; SCOPES.len()]);

impl Beyond {
    fn of(spec: &Field<'_>) -> Self {
        let known = || spec.map("hard").keys().filter(|name| amounts::is_quota_name(name));
        Self(SCOPES.map(|scope| known().filter(|name| !is_within(scope, name)).count()))
    }

    fn count(&self, scope: &str) -> usize {
        let known = SCOPES.iter().position(|known| *known == scope);
        known.map_or(0, |i| self.0[i])
    }
}

/// Whether a scope can limit the resource of this name.
fn is_within(scope: &str, name: &str) -> bool {
    match scope {
        "BestEffort" => name == "pods",
        "VolumeAttributesClass" => matches!(name, "persistentvolumeclaims" | "requests.storage"),
        _ => name == "pods" || amounts::is_scoped(name),
    }
}

fn check_scopes(spec: &Field<'_>, errors: &mut Errors) {
    let scopes = spec.get("scopes");
    let beyond = Beyond::of(spec);
    // Each error shows all scopes, so its text is made once.
    let unsupported = LazyCell::new(|| scopes.invalid("unsupported scope"));
    let misapplied = LazyCell::new(|| scopes.invalid("unsupported scope applied to resource"));
    for scope in spec.items("scopes") {
        if errors.is_full() {
            break;
        }
        if !SCOPES.contains(&scope.text()) {
            errors.push(unsupported.clone());
        }
        errors.extend((0..beyond.count(scope.text())).map(|_| misapplied.clone()));
    }
    let has = |wanted: &str| spec.items("scopes").any(|scope| scope.text() == wanted);
    for _ in OPPOSITES.iter().filter(|pair| pair.iter().all(|scope| has(scope))) {
        errors.push(scopes.invalid("conflicting scopes"));
    }
}

/// Upstream's paths do not have the index of the expression.
fn check_selector(spec: &Field<'_>, errors: &mut Errors) {
    let selector = spec.get("scopeSelector");
    let at = path(&["spec", "scopeSelector", "matchExpressions"]);
    let wrong =
        |member: &str, value: &Value, words: &str| Error::invalid(&at.field(member), value, words);
    let beyond = Beyond::of(spec);
    // Each such error shows the whole selector, so its text is made once.
    let misapplied = LazyCell::new(|| {
        Error::invalid(&at, selector.value(), "unsupported scope applied to resource")
    });
    for expression in selector.items("matchExpressions") {
        if errors.is_full() {
            break;
        }
        let scope = expression.str("scopeName");
        if !SCOPES.contains(&scope) {
            errors.push(wrong("scopeName", &scope.into(), "unsupported scope"));
        }
        errors.extend((0..beyond.count(scope)).map(|_| misapplied.clone()));
        let operator = expression.str("operator");
        let is_plain = !matches!(scope, "PriorityClass" | "VolumeAttributesClass");
        if is_plain && SCOPES.contains(&scope) && operator != "Exists" {
            let words = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                         ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                         ResourceQuotaScopeNotBestEffort or \
                         ResourceQuotaScopeCrossNamespacePodAffinity";
            errors.push(wrong("operator", &operator.into(), words));
        }
        let values = expression.get("values");
        match (operator, values.is_empty()) {
            ("In" | "NotIn", true) => {
                let words = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                errors.push(Error::required(&at.field("values"), words));
            }
            ("Exists" | "DoesNotExist", false) => {
                let words = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                errors.push(wrong("values", values.value(), words));
            }
            ("In" | "NotIn", false) | ("Exists" | "DoesNotExist", true) => {}
            _ => {
                errors.push(wrong("operator", &operator.into(), "not a valid selector operator"));
            }
        }
    }
    let has =
        |wanted: &str| selector.items("matchExpressions").any(|one| one.str("scopeName") == wanted);
    let scopes = spec.get("scopes");
    for _ in OPPOSITES.iter().filter(|pair| pair.iter().all(|scope| has(scope))) {
        errors.push(Error::invalid(&at, scopes.value(), "conflicting scopes"));
    }
}

//! `storagemigration.k8s.io`: off by default.

use pintle_meta::field::Error;
use pintle_meta::names;
use pintle_value::{Path, Value};

use crate::{
    checks::{frozen, items, unchanged},
    conditions,
    field::{Errors, Field},
    kind::{Kind, kind},
    rules::{
        Rule::{Do, Needed},
        Rules, check, errors,
    },
    strategy::{Part, STATUS_ALONE, Strategy, WITH_STATUS, part},
};

pub(crate) const KINDS: &[Kind] =
    &[kind("storagemigration.k8s.io", "storageversionmigrations", MIGRATION)];

const MIGRATION: Strategy = Strategy {
    owned: STATUS_ALONE,
    unconditional_update: false,
    validate: |new, old| {
        let mut wrong = errors(new, RULES);
        wrong.extend(unchanged(new, old, &[frozen(&["spec"])]));
        wrong
    },
    parts: &[Part { validate: check_status, ..part("status") }],
    ..WITH_STATUS
};

/// The group may be empty, because the core group has no name.
const RULES: Rules = &[Do(|migration, errors| {
    let resource = migration.at(&["spec", "resource"]);
    check(&resource, &[Needed("resource", "resource is required to be set")], errors);
    for (member, rule) in [
        ("resource", names::dns1035_label as fn(&str) -> Vec<String>),
        ("group", names::dns1123_subdomain),
    ] {
        let field = resource.get(member);
        if !field.is_empty() {
            field.all_invalid(rule(field.text()), errors);
        }
    }
})];

/// Checks a status: its resource version is immutable once it is set, and a migration that has
/// succeeded or failed stays so.
fn check_status(new: &Value, old: &Value) -> Errors {
    let mut errors = Errors::new();
    let migration = Field::root(new);
    let status = migration.get("status");
    let version = status.get("resourceVersion");
    let is_well_formed =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    if !version.is_empty() && !is_well_formed(version.text()) {
        let words = format!("resource version is not well formed: {}", version.text());
        errors.push(version.invalid(words));
    }
    conditions::check(&status, &mut errors);
    let stored = old.str_at(&["status", "resourceVersion"]).unwrap_or_default();
    if !stored.is_empty() && stored != version.text() {
        errors.push(version.invalid("field is immutable"));
    }
    let is = |object: &Value, kind: &str| {
        items(object, &["status", "conditions"]).iter().any(|condition| {
            condition.str_at(&["type"]) == Some(kind)
                && condition.str_at(&["status"]) == Some("True")
        })
    };
    let [succeeded, failed] = ["Succeeded", "Failed"].map(|kind| is(new, kind));
    for (is_wrong, words) in [
        (succeeded && failed, "Both success and failed conditions cannot be true at the same time"),
        (
            is(old, "Succeeded") && !succeeded,
            "Success condition cannot be set to false once it is true",
        ),
        (is(old, "Failed") && !failed, "Failed condition cannot be set to false once it is true"),
    ] {
        if is_wrong {
            let path = Path::new("status").field("conditions");
            let value = new.at(&["status", "conditions"]).cloned().unwrap_or_default();
            errors.push(Error::invalid(&path, &value, words));
        }
    }
    errors
}

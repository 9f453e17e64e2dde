//! Histories of roles and bindings, with upstream's answers over the same objects.

use std::{env, fs};

use pintle_value::json;

use super::*;
use crate::Objects;

/// Upstream is kubernetes v1.36.3: `plugin/pkg/auth/authorizer/rbac` (`ask`), and of
/// `pkg/registry/rbac/validation` the resolver (`resolve`) and `ConfirmNoEscalation` (`grant`).
/// Where several bindings allow a request, `reasons` has one reason for each, because upstream's
/// lister has no order.
const CASES: &str = include_str!("cases.jsonl");

fn tree(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.str_at(&[member]).unwrap_or_default()
}

fn texts(value: &Value, member: &str) -> Vec<String> {
    let items = value.get(member).and_then(Value::as_array).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn user(asked: &Value) -> User {
    let (name, groups) = (text(asked, "user").to_owned(), texts(asked, "groups"));
    User { name, groups, ..User::default() }
}

/// The errors of an aggregate, sorted.
fn errors(aggregate: &str) -> Vec<String> {
    let inner = aggregate.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let mut errors: Vec<String> =
        inner.unwrap_or(aggregate).split(", ").map(str::to_owned).collect();
    errors.retain(|error| !error.is_empty());
    errors.sort_unstable();
    errors
}

fn ask(policy: &Policy, asked: &Value, line: &str) {
    let user = user(asked);
    let subject = match asked.str_at(&["path"]) {
        Some(path) => Subject::Path(path),
        None => Subject::Resource(Objects {
            group: text(asked, "group"),
            resource: text(asked, "resource"),
            subresource: text(asked, "subresource"),
            namespace: text(asked, "namespace"),
            name: text(asked, "name"),
            ..Objects::default()
        }),
    };
    let ruling = policy.authorize(&Attributes { user: &user, verb: text(asked, "verb"), subject });
    let reason = ruling.reason.to_string();
    let expected = asked.get("allow") == Some(&Value::Bool(true));
    assert_eq!(ruling.decision == Decision::Allow, expected, "{line}");
    if expected {
        let reason = reason.strip_prefix("RBAC: allowed by ").map(|_| reason.as_str());
        let reason = reason.unwrap_or_else(|| panic!("{reason:?}: {line}"));
        assert!(texts(asked, "reasons").iter().any(|one| one == reason), "{reason}: {line}");
    } else {
        let found = errors(reason.strip_prefix("RBAC: ").unwrap_or_default());
        assert_eq!(found, texts(asked, "reasons"), "{line}");
    }
}

fn resolve(policy: &Policy, asked: &Value, line: &str) {
    let (rules, error) = policy.rules_for(&user(asked), text(asked, "namespace"));
    let sorted = |rules: &[Rule]| {
        let mut shown: Vec<String> = rules.iter().map(|rule| format!("{rule:?}")).collect();
        shown.sort_unstable();
        shown
    };
    assert_eq!(sorted(&rules.concat()), sorted(&Rule::all_of(asked)), "{line}");
    assert_eq!(errors(&error), texts(asked, "reasons"), "{line}");
}

fn grant(policy: &Policy, asked: &Value, line: &str) {
    let (owned, _) = policy.rules_for(&user(asked), text(asked, "namespace"));
    let missing = missing_rights(owned.iter().flat_map(|role| role.iter()), &Rule::all_of(asked));
    assert_eq!(missing.is_empty(), asked.get("allow") == Some(&Value::Bool(true)), "{line}");
    assert_eq!(missing.rights.into_iter().collect::<Vec<_>>(), texts(asked, "reasons"), "{line}");
}

fn replay(cases: &str) {
    let mut policy = Policy::default();
    for (at, line) in cases.lines().enumerate() {
        let step = tree(line);
        let line = format!("line {}: {line}", at + 1);
        let (namespace, name) = (text(&step, "namespace"), text(&step, "name"));
        let kind = |member| Kind::of_resource(GROUP, text(&step, member)).expect("a kind of RBAC");
        if let Some(asked) = step.get("ask") {
            ask(&policy, asked, &line);
        } else if let Some(asked) = step.get("resolve") {
            resolve(&policy, asked, &line);
        } else if let Some(asked) = step.get("grant") {
            grant(&policy, asked, &line);
        } else if let Some(object) = step.get("object") {
            policy.set(kind("set"), namespace, name, object);
        } else {
            policy.remove(kind("remove"), namespace, name);
        }
    }
}

#[test]
fn users_may_what_upstream_lets_them() {
    replay(CASES);
}

/// The same with a larger history, from the file that `PINTLE_RBAC_CASES` names.
#[test]
fn users_may_what_upstream_lets_them_in_a_given_history() {
    if let Ok(path) = env::var("PINTLE_RBAC_CASES") {
        replay(&fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}")));
    }
}

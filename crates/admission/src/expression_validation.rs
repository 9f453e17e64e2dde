//! Validates the CEL expressions of policies and webhooks when they are created or changed
//! (VAP-02). An update is not refused for its expressions if it leaves the member that has them
//! unchanged: `spec` or `webhooks`.

use pintle_meta::field::{Error, Errors};
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks};
use pintle_value::Value;

use crate::policies::{GROUP, MutatingPolicy, ValidatingPolicy};
use crate::webhooks;

/// Reports expressions that do not compile. This is a part of validation, not a plugin.
pub struct ExpressionValidation;

/// Returns the errors of an object's expressions.
type Problems = fn(&Value) -> Errors;

/// The resources with expressions, the member that has the expressions, and the check.
const KINDS: [(&str, &str, Problems); 4] = [
    ("mutatingadmissionpolicies", "spec", |policy| MutatingPolicy::read(policy).problems()),
    ("mutatingwebhookconfigurations", "webhooks", webhooks::problems),
    ("validatingadmissionpolicies", "spec", |policy| ValidatingPolicy::read(policy).problems()),
    ("validatingwebhookconfigurations", "webhooks", webhooks::problems),
];

/// Lists with expressions in upstream's order of validation, each with the members of its items in
/// that order. Errors of other members come before all lists, except for those in [`LAST`].
const LISTS: &[(&str, &[&str])] = &[
    ("matchConditions", &["expression", "name"]),
    ("variables", &["name", "expression"]),
    ("mutations", &["applyConfiguration", "jsonPatch"]),
    ("validations", &["expression", "messageExpression", "message", "reason"]),
    ("auditAnnotations", &["key", "valueExpression"]),
];

/// Members that upstream validates after the lists.
const LAST: &[&str] = &["reinvocationPolicy", "admissionReviewVersions"];

impl Admission for ExpressionValidation {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::ValidateFields])
    }

    fn validate_fields(&self, write: &Attributes<'_>, errors: &mut Errors) {
        let of = &write.resource.resource;
        if of.group != GROUP || !write.subresource.is_empty() {
            return;
        }
        let known = KINDS.iter().find(|(resource, ..)| *resource == of.resource);
        let (Some((_, member, problems)), Some(new)) = (known, write.object) else { return };
        if write.old().is_some_and(|old| old.get(member) == new.get(member)) {
            return;
        }
        add(errors, problems(new));
    }
}

/// Adds the errors of expressions to the errors of other members, in upstream's order.
fn add(errors: &mut Errors, problems: Errors) {
    // A path may be long, so each is read once.
    let mut positions: Vec<_> = errors.iter().map(position_of).collect();
    for problem in problems {
        if !errors.iter().any(|error| hides(error, &problem)) {
            let position = position_of(&problem);
            let before = positions.iter().rposition(|other| *other <= position);
            let at = before.map_or(0, |before| before + 1);
            errors.insert(at, problem);
            positions.insert(at, position);
        }
        if errors.is_full() {
            return;
        }
    }
}

/// Whether upstream does not check an expression because of another error: the error is about the
/// expression itself (it is missing), about a member that contains it, or about the patch type of
/// its mutation.
fn hides(error: &Error, problem: &Error) -> bool {
    let mutation = || error.field.strip_suffix(".patchType");
    let below = problem.field.strip_prefix(error.field.as_str());
    below.is_some_and(|below| below.is_empty() || below.starts_with('.'))
        || mutation().is_some_and(|mutation| problem.field.starts_with(mutation))
}

/// The position of an error in upstream's order: webhook, list, item, member.
fn position_of(error: &Error) -> [usize; 4] {
    let mut position = [0; 4];
    let mut list = None;
    for step in error.field.split('.') {
        let (name, index) = step.split_once('[').unwrap_or((step, ""));
        let index = index.trim_end_matches(']').parse().map_or(0, |index: usize| index + 1);
        if name == "webhooks" {
            position[0] = index;
        } else if LAST.contains(&name) {
            position[1] = LISTS.len() + 1;
        } else if let Some(found) = list {
            let members: &[&str] = found;
            position[3] = members.iter().position(|member| *member == name).map_or(0, |at| at + 1);
            break;
        } else if let Some(at) = LISTS.iter().position(|(list, _)| *list == name) {
            list = Some(LISTS[at].1);
            (position[1], position[2]) = (at + 1, index);
        }
    }
    position
}

#[cfg(test)]
mod tests {
    use pintle_value::Path;

    use super::*;

    /// 1,000 errors with paths of 3 KB and 1,000 errors of expressions are 3 GB of paths.
    #[test]
    fn errors_of_expressions_are_in_order_and_each_path_is_read_once() {
        let (long, why) = ("a.".repeat(1500), "");
        let label = |n: usize| Path::new("metadata").field("labels").key(&format!("{long}{n}"));
        let expression =
            |n: usize| Path::new("spec").field("validations").index(n).field("expression");
        let invalid = |path: &Path| Error::invalid(path, &Value::Null, why);
        let mut errors: Errors = (0..500).map(|n| invalid(&label(n))).collect();
        errors.push(invalid(&expression(7)));
        add(&mut errors, (0..1000).map(|n| invalid(&expression(n))).collect());
        assert!(errors.is_full());
        let at = |field: &str| errors.iter().position(|error| error.field == field);
        assert_eq!(at("spec.validations[0].expression"), Some(500));
        assert_eq!(at("spec.validations[7].expression"), Some(507));
        assert_eq!(at("spec.validations[8].expression"), Some(508));
    }
}

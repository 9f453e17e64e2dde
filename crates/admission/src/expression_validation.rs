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
        for problem in problems(new) {
            if !errors.iter().any(|error| hides(error, &problem)) {
                let before =
                    errors.iter().rposition(|error| position_of(error) <= position_of(&problem));
                errors.insert(before.map_or(0, |before| before + 1), problem);
            }
        }
    }
}

/// True if upstream does not check an expression because of another error: the error is about the
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

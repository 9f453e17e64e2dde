//! Whether the expressions of policies and webhooks make sense, looked at when they are written (VAP-02).
//! What was let in once may stay.

use pintle_meta::field::{Error, Errors};
use pintle_registry::admission::{Admission, Attributes};
use pintle_value::Value;

use crate::policies::{GROUP, MutatingPolicy, ValidatingPolicy};
use crate::webhooks;

/// Tells of expressions that make no sense. It is part of what is valid, and no plugin.
pub struct Sense;

/// What is wrong with the expressions of an object, by its resource.
type Problems = fn(&Value) -> Errors;

/// The resources with expressions, where these are, and what is wrong with them.
const KINDS: [(&str, &str, Problems); 4] = [
    ("mutatingadmissionpolicies", "spec", |policy| MutatingPolicy::read(policy).problems()),
    ("mutatingwebhookconfigurations", "webhooks", webhooks::problems),
    ("validatingadmissionpolicies", "spec", |policy| ValidatingPolicy::read(policy).problems()),
    ("validatingwebhookconfigurations", "webhooks", webhooks::problems),
];

/// Lists with expressions, in the order in which upstream looks at them, with the members of their items in
/// that order. What is in none of them comes before all, but for [`LAST`].
const LISTS: &[(&str, &[&str])] = &[
    ("matchConditions", &["expression", "name"]),
    ("variables", &["name", "expression"]),
    ("mutations", &["applyConfiguration", "jsonPatch"]),
    ("validations", &["expression", "messageExpression", "message", "reason"]),
    ("auditAnnotations", &["key", "valueExpression"]),
];

/// What upstream looks at after the lists.
const LAST: &[&str] = &["reinvocationPolicy", "admissionReviewVersions"];

impl Admission for Sense {
    fn validate_fields(&self, write: &Attributes<'_>, errors: &mut Errors) {
        let of = &write.resource.resource;
        if of.group != GROUP || !write.subresource.is_empty() {
            return;
        }
        let known = KINDS.iter().find(|(resource, ..)| *resource == of.resource);
        let (Some((_, member, problems)), Some(new)) = (known, write.object) else { return };
        if write.old.is_some_and(|old| old.get(member) == new.get(member)) {
            return;
        }
        for problem in problems(new) {
            if !errors.iter().any(|error| makes_moot(error, &problem)) {
                let at =
                    errors.iter().rposition(|error| position_of(error) <= position_of(&problem));
                errors.insert(at.map_or(0, |at| at + 1), problem);
            }
        }
    }
}

/// Whether an expression is not looked at, because of another error: it is not there, or it is none of the
/// sort that its mutation says.
fn makes_moot(error: &Error, problem: &Error) -> bool {
    let mutation = || error.field.strip_suffix(".patchType");
    let below = problem.field.strip_prefix(error.field.as_str());
    below.is_some_and(|below| below.is_empty() || below.starts_with('.'))
        || mutation().is_some_and(|mutation| problem.field.starts_with(mutation))
}

/// Where upstream tells of an error: the webhook, the list, the item and its member.
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

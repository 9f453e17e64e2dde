//! Whether the expressions of policies and webhooks make sense, looked at when they are written (VAP-02).
//! What was let in once may stay.

use pintle_meta::{Status, field};
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Operation};
use pintle_value::Value;

use crate::policies::{GROUP, MutatingPolicy, ValidatingPolicy};
use crate::webhooks;

/// Refuses expressions that make no sense. It is part of what is valid, and no plugin.
pub struct Sense;

/// What is wrong with the expressions of an object, by its resource.
type Problems = fn(&Value) -> field::Errors;

/// The resources with expressions, where these are, and what is wrong with them.
const KINDS: [(&str, &str, Problems); 4] = [
    ("mutatingadmissionpolicies", "spec", |policy| MutatingPolicy::read(policy).problems()),
    ("mutatingwebhookconfigurations", "webhooks", webhooks::problems),
    ("validatingadmissionpolicies", "spec", |policy| ValidatingPolicy::read(policy).problems()),
    ("validatingwebhookconfigurations", "webhooks", webhooks::problems),
];

impl Admission for Sense {
    fn judge(&self, write: &Attributes<'_>, _: &Registry) -> Result<Vec<String>, Status> {
        let of = &write.resource.resource;
        if of.group != GROUP || write.operation == Operation::Delete {
            return Ok(Vec::new());
        }
        let known = KINDS.iter().find(|(resource, ..)| *resource == of.resource);
        let (Some((_, place, problems)), Some(new)) = (known, write.object) else {
            return Ok(Vec::new());
        };
        let problems = match write.old {
            Some(old) if old.get(place) == new.get(place) => field::Errors::new(),
            _ => problems(new),
        };
        match problems.is_empty() {
            true => Ok(Vec::new()),
            false => Err(Status::invalid(&write.resource.group_kind(), write.name, &problems)),
        }
    }
}

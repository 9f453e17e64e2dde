//! Ephemeral containers may be added to an existing pod, but not changed or removed.

use std::collections::BTreeMap;

use pintle_value::{Path, Value};

use super::{check_annotation_changes, difference};
use crate::{
    field::{Errors, Field},
    pods::validation::{MIRROR, Options, check_pod},
};

/// Validates an update of the ephemeral containers.
pub(crate) fn validate_ephemeral_containers(new: &Value, old: &Value) -> Errors {
    if old.at(&["metadata", "annotations", MIRROR]).is_some() {
        let words = "static pods do not support ephemeral containers";
        // Upstream's path of the object itself is `[]`.
        return pintle_meta::field::Error::forbidden(&Path::root().key(""), words).into();
    }
    let options = Options::of_pod(old);
    let pod = Field::root(new);
    let mut errors = Errors::new();
    check_pod(&pod, options, &mut errors);
    check_annotation_changes(&pod, old, options, &mut errors);
    let spec = pod.get("spec");
    let list = spec.get("ephemeralContainers");
    let old_spec = Field::root(old);
    let old_spec = old_spec.get("spec");
    // Of several containers with the same name, the last counts.
    let requested: BTreeMap<&str, Field<'_>> =
        spec.items("ephemeralContainers").map(|one| (one.str("name"), one)).collect();
    for container in old_spec.items("ephemeralContainers") {
        let name = container.str("name");
        match requested.get(name) {
            None => {
                let words = format!("existing ephemeral containers {name:?} may not be removed\n");
                errors.push(list.forbidden(words));
            }
            Some(requested) if requested.value() != container.value() => {
                let shown =
                    difference("core.EphemeralContainer", container.value(), requested.value());
                let words =
                    format!("existing ephemeral containers {name:?} may not be changed\n{shown}");
                errors.push(list.forbidden(words));
            }
            Some(_) => {}
        }
    }
    errors
}

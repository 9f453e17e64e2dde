//! The annotation in which kubectl's client-side apply stores the last applied configuration. This
//! module lets an object move from client-side apply to server-side apply and back (SSA-38..41). It
//! only applies to the manager `kubectl`.

use pintle_value::{Value, json};

use super::fieldset::FieldSet;
use super::typed::{self, Typing, check, compare};

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

const MANAGER: &str = "kubectl";

/// The maximum size of all annotations of an object in bytes (META-19).
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

fn annotation(object: &Value) -> Option<&str> {
    object.str_at(&["metadata", "annotations", ANNOTATION]).filter(|text| !text.is_empty())
}

/// Whether the annotation is considered for an apply of `manager` to this object.
pub(super) fn is_recorded(object: &Value, manager: &str) -> bool {
    manager == MANAGER && annotation(object).is_some()
}

/// Returns the fields of the annotation's configuration whose values the live object still has;
/// `None` if the configuration is of another version or does not match the types.
pub(super) fn fields(ty: Typing<'_>, api_version: &str, live: &Value) -> Option<FieldSet> {
    let applied = json::parse(annotation(live)?.as_bytes()).ok()?;
    if applied.str_at(&["apiVersion"]) != Some(api_version) {
        return None;
    }
    let fields = check(ty, live, false).and_then(|_| check(ty, &applied, false)).ok()?;
    let change = compare(ty, &applied, live);
    let typed::Comparison { added, modified, removed, .. } = change;
    Some(fields.difference(&modified).difference(&added).difference(&removed))
}

/// Writes a configuration into the annotation, or removes the annotation if the annotations would
/// become too large.
pub(super) fn record(object: &mut Value, mut configuration: Value) {
    if annotation(object).is_none() {
        return;
    }
    let metadata = configuration.get_mut("metadata");
    if let Some(Value::Object(annotations)) = metadata.and_then(|m| m.get_mut("annotations")) {
        annotations.remove(ANNOTATION);
    }
    let text = json::to_string(&configuration) + "\n"; // as upstream's encoder ends
    let annotations = object.object_entry("metadata").entry_object("annotations");
    annotations.insert(ANNOTATION, text);
    let bytes = annotations.iter().map(|(k, v)| k.len() + v.as_str().unwrap_or_default().len());
    if bytes.sum::<usize>() > ANNOTATIONS_BYTES_MAX {
        annotations.remove(ANNOTATION);
    }
}

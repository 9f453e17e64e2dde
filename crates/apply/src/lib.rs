//! Applies patches as kube-apiserver does: JSON patch, merge patch and strategic merge patch.
//! [`server_side`] has server-side apply and the field ownership that every write updates.
//!
//! A patch is applied to an object's tree. A patch can turn an object into anything, so the caller
//! must check the result against the schema (`pintle_schema::conform`).
//!
//! Must not know: storage, requests, authorization.
//!
//! Invariants: no patch can panic or recurse without bound; a result is nested at most
//! [`pintle_value::DEPTH_MAX`] levels deep.

mod error;
mod json_patch;
mod lazy;
mod members;
mod merge_patch;
mod read;
pub mod server_side;
mod strategic_merge;
#[cfg(test)]
mod tests;

pub use error::Error;

use pintle_schema::{Schema, TypeId};
use pintle_value::Value;

/// The patch formats (UPD-05).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// RFC 6902: a list of operations.
    Json,
    /// RFC 7386: the members to change.
    Merge,
    /// Like a merge patch, but lists are merged too, as the schema says.
    StrategicMerge,
}

/// The result of applying a patch.
#[derive(Clone, Debug, PartialEq)]
pub struct Patched {
    /// The patched object, not yet checked against its schema.
    pub value: Value,
    /// Problems of the patch itself that do not prevent applying it: duplicate members, and in a
    /// JSON patch unknown ones. The caller treats them as the request's `fieldValidation` says: an
    /// error, warnings, or nothing.
    pub problems: Vec<String>,
}

/// Applies `patch`, the body of a request, to `current`, an object of the type `ty`.
pub fn apply(
    patch_type: PatchType,
    schema: &Schema,
    ty: TypeId,
    current: &Value,
    patch: &[u8],
) -> Result<Patched, Error> {
    match patch_type {
        PatchType::Json => json_patch::apply(current, patch),
        PatchType::Merge => merge_patch::apply(current, patch),
        PatchType::StrategicMerge => strategic_merge::apply(schema, ty, current, patch),
    }
}

/// The longest object with its patch of which [`shown`] leaves parts as they were written. Each level
/// that the patch looks into copies what is below it, and there may be hundreds of levels.
const AS_WRITTEN_BYTES_MAX: usize = 32 << 10;

/// Returns the text that upstream's errors show of the result of a JSON patch or a merge patch that
/// applies to the object in `current`: lists and objects that the patch left alone are written as
/// they were, in the object and in the patch, and the members of others are sorted. For long objects
/// it is the result as it would be stored.
pub fn shown(patch_type: PatchType, current: &[u8], patch: &[u8]) -> Option<String> {
    let is_short = current.len() + patch.len() <= AS_WRITTEN_BYTES_MAX;
    let result = |apply: fn(&Value, &[u8]) -> Result<Patched, Error>| {
        apply(&pintle_value::json::parse(current).ok()?, patch).ok()
    };
    let value = match patch_type {
        PatchType::Json if is_short => json_patch::shown(lazy::raw(current), patch)?,
        PatchType::Json => result(json_patch::apply)?.value,
        PatchType::Merge if is_short => merge_patch::shown(lazy::raw(current), patch),
        PatchType::Merge => result(merge_patch::apply)?.value,
        PatchType::StrategicMerge => return None,
    };
    Some(pintle_value::json::to_string(&value))
}

/// The body of a fuzz target. The input is a byte that selects the patch type, an object, a zero
/// byte and a patch. No input may panic, and the result must be bounded.
///
/// # Panics
/// Panics if an invariant does not hold.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) {
    let Some((pick, rest)) = bytes.split_first() else { return };
    let mut parts = rest.splitn(2, |byte| *byte == 0);
    let (current, patch) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let patch_type = match pick % 3 {
        0 => PatchType::Json,
        1 => PatchType::Merge,
        _ => PatchType::StrategicMerge,
    };
    let schema = pintle_schema::builtin();
    let Some(ty) = schema.find("io.k8s.api.core.v1.Pod") else { return };
    let current = pintle_value::json::parse(current).unwrap_or_default();
    if let Ok(patched) = apply(patch_type, schema, ty, &current, patch) {
        let again = pintle_value::json::to_string(&patched.value);
        assert_eq!(pintle_value::json::parse(again.as_bytes()), Ok(patched.value));
    }
}

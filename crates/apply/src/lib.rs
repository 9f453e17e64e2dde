//! Patches: JSON patch, merge patch and strategic merge patch, as kube-apiserver applies them; and
//! [`server_side`] apply with the field ownership that every write takes part in.
//!
//! A patch is applied to an object's tree; the result is a tree that has yet to be checked against
//! the schema (`pintle_schema::conform`), for a patch can make anything of an object.
//!
//! Must not know: storage, requests, who may do what.
//!
//! Invariants: no patch can panic or recurse without bound; what comes out is no deeper than
//! [`pintle_value::DEPTH_MAX`].

mod error;
mod json_patch;
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

/// The ways to say what is to change (UPD-05).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// RFC 6902: a list of operations.
    Json,
    /// RFC 7386: the members to change.
    Merge,
    /// Like a merge patch, but lists are merged too, by what the schema says of them.
    StrategicMerge,
}

/// What a patch makes of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Patched {
    /// The object, not yet checked against its schema.
    pub value: Value,
    /// What is wrong with the patch itself but does not keep it from being applied: members that
    /// come twice, and in a JSON patch unknown ones. To be refused, warned of or ignored like the
    /// problems of the object's own fields.
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

/// The body of a fuzz target: a byte that picks the type, an object, a zero, a patch. Whatever they
/// are, nothing panics, and what comes out is bounded.
///
/// # Panics
/// If an invariant does not hold.
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

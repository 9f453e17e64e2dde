//! Patches: JSON patch, merge patch and strategic merge patch, as kube-apiserver applies them.
//!
//! A patch is applied to an object's tree; the result is a tree that has yet to be checked against
//! the schema (`pintle_schema::conform`), for a patch can make anything of an object.
//!
//! Must not know: storage, requests, who may do what. Server-side apply will stand beside these as a
//! module of its own; its bodies may be YAML, those of the others are JSON.
//!
//! Invariants: no patch can panic or recurse without bound; what comes out is no deeper than
//! [`pintle_value::DEPTH_MAX`].

mod error;
mod json_patch;
mod merge_patch;
mod read;
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

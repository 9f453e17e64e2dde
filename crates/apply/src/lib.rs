//! See docs/architecture.md.

use pintle_schema::{Schema, TypeId};
use pintle_value::Value;

/// The patch algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// Upstream's own.
    StrategicMerge,
}

/// Why a patch was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Error {
    /// Whether the patch itself cannot be read (400), as opposed to not applying (422).
    pub fn is_malformed(&self) -> bool {
        todo!()
    }
}

/// What `current` becomes under a patch.
pub fn apply(
    patch_type: PatchType,
    schema: &Schema,
    ty: TypeId,
    current: &Value,
    patch: &[u8],
) -> Result<Value, Error> {
    let _ = (patch_type, schema, ty, current, patch);
    todo!()
}

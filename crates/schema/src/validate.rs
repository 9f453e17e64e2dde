//! The rules that the table declares, checked.

use pintle_meta::field;
use pintle_value::Value;

use crate::{Schema, TypeId};

/// What is wrong with a (decoded, defaulted) object by the table's rules; `old` is what it replaces.
pub fn validate(
    schema: &Schema,
    ty: TypeId,
    value: &Value,
    old: Option<&Value>,
) -> Vec<field::Error> {
    let _ = (schema, ty, value, old);
    Vec::new()
}

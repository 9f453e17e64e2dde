//! Go's zero values.

use pintle_meta::time;
use pintle_value::{Map, Str, Value};

use crate::{Presence, Scalar, Schema, Shape, TypeId};

/// Go's zero time, the first of January of year 1, which is encoded as `null`.
pub(crate) const ZERO_TIME: i64 = -62_135_596_800 * time::SECOND;

/// The encoding of the type's zero value.
pub fn zero(schema: &Schema, ty: TypeId) -> Value {
    match &schema.get(ty).shape {
        Shape::Scalar(scalar) => match scalar {
            Scalar::String => Value::String(Str::default()),
            Scalar::Bool => Value::Bool(false),
            Scalar::Int32 | Scalar::Int64 | Scalar::Float64 | Scalar::IntOrString => Value::Int(0),
            Scalar::Quantity => Value::from("0"),
            Scalar::Duration => Value::from("0s"),
            Scalar::Bytes
            | Scalar::Time
            | Scalar::MicroTime
            | Scalar::RawExtension
            | Scalar::Fields
            | Scalar::Any => Value::Null,
        },
        Shape::List { .. } | Shape::Map { .. } => Value::Null,
        Shape::Struct { fields, by_name, .. } => {
            let mut members = Vec::new();
            for &i in by_name.iter() {
                let field = &fields[usize::from(i)];
                match field.presence {
                    Presence::Pointer | Presence::OmitZero | Presence::Distinct => {}
                    // A struct cannot contain itself by value, so the recursion ends.
                    Presence::Always => {
                        members.push((Str::from(&*field.name), zero(schema, field.ty)));
                    }
                    Presence::Null => members.push((Str::from(&*field.name), Value::Null)),
                }
            }
            Value::Object(Map::from_sorted(members))
        }
    }
}

/// The encoding of a null item of a list or value of a map: Go's zero value. Null bytes are empty
/// bytes, as upstream reads them back from its storage.
pub(crate) fn zero_entry(schema: &Schema, ty: TypeId) -> Value {
    match &schema.get(ty).shape {
        Shape::Scalar(Scalar::Bytes) => Value::String(Str::default()),
        _ => zero(schema, ty),
    }
}

/// Whether Go's `omitempty` and `omitzero` omit the value.
pub(crate) fn is_zero(schema: &Schema, ty: TypeId, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Int(n) => *n == 0,
        Value::Float(x) => *x == 0.0,
        Value::String(s) => s.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Raw(_) => false,
        Value::Object(members) => {
            members.is_empty()
                || matches!(schema.get(ty).shape, Shape::Struct { .. })
                    && *value == zero(schema, ty)
        }
    }
}

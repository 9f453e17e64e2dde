//! The errors of upstream's converter of decoded JSON to Go types
//! (`k8s.io/apimachinery/pkg/runtime`, `FromUnstructured`). It reads the result of a strategic merge
//! patch, and its messages are not those of Go's JSON decoder.

use pintle_value::{Map, Value};

use super::{FieldPath, Step, base64};
use crate::{Scalar, Schema, Shape, TypeId, Unknown};

/// Returns the converter's error for a tree that is not of the type `ty`. `None` if the converter
/// finds no error, or one in the text of a scalar that decodes itself, such as a time.
pub fn conversion_error(schema: &Schema, ty: TypeId, value: &Value) -> Option<String> {
    of_value(schema, ty, value, &FieldPath::ROOT)
}

fn of_value(schema: &Schema, ty: TypeId, value: &Value, path: &FieldPath<'_>) -> Option<String> {
    match (&schema.get(ty).shape, value) {
        (_, Value::Null) => None,
        (Shape::Scalar(scalar), value) => of_scalar(*scalar, value, || path.go_type(schema, ty)),
        (Shape::Struct { fields, unknown: Unknown::Keep, .. }, _) if fields.is_empty() => None,
        (Shape::Struct { .. }, Value::Object(members)) => of_members(schema, ty, members, path),
        (Shape::Struct { .. }, other) => {
            Some(format!("cannot restore struct from: {}", go_kind(other)))
        }
        (Shape::Map { value: ty, .. }, Value::Object(members)) => {
            let mut entries = members.iter();
            entries
                .find_map(|(key, value)| of_value(schema, *ty, value, &path.then(Step::Key(key))))
        }
        (Shape::Map { .. }, other) => Some(format!("cannot restore map from {}", go_kind(other))),
        (Shape::List { item, .. }, Value::Array(items)) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(i, value)| of_value(schema, *item, value, &path.then(Step::Index(i))))
        }
        (Shape::List { .. }, other) => {
            Some(format!("cannot restore slice from {}", go_kind(other)))
        }
    }
}

/// The converter reads the members of a struct in the order of their declaration.
fn of_members(schema: &Schema, ty: TypeId, members: &Map, path: &FieldPath<'_>) -> Option<String> {
    let of = schema.get(ty);
    let Shape::Struct { fields, .. } = &of.shape else { return None };
    fields.iter().find_map(|field| {
        let step = Step::Field { name: &field.name, of: &of.name };
        of_value(schema, field.ty, members.get(&field.name)?, &path.then(step))
    })
}

fn of_scalar(scalar: Scalar, value: &Value, go_type: impl Fn() -> String) -> Option<String> {
    let unrecognized = |kind: &str| Some(format!("unrecognized type: {kind}"));
    match (scalar, value) {
        (Scalar::Any | Scalar::RawExtension | Scalar::Fields | Scalar::Quantity, _) => None,
        (Scalar::String, Value::String(_)) | (Scalar::Bool, Value::Bool(_)) => None,
        // Go converts an integer to a string of one character, so the converter refuses it itself.
        (Scalar::String, Value::Int(_)) => Some(format!("cannot convert int64 to {}", go_type())),
        (Scalar::String, _) => unrecognized("string"),
        (Scalar::Bool, _) => unrecognized("bool"),
        (Scalar::Int32 | Scalar::Int64 | Scalar::Float64, Value::Int(_)) => None,
        (Scalar::Float64, Value::Float(_)) => None,
        (Scalar::Int32 | Scalar::Int64, Value::Float(x)) => {
            (x.fract() != 0.0).then(|| format!("cannot convert float64 to {}", go_type()))
        }
        (Scalar::Int32, _) => unrecognized("int32"),
        (Scalar::Int64, _) => unrecognized("int64"),
        (Scalar::Float64, _) => unrecognized("float64"),
        (Scalar::Bytes, Value::String(text)) => {
            let error = base64::canonical(text).err()?;
            Some(format!("error decoding from json: {error}"))
        }
        (Scalar::Bytes, other) => Some(format!("cannot restore slice from {}", go_kind(other))),
        (Scalar::IntOrString, Value::String(_) | Value::Int(_)) => None,
        (Scalar::IntOrString, other) => {
            let found = match other {
                Value::Float(_) => format!("number {}", pintle_value::json::to_string(other)),
                other => json_kind(other).to_owned(),
            };
            Some(format!("json: cannot unmarshal {found} into Go value of type int32"))
        }
        (Scalar::Time | Scalar::MicroTime | Scalar::Duration, Value::String(_)) => None,
        (Scalar::Time | Scalar::MicroTime | Scalar::Duration, other) => {
            let found = json_kind(other);
            Some(format!("json: cannot unmarshal {found} into Go value of type string"))
        }
    }
}

/// Go's name of the kind of a decoded value.
const fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) | Value::Raw(_) => "map",
    }
}

/// The name of a JSON value's kind in the messages of Go's decoder.
const fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::Float(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) | Value::Raw(_) => "object",
    }
}

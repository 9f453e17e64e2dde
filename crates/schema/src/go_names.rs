//! Go's names of fields and types, for errors that match those of its decoder.

use crate::builtin::generated::go_names::{FIELDS, Row};
use crate::{Scalar, Schema, Shape, TypeId};

/// The row of a field of a type.
fn row(of: &str, field: &str) -> Option<&'static Row> {
    let at = FIELDS.binary_search_by_key(&of, |(name, _)| name).ok()?;
    let rows = FIELDS[at].1;
    rows.binary_search_by_key(&field, |(name, ..)| name).ok().map(|at| &rows[at])
}

/// The embedded structs that contain a field, with a dot after each: `VolumeSource.`.
pub(crate) fn embedded(of: &str, field: &str) -> String {
    match row(of, field) {
        Some((_, embedded, _)) if !embedded.is_empty() => format!("{embedded}."),
        _ => String::new(),
    }
}

/// The type of the items or entries `depth` levels below a field, where it differs from the
/// schema's name.
pub(crate) fn inside(of: &str, field: &str, depth: usize) -> Option<&'static str> {
    let (.., ty) = row(of, field).filter(|(.., ty)| !ty.is_empty())?;
    let item = |ty: &'static str| {
        let item = match ty.strip_prefix("map[") {
            Some(rest) => rest.split_once(']')?.1,
            None => ty.strip_prefix("[]")?,
        };
        Some(item.trim_start_matches('*'))
    };
    (0..depth).try_fold(*ty, |ty, _| item(ty))
}

/// Go's name of a type: `v1.PodSpec` for `io.k8s.api.core.v1.PodSpec`.
pub(crate) fn of_type(schema: &Schema, ty: TypeId) -> String {
    let ty = schema.get(ty);
    match &ty.shape {
        Shape::Struct { .. } => {
            let at = ty.name.rmatch_indices('.').nth(1).map_or(0, |(at, _)| at + 1);
            ty.name[at..].to_owned()
        }
        Shape::Map { value, .. } => format!("map[string]{}", of_type(schema, *value)),
        Shape::List { item, .. } => format!("[]{}", of_type(schema, *item)),
        Shape::Scalar(scalar) => of_scalar(*scalar).to_owned(),
    }
}

/// Go's name of the type that a scalar is decoded to.
const fn of_scalar(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Bool => "bool",
        Scalar::Int32 | Scalar::IntOrString => "int32",
        Scalar::Int64 => "int64",
        Scalar::Float64 => "float64",
        Scalar::Bytes => "[]uint8",
        Scalar::Quantity => "resource.Quantity",
        Scalar::RawExtension => "runtime.RawExtension",
        Scalar::Fields => "v1.FieldsV1",
        Scalar::Any => "interface {}",
        Scalar::String | Scalar::Time | Scalar::MicroTime | Scalar::Duration => "string",
    }
}

//! Declarations of objects, derived from their schemas (upstream: `SchemaDeclType`).

use pintle_cel::{Declaration, Merge, Object, SIZE_MAX};
use pintle_schema::{Scalar, Schema, Shape, TypeId, Unknown};

use super::ANYTHING;

/// Deeper members have the type `dyn`, because types can be recursive.
const DEPTH_MAX: usize = 16;

/// Returns the declaration of a type; messages call it `name`.
pub(crate) fn declaration(schema: &Schema, ty: TypeId, name: &str) -> Declaration {
    declare(schema, ty, name, DEPTH_MAX)
}

fn declare(schema: &Schema, ty: TypeId, name: &str, depth: usize) -> Declaration {
    if depth == 0 {
        return ANYTHING;
    }
    let depth = depth - 1;
    match &schema.get(ty).shape {
        Shape::Scalar(scalar) => declare_scalar(*scalar),
        Shape::Struct { fields, unknown: Unknown::Keep, .. } if fields.is_empty() => ANYTHING,
        Shape::Struct { fields, .. } => {
            let fields = fields.iter().map(|field| {
                let inner = format!("{name}.{}", field.name);
                (field.name.as_ref().into(), declare(schema, field.ty, &inner, depth))
            });
            Declaration::Object(Object::new(name, fields))
        }
        Shape::Map { value, .. } => {
            let name = format!("{name}.@elem");
            Declaration::map(declare(schema, *value, &name, depth), SIZE_MAX)
        }
        Shape::List { item, .. } => {
            let name = format!("{name}.@idx");
            Declaration::list(declare(schema, *item, &name, depth), Merge::Atomic, SIZE_MAX)
        }
    }
}

const fn declare_scalar(scalar: Scalar) -> Declaration {
    let size_max = SIZE_MAX;
    match scalar {
        Scalar::Bool => Declaration::Bool,
        Scalar::Int32 | Scalar::Int64 => Declaration::Int,
        Scalar::Float64 => Declaration::Double,
        Scalar::Bytes => Declaration::Bytes { size_max },
        Scalar::Time | Scalar::MicroTime => Declaration::DateTime,
        Scalar::IntOrString => Declaration::IntOrString { size_max },
        Scalar::String | Scalar::Quantity | Scalar::Duration => Declaration::String { size_max },
        Scalar::RawExtension | Scalar::Fields | Scalar::Any => ANYTHING,
    }
}

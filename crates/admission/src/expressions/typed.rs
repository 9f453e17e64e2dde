//! Declarations of objects, derived from their schemas (upstream: `SchemaDeclType`).

use pintle_cel::{Declaration, Merge, Object, SIZE_MAX};
use pintle_schema::{Scalar, Schema, Shape, TypeId, Unknown};

use super::ANYTHING;

/// Deeper members have the type `dyn`.
const DEPTH_MAX: usize = 16;

/// Members with longer names have the type `dyn`. The name of a member begins with those of all that
/// contain it, and a definition may have long ones.
const NAME_BYTES_MAX: usize = 1024;

/// Returns the declaration of a type; messages call it `name`.
pub(crate) fn declaration(schema: &Schema, ty: TypeId, name: &str) -> Declaration {
    Declarer { schema, above: Vec::new() }.declare(ty, name)
}

struct Declarer<'s> {
    schema: &'s Schema,
    /// The types that contain the current one. A type within itself is `dyn`: it would have endlessly
    /// many members, and very many up to the greatest depth. For upstream it has no members.
    above: Vec<TypeId>,
}

impl Declarer<'_> {
    fn declare(&mut self, ty: TypeId, name: &str) -> Declaration {
        let is_named = name.len() <= NAME_BYTES_MAX;
        if self.above.len() == DEPTH_MAX || !is_named || self.above.contains(&ty) {
            return ANYTHING;
        }
        self.above.push(ty);
        let declaration = self.declare_shape(ty, name);
        self.above.pop();
        declaration
    }

    fn declare_shape(&mut self, ty: TypeId, name: &str) -> Declaration {
        let schema = self.schema;
        match &schema.get(ty).shape {
            Shape::Scalar(scalar) => declare_scalar(*scalar),
            Shape::Struct { fields, unknown: Unknown::Keep, .. } if fields.is_empty() => ANYTHING,
            Shape::Struct { fields, .. } => {
                let fields = fields.iter().map(|field| {
                    let inner = format!("{name}.{}", field.name);
                    (field.name.as_ref().into(), self.declare(field.ty, &inner))
                });
                let fields: Vec<_> = fields.collect();
                Declaration::Object(Object::new(name, fields))
            }
            Shape::Map { value, .. } => {
                let name = format!("{name}.@elem");
                Declaration::map(self.declare(*value, &name), SIZE_MAX)
            }
            Shape::List { item, .. } => {
                let name = format!("{name}.@idx");
                Declaration::list(self.declare(*item, &name), Merge::Atomic, SIZE_MAX)
            }
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

#[cfg(test)]
mod tests {
    use pintle_schema::{builtin, builtin_kind};

    use super::*;

    /// The schemas within a schema have about thirteen members with schemas each.
    #[test]
    fn recursive_types_are_declared_once() {
        let version = "apiextensions.k8s.io/v1";
        let ty = builtin_kind(version, "CustomResourceDefinition").expect("it is built in");
        let declared = format!("{:?}", declaration(builtin(), ty, "X"));
        assert!(declared.contains("openAPIV3Schema") && declared.len() < 1_000_000);
    }
}

//! The types of `apiextensions.k8s.io` that are a schema or something else: JSON has one or the other,
//! Protobuf a message with a field for each.

use crate::{Schema, Shape, TypeId};

/// What such a type has besides a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Other {
    Schemas,
    Bool,
    Strings,
}

/// The types' names, without what they begin with; the field numbers of the schema and of the other.
const TYPES: [(&str, Other, u32, u32); 3] = [
    ("JSONSchemaPropsOrArray", Other::Schemas, 1, 2),
    ("JSONSchemaPropsOrBool", Other::Bool, 2, 1),
    ("JSONSchemaPropsOrStringArray", Other::Strings, 1, 2),
];

/// A type of this sort.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alternative {
    pub(crate) other: Other,
    /// The type of a schema.
    pub(crate) schema: TypeId,
    pub(crate) schema_tag: u32,
    pub(crate) other_tag: u32,
}

impl Alternative {
    /// The type of the items, where the other is a list.
    pub(crate) fn item(&self, schema: &Schema) -> Option<TypeId> {
        if self.other == Other::Schemas {
            return Some(self.schema);
        }
        // A schema has lists of strings itself.
        let Shape::Struct { fields, .. } = &schema.get(self.schema).shape else { return None };
        let strings = fields.iter().find(|field| field.name == "required")?;
        match schema.get(strings.ty).shape {
            Shape::List { item, .. } => Some(item),
            _ => None,
        }
    }
}

/// What the type is, if it is of this sort.
pub(crate) fn of(schema: &Schema, ty: TypeId) -> Option<Alternative> {
    let (package, name) = schema.get(ty).name.rsplit_once('.')?;
    let (_, other, schema_tag, other_tag) = *TYPES.iter().find(|(n, ..)| *n == name)?;
    let schema = schema.find(&format!("{package}.JSONSchemaProps"))?;
    Some(Alternative { other, schema, schema_tag, other_tag })
}

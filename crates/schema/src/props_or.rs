//! The union types of `apiextensions.k8s.io`: a JSON schema or another value. JSON contains one of
//! the two; Protobuf has a message with a field for each.

use crate::{Schema, Shape, TypeId};

/// The other value of such a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Other {
    Schemas,
    Bool,
    Strings,
}

/// The type names without package; the field numbers of the schema and of the other value.
const TYPES: [(&str, Other, u32, u32); 3] = [
    ("JSONSchemaPropsOrArray", Other::Schemas, 1, 2),
    ("JSONSchemaPropsOrBool", Other::Bool, 2, 1),
    ("JSONSchemaPropsOrStringArray", Other::Strings, 1, 2),
];

/// A union type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PropsOr {
    pub(crate) other: Other,
    /// The type of a schema.
    pub(crate) schema: TypeId,
    pub(crate) schema_tag: u32,
    pub(crate) other_tag: u32,
}

impl PropsOr {
    /// The type of the items, if the other value is a list.
    pub(crate) fn item(&self, schema: &Schema) -> Option<TypeId> {
        if self.other == Other::Schemas {
            return Some(self.schema);
        }
        // `required` is a list of strings.
        let Shape::Struct { fields, .. } = &schema.get(self.schema).shape else { return None };
        let strings = fields.iter().find(|field| field.name == "required")?;
        match schema.get(strings.ty).shape {
            Shape::List { item, .. } => Some(item),
            _ => None,
        }
    }
}

/// Returns the union type with this id, if it is one.
pub(crate) fn of(schema: &Schema, ty: TypeId) -> Option<PropsOr> {
    let (package, name) = schema.get(ty).name.rsplit_once('.')?;
    let (_, other, schema_tag, other_tag) = *TYPES.iter().find(|(n, ..)| *n == name)?;
    let schema = schema.find(&format!("{package}.JSONSchemaProps"))?;
    Some(PropsOr { other, schema, schema_tag, other_tag })
}

//! The types of `apiextensions.k8s.io` that are a schema or something else: JSON has one or the other,
//! Protobuf a message with a field for each.

use pintle_value::{Value, json};

use super::{message::Messages, wire::Fields};
use crate::{Error, Schema, TypeId};

/// What such a type has besides a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Other {
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
pub(super) struct Alternative {
    pub(super) other: Other,
    /// The type of a schema.
    pub(super) schema: TypeId,
    pub(super) schema_tag: u32,
    pub(super) other_tag: u32,
}

/// What the type is, if it is of this sort.
pub(super) fn of(schema: &Schema, ty: TypeId) -> Option<Alternative> {
    let (package, name) = schema.get(ty).name.rsplit_once('.')?;
    let (_, other, schema_tag, other_tag) = *TYPES.iter().find(|(n, ..)| *n == name)?;
    let schema = schema.find(&format!("{package}.JSONSchemaProps"))?;
    Some(Alternative { other, schema, schema_tag, other_tag })
}

impl<'b> Messages<'_, 'b> {
    /// Reads a message of such a type.
    pub(super) fn alternative(&mut self, ty: TypeId, message: &'b [u8]) -> Result<Value, Error> {
        let Some(of) = of(self.schema(), ty) else { return Ok(Value::Null) };
        let (mut schema, mut allows, mut items) = (Vec::new(), false, Vec::new());
        self.open()?;
        for field in Fields::new(message) {
            let (tag, wire) = field?;
            if tag == of.schema_tag {
                schema.push(wire.bytes("schema")?);
            } else if tag == of.other_tag {
                match of.other {
                    Other::Bool => allows = wire.varint("allows")? != 0,
                    Other::Schemas => items.push(self.read(of.schema, wire.bytes("jSONSchemas")?)?),
                    Other::Strings => {
                        items.push(Value::from(&*json::text(wire.bytes("property")?)));
                    }
                }
            }
        }
        let value = match of.other {
            Other::Schemas | Other::Strings if !items.is_empty() => Value::Array(items),
            _ if !schema.is_empty() => self.read_parts(of.schema, schema)?,
            Other::Bool => Value::Bool(allows),
            _ => Value::Null,
        };
        self.close();
        Ok(value)
    }
}

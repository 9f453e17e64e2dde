//! Decodes the union types (a JSON schema or another value): a message with a field for each.

use pintle_value::{Value, json};

use super::{message::Messages, wire::Fields};
use crate::{
    Error, TypeId,
    props_or::{Other, of},
};

impl<'b> Messages<'_, 'b> {
    /// Decodes a message of a union type.
    pub(super) fn props_or(&mut self, ty: TypeId, message: &'b [u8]) -> Result<Value, Error> {
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

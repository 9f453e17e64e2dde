//! The bytes of custom resources: JSON with sorted members, as Go writes what has no type.

use pintle_store::Revision;
use pintle_value::{Value, json};

use crate::bytes::{forget_place, text};

/// What is kept of an object's JSON.
pub(crate) fn encode(value: &[u8]) -> Result<Vec<u8>, String> {
    let mut tree = text(value)?;
    forget_place(&mut tree)?;
    let mut kept = Vec::with_capacity(value.len() + 1);
    json::write(&tree, &mut kept);
    kept.push(b'\n');
    Ok(kept)
}

/// The JSON of the object that the bytes are kept of. What its schema makes of it is the registry's matter,
/// which knows the schema as it is when the object is read.
pub(crate) fn decode(kept: &[u8], revision: Revision) -> Result<Vec<u8>, String> {
    let mut tree = text(kept)?;
    forget_place(&mut tree)?;
    let Some(Value::Object(metadata)) = tree.get_mut("metadata") else {
        return Err("the object has no metadata".to_owned());
    };
    metadata.insert("resourceVersion", revision.to_string());
    let mut value = Vec::with_capacity(kept.len() + 32);
    json::write(&tree, &mut value);
    Ok(value)
}

//! The bytes of custom resources: JSON with sorted members, as Go encodes untyped objects.

use pintle_store::Revision;
use pintle_value::{Value, json};

use crate::bytes::{remove_unstored, text};

/// Encodes an object's JSON for etcd.
pub(crate) fn encode(value: &[u8]) -> Result<Vec<u8>, String> {
    let mut tree = text(value)?;
    remove_unstored(&mut tree)?;
    let mut bytes = Vec::with_capacity(value.len() + 1);
    json::write(&tree, &mut bytes);
    bytes.push(b'\n');
    Ok(bytes)
}

/// Decodes an object's bytes in etcd to JSON. The registry applies the current schema when it reads
/// the object.
pub(crate) fn decode(bytes: &[u8], revision: Revision) -> Result<Vec<u8>, String> {
    let mut tree = text(bytes)?;
    remove_unstored(&mut tree)?;
    let Some(Value::Object(metadata)) = tree.get_mut("metadata") else {
        return Err("the object has no metadata".to_owned());
    };
    metadata.insert("resourceVersion", revision.to_string());
    let mut value = Vec::with_capacity(bytes.len() + 32);
    json::write(&tree, &mut value);
    Ok(value)
}

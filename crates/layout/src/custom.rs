//! The bytes of custom resources: JSON with sorted members, as Go writes what has no type.

use pintle_store::Revision;
use pintle_value::{Value, json};

use crate::bytes::{forget_place, text};

/// Encodes an object's JSON for etcd.
pub(crate) fn encode(value: &[u8]) -> Result<Vec<u8>, String> {
    let mut tree = text(value)?;
    forget_place(&mut tree)?;
    let mut bytes = Vec::with_capacity(value.len() + 1);
    json::write(&tree, &mut bytes);
    bytes.push(b'\n');
    Ok(bytes)
}

/// Decodes an object's bytes in etcd to JSON. Its schema is applied by the registry,
/// which knows the schema as it is when the object is read.
pub(crate) fn decode(bytes: &[u8], revision: Revision) -> Result<Vec<u8>, String> {
    let mut tree = text(bytes)?;
    forget_place(&mut tree)?;
    let Some(Value::Object(metadata)) = tree.get_mut("metadata") else {
        return Err("the object has no metadata".to_owned());
    };
    metadata.insert("resourceVersion", revision.to_string());
    let mut value = Vec::with_capacity(bytes.len() + 32);
    json::write(&tree, &mut value);
    Ok(value)
}

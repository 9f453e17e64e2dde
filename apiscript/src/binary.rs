//! Bodies in Protobuf and CBOR, converted to and from trees.

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use pintle_schema::{any_kind, protobuf};
use pintle_value::{cbor, json};
use serde_json::Value;

/// The media type of objects in Protobuf, and the prefix of the media type of watches.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The media type of objects in CBOR, and the prefix of the media type of watches.
pub(crate) const CBOR: &str = "application/cbor";

/// Parses a CBOR document.
pub(crate) fn read_cbor(bytes: &[u8]) -> Result<Value> {
    ensure!(bytes.starts_with(cbor::MAGIC), "the document does not describe itself as CBOR");
    Ok(serde_json::from_str(&json::to_string(&cbor::parse(bytes)?))?)
}

/// The first document of a CBOR sequence, and its length; `None` if it is incomplete.
pub(crate) fn first_cbor(bytes: &[u8]) -> Result<Option<(Value, usize)>> {
    let Some((_, length)) = cbor::first(bytes)? else { return Ok(None) };
    Ok(Some((read_cbor(&bytes[..length])?, length)))
}

/// Encodes a tree as a CBOR document.
pub(crate) fn write_cbor(tree: &Value) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    cbor::write(&json::parse(tree.to_string().as_bytes())?, &mut out);
    Ok(out)
}

/// Parses an object in Protobuf.
pub(crate) fn read(bytes: &[u8]) -> Result<Value> {
    let (api_version, kind) = protobuf::type_meta(bytes)?;
    let (schema, ty) = any_kind(&api_version, &kind)
        .ok_or_else(|| anyhow!("no kind {kind} in {api_version:?} is known"))?;
    let tree = protobuf::decode(schema, ty, bytes)?;
    Ok(serde_json::from_str(&json::to_string(&tree))?)
}

/// Parses a watch event in Protobuf to the tree that it would be in JSON.
pub(crate) fn read_event(bytes: &[u8]) -> Result<Value> {
    let (event_type, object) = protobuf::read_event(bytes)?;
    let object = read(object).context("the object of a watch event")?;
    Ok(serde_json::json!({"type": event_type, "object": object}))
}

/// Encodes a tree as an object of its kind in Protobuf.
pub(crate) fn write(tree: &Value) -> Result<Vec<u8>> {
    let text = |key: &str| tree.get(key).and_then(Value::as_str).unwrap_or_default();
    let Some((schema, ty)) = any_kind(text("apiVersion"), text("kind")) else {
        bail!("what is sent in Protobuf must name a built-in kind");
    };
    let mut tree = json::parse(tree.to_string().as_bytes())?;
    pintle_schema::conform(schema, ty, &mut tree)?;
    let mut out = Vec::new();
    protobuf::encode(schema, ty, &tree, &mut out);
    Ok(out)
}

//! Invariants of parsing arbitrary bytes as JSON, YAML or CBOR. A panic is a finding.

// A fuzz target calls one of these functions; the replay of the corpus calls all.
#![allow(dead_code)]

use pintle_value::{Value, cbor, json, yaml};

/// Accepted JSON round-trips.
pub(crate) fn json(bytes: &[u8]) {
    let Ok(value) = json::parse(bytes) else { return };
    assert_eq!(json::parse(json::to_string(&value).as_bytes()).as_ref(), Ok(&value));
    let mut pretty = Vec::new();
    json::write_pretty(&value, &mut pretty);
    assert_eq!(json::parse(&pretty), Ok(value));
}

/// Accepted YAML round-trips, as YAML and as JSON.
pub(crate) fn yaml(bytes: &[u8]) {
    let Ok(documents) = yaml::parse_documents(bytes) else { return };
    for value in &documents {
        let mut text = Vec::new();
        yaml::write(value, &mut text);
        assert_eq!(yaml::parse(&text).as_ref(), Ok(value));
    }
    let all = Value::Array(documents);
    assert_eq!(json::parse(json::to_string(&all).as_bytes()), Ok(all));
}

/// Accepted CBOR round-trips, as CBOR and as JSON; and its encoding without the last byte is
/// incomplete.
pub(crate) fn cbor(bytes: &[u8]) {
    let Ok(value) = cbor::parse(bytes) else { return };
    let mut written = Vec::new();
    cbor::write(&value, &mut written);
    assert_eq!(cbor::parse(&written).as_ref(), Ok(&value));
    assert_eq!(cbor::first(&written[..written.len() - 1]), Ok(None));
    assert_eq!(json::parse(json::to_string(&value).as_bytes()), Ok(value));
}

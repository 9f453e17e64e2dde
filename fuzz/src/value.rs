//! What holds for any bytes that are read as JSON or YAML. A panic is a finding.

// A target uses one of these, the replay of the corpus all.
#![allow(dead_code)]

use pintle_value::{Value, json, yaml};

/// What is accepted is written so that it reads back the same.
pub(crate) fn json(bytes: &[u8]) {
    let Ok(value) = json::parse(bytes) else { return };
    assert_eq!(json::parse(json::to_string(&value).as_bytes()).as_ref(), Ok(&value));
    let mut pretty = Vec::new();
    json::write_pretty(&value, &mut pretty);
    assert_eq!(json::parse(&pretty), Ok(value));
}

/// What is accepted is written so that it reads back the same, as YAML and as JSON.
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

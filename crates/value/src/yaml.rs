//! YAML text to the same tokens as JSON, and values to YAML as `sigs.k8s.io/yaml` writes them.

use crate::{Error, Value};

/// Reads one document; of equal keys the last wins.
pub fn parse(bytes: &[u8]) -> Result<Value, Error> {
    let _ = bytes;
    Err(Error::Yaml("yaml: not written yet".to_owned()))
}

/// Reads every document of a file.
pub fn parse_documents(bytes: &[u8]) -> Result<Vec<Value>, Error> {
    let _ = bytes;
    Err(Error::Yaml("yaml: not written yet".to_owned()))
}

/// Writes a value as YAML, members in the order of their keys.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    let _ = (value, out);
}

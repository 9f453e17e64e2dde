//! Reads YAML as the tokens of the equivalent JSON, and writes values as YAML.
//!
//! The behaviour is that of `sigs.k8s.io/yaml` over go-yaml v2: YAML 1.1's scalars (`yes`, `017`),
//! keys that become strings, block style with lines folded after 80 columns. The grammar is parsed
//! by granit-parser.

mod nodes;
mod order;
mod read;
mod resolve;
mod scalar;
#[cfg(test)]
mod tests;
mod write;

pub use read::Reader;
pub use write::{write, write_item};

use crate::{Error, Value, json, token::Tokens};

/// Parses a single document. Of equal keys the last wins.
pub fn parse(bytes: &[u8]) -> Result<Value, Error> {
    let text = json::text(bytes);
    let mut reader = Reader::new(&text)?;
    let value = reader.tree()?;
    reader.end()?;
    Ok(value)
}

/// Parses a single document. A duplicate key is an error, as in upstream's configuration files.
pub fn parse_strict(bytes: &[u8]) -> Result<Value, Error> {
    let text = json::text(bytes);
    let mut reader = Reader::new(&text)?;
    if let Some(repeated) = reader.duplicates().next() {
        return Err(Error::Yaml(format!("yaml: {repeated}")));
    }
    let value = reader.tree()?;
    reader.end()?;
    Ok(value)
}

/// Parses a single document like [`parse_strict`], and returns the lines of the keys of its map.
pub fn parse_strict_with_lines(bytes: &[u8]) -> Result<(Value, Vec<(String, u32)>), Error> {
    let value = parse_strict(bytes)?;
    let text = json::text(bytes);
    let lines = Reader::new(&text)?.key_lines();
    Ok((value, lines))
}

/// Parses every document of a file, skipping empty ones.
pub fn parse_documents(bytes: &[u8]) -> Result<Vec<Value>, Error> {
    let text = json::text(bytes);
    let mut reader = Reader::new(&text)?;
    let mut documents = Vec::new();
    loop {
        let value = reader.tree()?;
        if !value.is_null() {
            documents.push(value);
        }
        if !reader.next_document() {
            return Ok(documents);
        }
    }
}

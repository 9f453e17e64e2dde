//! YAML text to the same tokens as JSON, and values to YAML.
//!
//! What is read and written is what `sigs.k8s.io/yaml` over go-yaml v2 reads and writes: YAML 1.1's
//! scalars (`yes`, `0o17`), keys that become strings, block style with lines folded after 80 columns.
//! The grammar itself is granit-parser's.

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

/// Reads one document and nothing behind it; of equal keys the last wins.
pub fn parse(bytes: &[u8]) -> Result<Value, Error> {
    let text = json::text(bytes);
    let mut reader = Reader::new(&text)?;
    let value = reader.tree()?;
    reader.end()?;
    Ok(value)
}

/// Reads one document and nothing behind it; a key that comes twice is an error, as upstream has it of the
/// files that configure its servers.
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

/// Reads every document of a file, without the empty ones.
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

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

use crate::{Error, Value, token::Tokens};

/// Parses a single document. Of equal keys the last wins.
pub fn parse(bytes: &[u8]) -> Result<Value, Error> {
    let mut reader = Reader::new(text(bytes)?)?;
    let value = reader.tree()?;
    reader.end()?;
    Ok(value)
}

/// Parses a single document. A duplicate key is an error, as in upstream's configuration files.
pub fn parse_strict(bytes: &[u8]) -> Result<Value, Error> {
    let mut reader = Reader::new(text(bytes)?)?;
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
    let lines = Reader::new(text(bytes)?)?.key_lines();
    Ok((value, lines))
}

/// Parses every document of a file, skipping empty ones.
pub fn parse_documents(bytes: &[u8]) -> Result<Vec<Value>, Error> {
    let mut reader = Reader::new(text(bytes)?)?;
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

/// Returns the text of a document, which must be UTF-8: unlike JSON's, its invalid bytes are not
/// replaced.
///
/// # Errors
/// If a byte is not part of a character.
pub fn text(bytes: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(bytes).map_err(|error| {
        let why = encoding_error(&bytes[error.valid_up_to()..]);
        Error::Yaml(format!("yaml: {why}"))
    })
}

/// An error with this message, which is that of upstream's converter if the converter has one.
fn yaml_error(message: &str) -> Error {
    Error::Yaml(message.to_owned())
}

/// Says what is wrong with bytes that begin with no character, in go-yaml's words (`readerc.go`).
fn encoding_error(bytes: &[u8]) -> &'static str {
    let width = match bytes.first() {
        Some(0xC0..=0xDF) => 2,
        Some(0xE0..=0xEF) => 3,
        Some(0xF0..=0xF7) => 4,
        _ => return "invalid leading UTF-8 octet",
    };
    let Some([first, trailing @ ..]) = bytes.get(..width) else {
        return "incomplete UTF-8 octet sequence";
    };
    if trailing.iter().any(|octet| octet & 0xC0 != 0x80) {
        return "invalid trailing UTF-8 octet";
    }
    match (first, trailing.first()) {
        (0xC0 | 0xC1, _) | (0xE0, Some(..0xA0)) | (0xF0, Some(..0x90)) => {
            "invalid length of a UTF-8 sequence"
        }
        _ => "invalid Unicode character",
    }
}

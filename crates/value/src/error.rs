//! The errors of the readers.

/// Why input is not a value. The messages are those of Go's `encoding/json` and, with a few
/// exceptions, of upstream's YAML and CBOR readers, since clients see them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text ends inside a value.
    #[error("unexpected end of JSON input")]
    UnexpectedEnd,
    /// A character is not allowed at its position.
    #[error("invalid character {} {context}", quoted(*.found))]
    InvalidCharacter {
        /// The first byte of the character.
        found: u8,
        /// The position in the grammar.
        context: &'static str,
    },
    /// Lists and maps are nested deeper than [`DEPTH_MAX`](crate::DEPTH_MAX).
    #[error("exceeded max depth")]
    Depth,
    /// A number exceeds the range of a 64-bit float.
    #[error("json: cannot unmarshal number {0} into Go value of type float64")]
    NumberRange(String),
    /// The text is not YAML, or has no equivalent in JSON; the whole message.
    #[error("{0}")]
    Yaml(String),
    /// The bytes are not CBOR, or have no equivalent in JSON.
    #[error("cbor: {0}")]
    Cbor(String),
    /// The CBOR ends inside an item.
    #[error("unexpected EOF")]
    CborEnd,
    /// The input is empty.
    #[error("EOF")]
    CborEmpty,
}

/// A byte in the notation of Go's scanner: as a Latin-1 character in single quotes.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        0x07 => r"'\a'".to_owned(),
        0x08 => r"'\b'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        0x0b => r"'\v'".to_owned(),
        0x0c => r"'\f'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        0x00..=0x1f | 0x7f => format!(r"'\x{byte:02x}'"),
        0x80..=0xa0 | 0xad => format!(r"'\u00{byte:02x}'"),
        _ => format!("'{}'", char::from(byte)),
    }
}

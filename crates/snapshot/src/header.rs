//! The header: when, by which program and of which store a snapshot was made.

use pintle_value::{Value, json};

/// When, by which program and of which store a snapshot was made. The header is stored as JSON, so
/// that later versions can add members; readers ignore members that they do not know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// When the snapshot was begun, in microseconds since 1970.
    pub created_unix_micros: i64,
    /// The program that made it: `pintle 0.1.0`.
    pub program: String,
    /// The kind of the store: `embedded`, `memory` or `etcd`.
    pub source: String,
}

const CREATED: &str = "createdUnixMicros";
const PROGRAM: &str = "program";
const SOURCE: &str = "source";

impl Header {
    pub(crate) fn encode(&self) -> String {
        json::to_string(&Value::from([
            (CREATED, Value::from(self.created_unix_micros)),
            (PROGRAM, Value::from(self.program.as_str())),
            (SOURCE, Value::from(self.source.as_str())),
        ]))
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let value = json::parse(bytes).ok()?;
        Some(Self {
            created_unix_micros: value.get(CREATED)?.as_int()?,
            program: value.str_at(&[PROGRAM])?.to_owned(),
            source: value.str_at(&[SOURCE])?.to_owned(),
        })
    }
}

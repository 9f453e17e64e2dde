//! Reads an applied configuration from a request body: YAML (and so JSON) or CBOR.

use pintle_schema::PROBLEMS_MAX;
use pintle_value::token::Tokens;
use pintle_value::{Value, cbor, yaml};

use crate::Error;

/// An applied configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// The configuration.
    pub value: Value,
    /// An error text for each of the first [`PROBLEMS_MAX`] duplicate keys, as go-yaml words it.
    /// The last value of a key counts.
    pub duplicates: Vec<String>,
}

impl Configuration {
    /// Reads the body of an apply request.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        let refused = |why: pintle_value::Error| {
            Error::Malformed(format!("error decoding YAML: error converting YAML to JSON: {why}"))
        };
        let text = yaml::text(bytes).map_err(refused)?;
        let mut reader = yaml::Reader::new(text).map_err(refused)?;
        let duplicates = reader.duplicates().take(PROBLEMS_MAX).collect();
        let value = reader.tree().map_err(refused)?;
        Self::of(value, duplicates)
    }

    /// Reads the body of an apply request in CBOR, in which a duplicate key is an error.
    pub fn read_cbor(bytes: &[u8]) -> Result<Self, Error> {
        let value = cbor::parse(bytes)
            .map_err(|why| Error::Malformed(format!("error decoding YAML: {why}")))?;
        Self::of(value, Vec::new())
    }

    fn of(value: Value, duplicates: Vec<String>) -> Result<Self, Error> {
        match value {
            Value::Object(_) => Ok(Self { value, duplicates }),
            // As upstream: an empty document is an object without members.
            Value::Null => Ok(Self { value: Value::object(), duplicates }),
            other => Err(Error::Malformed(format!(
                "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot \
                 unmarshal {} into Go value of type map[string]interface {{}}",
                other.type_name()
            ))),
        }
    }

    /// The error about duplicate keys under strict field validation.
    pub fn strict_error(&self) -> Option<String> {
        (!self.duplicates.is_empty()).then(|| {
            let lines = self.duplicates.join("\n  ");
            format!("error converting YAML to JSON: yaml: unmarshal errors:\n  {lines}")
        })
    }
}

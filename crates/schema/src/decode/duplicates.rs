//! Parses JSON to a plain tree, and finds duplicate members in document order: upstream's behaviour
//! where no Go type guides the decoder, in custom resources and in patches.

use std::collections::BTreeSet;

use pintle_meta::field::truncated;
use pintle_value::{
    Error, Map, Path, Str, Value, json,
    token::{Token, Tokens},
};

use crate::{Problem, Problems};

/// Parses JSON. Returns its value, and its duplicate members, of which the last one counts.
pub fn read(bytes: &[u8]) -> Result<(Value, Vec<Problem>), Error> {
    let text = json::text(bytes);
    let mut reader = Reader {
        tokens: json::Reader::new(&text),
        path: Path::root(),
        problems: Problems::default(),
    };
    let value = reader.value()?;
    reader.tokens.end()?;
    Ok((value, reader.problems.into_vec()))
}

struct Reader<T> {
    tokens: T,
    path: Path,
    problems: Problems,
}

impl<T: Tokens> Reader<T> {
    fn value(&mut self) -> Result<Value, Error> {
        let at = self.path.len();
        match self.tokens.value()? {
            Token::Array => {
                let mut items = Vec::new();
                while self.tokens.item()? {
                    self.path.push_index(items.len());
                    items.push(self.value()?);
                    self.path.truncate(at);
                }
                Ok(Value::Array(items))
            }
            Token::Object => {
                let mut members = Vec::new();
                let mut seen = BTreeSet::new();
                while let Some(key) = self.tokens.key()? {
                    let key = Str::from(key);
                    self.path.push_field(&key);
                    if !seen.insert(key.clone()) {
                        self.duplicate();
                    }
                    members.push((key, self.value()?));
                    self.path.truncate(at);
                }
                Ok(Value::Object(Map::from_unsorted(members, |_| {})))
            }
            scalar => scalar.scalar(),
        }
    }

    fn duplicate(&mut self) {
        self.problems.add(|| Problem::Duplicate(truncated(self.path.as_str()).into_owned()));
    }
}

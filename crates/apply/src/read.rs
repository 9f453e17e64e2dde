//! Reading the body of a patch.

use std::collections::BTreeSet;

use pintle_schema::{PROBLEMS_MAX, Problem};
use pintle_value::{
    Map, Path, Str, Value, json,
    token::{Token, Tokens},
};

/// The value of a JSON text, and its members that come twice, of which the last one counts.
pub(crate) fn read(bytes: &[u8]) -> Result<(Value, Vec<Problem>), pintle_value::Error> {
    let text = json::text(bytes);
    let mut reader =
        Reader { tokens: json::Reader::new(&text), path: Path::root(), problems: Vec::new() };
    let value = reader.value()?;
    reader.tokens.end()?;
    Ok((value, reader.problems))
}

struct Reader<T> {
    tokens: T,
    path: Path,
    problems: Vec<Problem>,
}

impl<T: Tokens> Reader<T> {
    fn value(&mut self) -> Result<Value, pintle_value::Error> {
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
        push(&mut self.problems, Problem::Duplicate(self.path.as_str().to_owned()));
    }
}

/// The problems as clients read them.
pub(crate) fn texts(problems: &[Problem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

/// Adds a problem unless it is known, or too many are.
pub(crate) fn push(problems: &mut Vec<Problem>, problem: Problem) {
    if problems.len() < PROBLEMS_MAX && !problems.contains(&problem) {
        problems.push(problem);
    }
}

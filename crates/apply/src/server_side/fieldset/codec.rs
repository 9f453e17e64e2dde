//! FieldsV1: a set as an object of objects, `f:`, `k:`, `v:` and `i:` before what finds a child and
//! `.` for a path that is a member and has others below.
//!
//! It is written as upstream writes it, byte for byte, keys in the order of elements. Readers take any order.

use pintle_value::{
    json::Reader,
    token::{Token, Tokens},
};

use super::{Builder, FieldSet, PathElement};

/// The key that says that the path itself is a member.
const SELF: &str = ".";

impl FieldSet {
    /// Reads FieldsV1. Keys of a sort that is not known are left out.
    pub fn from_json(text: &str) -> Result<Self, String> {
        Ok(read(&mut Reader::new(text))?.1)
    }

    /// The set as FieldsV1.
    pub fn to_json(&self) -> String {
        let mut out = Vec::with_capacity(64 * self.nodes.len());
        self.write(false, &mut out);
        String::from_utf8(out).expect("the writer writes UTF-8")
    }

    fn write(&self, member: bool, out: &mut Vec<u8>) {
        out.push(b'{');
        let begin = out.len();
        if member && !self.is_empty() {
            out.extend_from_slice(br#"".":{}"#);
        }
        for node in &self.nodes {
            if out.len() > begin {
                out.push(b',');
            }
            node.element.write(out);
            out.push(b':');
            node.below.write(node.member, out);
        }
        out.push(b'}');
    }

    /// Whether FieldsV1 has a path of the set, or one on the way to it; also where it cannot be read.
    pub(crate) fn may_meet(&self, text: &str) -> bool {
        !self.is_empty() && meets(self, &mut Reader::new(text)).unwrap_or(true)
    }
}

/// Whether the path of these keys is a member, and what is below it. An empty object is a member:
/// something must have been meant.
fn read(text: &mut Reader<'_>) -> Result<(bool, FieldSet), String> {
    let why = |error: pintle_value::Error| error.to_string();
    match text.value().map_err(why)? {
        Token::Null => return Ok((true, FieldSet::new())),
        Token::Object => {}
        other => return Err(format!("expected an object, found {}", other.kind().name())),
    }
    let (mut member, mut set) = (false, Builder::default());
    while let Some(key) = text.key().map_err(why)? {
        let element = if key == SELF { None } else { Some(PathElement::parse(key)?) };
        member |= element.is_none();
        match element.flatten() {
            Some(element) => {
                let (member, below) = read(text)?;
                set.add(|| element, member, below);
            }
            None => text.skip().map_err(why)?,
        }
    }
    let set = set.finish();
    Ok((member || set.is_empty(), set))
}

fn meets(set: &FieldSet, text: &mut Reader<'_>) -> Result<bool, String> {
    let why = |error: pintle_value::Error| error.to_string();
    if text.value().map_err(why)? != Token::Object {
        return Ok(false);
    }
    while let Some(key) = text.key().map_err(why)? {
        let element = if key == SELF { None } else { PathElement::parse(key)? };
        let found = match element.and_then(|element| set.find(&element)) {
            Some(node) => node.member || meets(&node.below, text)?,
            None => {
                text.skip().map_err(why)?;
                false
            }
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

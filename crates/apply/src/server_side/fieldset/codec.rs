//! FieldsV1: a set encoded as nested JSON objects. A key has the prefix `f:`, `k:`, `v:` or `i:`;
//! the key `.` marks a path that is itself a member and has others below it.
//!
//! The writer's output equals upstream's byte for byte, keys in the order of elements. The reader
//! accepts any order.

use std::borrow::Borrow;

use pintle_value::{
    Error, Value,
    json::{self, Reader},
    token::{Kind, Token, Tokens},
};

use super::{Builder, Element, FieldSet, Node, PathElement};

/// The key that marks the path itself as a member.
pub(super) const SELF: &str = ".";

/// The initial capacity: enough for the fields of most objects.
const BYTES_LIKELY: usize = 4096;

impl FieldSet {
    /// Decodes FieldsV1. Keys of an unknown type are skipped.
    pub fn from_json(text: &str) -> Result<Self, String> {
        Ok(read(&mut Reader::new(text))?.1)
    }

    /// Encodes the set as FieldsV1.
    pub fn to_json(&self) -> String {
        let mut out = Writer::new();
        self.write(false, &mut out);
        out.finish()
    }

    fn write(&self, member: bool, out: &mut Writer) {
        self.nodes.iter().for_each(|node| node.write(member, out));
    }

    /// Whether FieldsV1 contains all paths of the set; `false` for invalid FieldsV1.
    pub(crate) fn is_contained_in(&self, text: &str) -> bool {
        find(Search::All, self, false, &mut Reader::new(text)).is_ok_and(|found| found.all)
    }

    /// Whether FieldsV1 contains a path of the set or a path below one; `true` for invalid
    /// FieldsV1.
    pub(crate) fn may_intersect(&self, text: &str) -> bool {
        find(Search::Any, self, false, &mut Reader::new(text)).map_or(true, |found| found.all)
    }
}

impl Node {
    /// Writes the element and what is below it. `in_member` says whether its parent is a member.
    pub(super) fn write(&self, in_member: bool, out: &mut Writer) {
        let begin = out.open(&self.element, in_member);
        self.below.write(self.member, out);
        out.close(begin, self.member);
    }
}

/// Writes FieldsV1, element by element in ascending order.
pub(crate) struct Writer {
    out: Vec<u8>,
}

impl Writer {
    pub(crate) fn new() -> Self {
        let mut out = Vec::with_capacity(BYTES_LIKELY);
        out.push(b'{');
        Self { out }
    }

    /// Begins an element. `in_member` says whether its parent is a member. Returns the offset of
    /// the element.
    pub(crate) fn open<N: AsRef<str>, V: Borrow<Value>>(
        &mut self,
        element: &Element<N, V>,
        in_member: bool,
    ) -> usize {
        self.open_with(in_member, |out| write_key(element, out))
    }

    /// Like [`Writer::open`], for a member.
    #[inline]
    pub(crate) fn open_field(&mut self, name: &str, in_member: bool) -> usize {
        self.open_with(in_member, |out| json::write_string_after("f:", name, out))
    }

    #[inline]
    fn open_with(&mut self, in_member: bool, write_key: impl FnOnce(&mut Vec<u8>)) -> usize {
        let begin = self.out.len();
        self.separate(in_member);
        write_key(&mut self.out);
        self.out.extend_from_slice(b":{");
        begin
    }

    /// Copies an element with all that is below it from FieldsV1.
    pub(super) fn copy(&mut self, element: &str, in_member: bool) {
        self.separate(in_member);
        self.out.extend_from_slice(element.as_bytes());
    }

    /// Writes what stands before an element.
    #[inline]
    fn separate(&mut self, in_member: bool) {
        if self.out.last() != Some(&b'{') {
            self.out.push(b',');
        } else if in_member {
            self.out.extend_from_slice(br#"".":{},"#);
        }
    }

    /// Ends the element that began at `begin`. Drops it if it is neither a member nor has anything
    /// below it.
    #[inline]
    pub(crate) fn close(&mut self, begin: usize, member: bool) {
        if !member && self.out.last() == Some(&b'{') {
            self.out.truncate(begin);
        } else {
            self.out.push(b'}');
        }
    }

    pub(crate) fn finish(mut self) -> String {
        self.out.push(b'}');
        String::from_utf8(self.out).expect("the writer writes UTF-8")
    }
}

/// Writes an element as a key of FieldsV1, in quotes.
#[inline]
fn write_key<N: AsRef<str>, V: Borrow<Value>>(element: &Element<N, V>, out: &mut Vec<u8>) {
    match element {
        Element::Field(name) => return json::write_string_after("f:", name.as_ref(), out),
        Element::Key(fields) => {
            out.extend_from_slice(br#""k:{"#);
            for (at, (name, value)) in fields.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                quote_string(name.as_ref(), out);
                out.push(b':');
                quote(value.borrow(), out);
            }
            out.push(b'}');
        }
        Element::Value(value) => {
            out.extend_from_slice(br#""v:"#);
            quote(value.borrow(), out);
        }
        Element::Index(index) => {
            out.extend_from_slice(br#""i:"#);
            json::write(&Value::Int(*index), out);
        }
    }
    out.push(b'"');
}

/// Writes the JSON of a value as a part of a string.
fn quote(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::String(text) => quote_string(text, out),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => json::write(value, out),
        other => quote_json(&json::to_string(other), out),
    }
}

/// Writes the JSON of a string as a part of a string.
fn quote_string(text: &str, out: &mut Vec<u8>) {
    if json::is_plain(text) {
        out.extend_from_slice(br#"\""#);
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(br#"\""#);
    } else {
        quote_json(&json::to_string(&Value::from(text)), out);
    }
}

/// Writes JSON as a part of a string: as a string without quotes.
fn quote_json(json: &str, out: &mut Vec<u8>) {
    let begin = out.len();
    json::write_string(json, out);
    out.pop();
    out.remove(begin);
}

/// Decodes an object: whether its own path is a member, and the set below it. An empty object is a
/// member.
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

/// The condition that a search tests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Search {
    /// FieldsV1 contains every path of the set.
    All,
    /// FieldsV1 contains a path of the set or a path below one.
    Any,
}

/// The result of a search, and the reader's position.
struct Found {
    /// The searched paths were found.
    all: bool,
    /// The number of objects that the reader has begun and not ended. In the innermost object, the
    /// reader stands behind a key.
    open: usize,
}

/// Searches the next object of FieldsV1 for the set; under [`Search::All`], also for the path above
/// the set if `member`. Writers of FieldsV1 sort field names, so the search stops at the first name
/// after the last one in the set.
fn find(
    search: Search,
    set: &FieldSet,
    member: bool,
    text: &mut Reader<'_>,
) -> Result<Found, Error> {
    let (mut left, mut own, mut keys) = (set.nodes.len(), !member, 0);
    let found = |left: usize, own: bool, open| {
        Ok(Found { all: search == Search::All && left == 0 && own, open })
    };
    if text.value()? != Token::Object {
        return Ok(Found { all: false, open: 0 });
    }
    let last = set.nodes.last().map(|node| &node.element);
    while let Some(key) = text.key()? {
        keys += 1;
        own |= key == SELF;
        let element = PathElement::parse(key).ok().flatten();
        if let (Some(PathElement::Field(name)), Some(PathElement::Field(last))) = (&element, last)
            && name > last
        {
            return found(left, own, 1);
        }
        let Some(node) = element.and_then(|element| set.find(&element)) else {
            text.skip()?;
            continue;
        };
        let below = match search {
            Search::Any if node.member => Found { all: true, open: 0 },
            _ => find(search, &node.below, node.member, text)?,
        };
        if below.all == (search == Search::Any) {
            return Ok(below);
        }
        left = left.saturating_sub(1);
        if below.open > 0 {
            if last == Some(&node.element) {
                return found(left, own, below.open + 1);
            }
            text.skip()?;
            (0..below.open).try_for_each(|_| text.skip_rest(Kind::Object))?;
        }
    }
    found(left, own || keys == 0, 0)
}

//! FieldsV1: a set as an object of objects, `f:`, `k:`, `v:` and `i:` before what finds a child and
//! `.` for a path that is a member and has others below.
//!
//! It is written as upstream writes it, byte for byte, keys in the order of elements. Readers take any order.

use pintle_value::{
    Error,
    json::Reader,
    token::{Kind, Token, Tokens},
};

use super::{Builder, FieldSet, PathElement};

/// The key that says that the path itself is a member.
const SELF: &str = ".";

/// What the fields of most objects take as FieldsV1.
const BYTES_LIKELY: usize = 4096;

impl FieldSet {
    /// Reads FieldsV1. Keys of a sort that is not known are left out.
    pub fn from_json(text: &str) -> Result<Self, String> {
        Ok(read(&mut Reader::new(text))?.1)
    }

    /// The set as FieldsV1.
    pub fn to_json(&self) -> String {
        let mut out = Writer::new();
        self.write(false, &mut out);
        out.finish()
    }

    fn write(&self, member: bool, out: &mut Writer) {
        for node in &self.nodes {
            let begin = out.open(&node.element, member);
            node.below.write(node.member, out);
            out.close(begin, node.member);
        }
    }

    /// Whether FieldsV1 has all paths of the set; not, where it cannot be read.
    pub(crate) fn is_within(&self, text: &str) -> bool {
        find(Sought::All, self, false, &mut Reader::new(text)).is_ok_and(|found| found.all)
    }

    /// Whether FieldsV1 has a path of the set, or one on the way to it; also where it cannot be read.
    pub(crate) fn may_meet(&self, text: &str) -> bool {
        find(Sought::Any, self, false, &mut Reader::new(text)).map_or(true, |found| found.all)
    }
}

/// Writes FieldsV1, element by element in their order.
pub(crate) struct Writer {
    out: Vec<u8>,
    room: Vec<u8>,
}

impl Writer {
    pub(crate) fn new() -> Self {
        let mut out = Vec::with_capacity(BYTES_LIKELY);
        out.push(b'{');
        Self { out, room: Vec::new() }
    }

    /// Begins an element below a path that is a member or not; gives where it begins.
    pub(crate) fn open(&mut self, element: &PathElement, in_member: bool) -> usize {
        let begin = self.out.len();
        if self.out.last() != Some(&b'{') {
            self.out.push(b',');
        } else if in_member {
            self.out.extend_from_slice(br#"".":{},"#);
        }
        element.write(&mut self.out, &mut self.room);
        self.out.extend_from_slice(b":{");
        begin
    }

    /// Ends the element that began there; if it is no member and has nothing below, it is as if it had not
    /// been.
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

/// What a search is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sought {
    /// Every path of the set.
    All,
    /// Any path of the set, or one on the way to it.
    Any,
}

/// How far a search went.
struct Found {
    /// What was sought is there.
    all: bool,
    /// So many objects are not read to their end, the innermost to behind a key.
    open: usize,
}

/// Looks for the set in the next object of FieldsV1, and, where all is sought, for what is above the set if
/// that is a member. Whoever writes FieldsV1 sorts the names of members, so what is behind the last that is
/// sought is not read.
fn find(
    sought: Sought,
    set: &FieldSet,
    member: bool,
    text: &mut Reader<'_>,
) -> Result<Found, Error> {
    let (mut left, mut own, mut keys) = (set.nodes.len(), !member, 0);
    let found = |left: usize, own: bool, open| {
        Ok(Found { all: sought == Sought::All && left == 0 && own, open })
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
        let below = match sought {
            Sought::Any if node.member => Found { all: true, open: 0 },
            _ => find(sought, &node.below, node.member, text)?,
        };
        if below.all == (sought == Sought::Any) {
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

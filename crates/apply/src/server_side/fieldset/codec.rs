//! FieldsV1: a set as an object of objects, `f:`, `k:`, `v:` and `i:` before what finds a child and
//! `.` for a path that is a member and has others below.
//!
//! Upstream orders the keys as elements; an object tree orders them as texts, and the schema's encoder
//! puts that right. Readers take any order.

use pintle_value::{Map, Str, Value, json};

use super::{Builder, FieldSet, PathElement};

/// The key that says that the path itself is a member.
const SELF: &str = ".";

impl FieldSet {
    /// Reads FieldsV1. Keys of a sort that is not known are left out.
    pub fn from_value(fields: &Value) -> Result<Self, String> {
        match fields {
            Value::Null => Ok(Self::new()),
            Value::Object(members) => Ok(read(members)?.1),
            other => Err(format!("expected an object, found {}", other.type_name())),
        }
    }

    /// The set as FieldsV1.
    pub fn to_value(&self) -> Value {
        self.tree(false).into()
    }

    fn tree(&self, member: bool) -> Map {
        let own = (member && !self.is_empty()).then(|| (Str::from(SELF), Value::object()));
        let nodes = self.nodes.iter();
        let nodes = nodes.map(|n| (n.element.to_text(), n.below.tree(n.member).into()));
        own.into_iter().chain(nodes).collect()
    }

    /// Whether the set is written like this.
    pub(crate) fn is_written(&self, fields: &Value) -> bool {
        fields.as_object().is_some_and(|fields| self.is_tree(false, fields))
    }

    fn is_tree(&self, member: bool, tree: &Map) -> bool {
        let own = usize::from(member && !self.is_empty());
        if tree.len() != self.nodes.len() + own || (own == 1 && !tree.contains_key(SELF)) {
            return false;
        }
        // Where no key is a number, the two are in the same order.
        self.nodes.iter().zip(&tree.as_slice()[own..]).all(|(node, (key, below))| {
            let below = if node.element.is_text(key) {
                Some(below)
            } else {
                tree.get(&node.element.to_text())
            };
            below
                .and_then(Value::as_object)
                .is_some_and(|tree| node.below.is_tree(node.member, tree))
        })
    }

    /// The set as the JSON that upstream writes, byte for byte.
    pub fn to_json(&self) -> String {
        let mut out = Vec::new();
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
            json::write_string(&node.element.to_text(), out);
            out.push(b':');
            node.below.write(node.member, out);
        }
        out.push(b'}');
    }
}

/// Whether the path of these keys is a member, and what is below it. An empty object is a member:
/// something must have been meant.
fn read(members: &Map) -> Result<(bool, FieldSet), String> {
    let (mut member, mut set) = (false, Builder::with_room(members.len()));
    for (key, below) in members.iter() {
        if key == SELF {
            member = true;
            continue;
        }
        let Some(element) = PathElement::parse(key)? else { continue };
        let (member, below) = match below {
            Value::Null => (true, FieldSet::new()),
            Value::Object(below) => read(below)?,
            other => return Err(format!("expected an object, found {}", other.type_name())),
        };
        set.add(|| element, member, below);
    }
    let set = set.finish();
    Ok((member || set.is_empty(), set))
}

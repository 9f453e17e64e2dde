//! Adds paths to FieldsV1 without decoding it: a write mostly adds a few fields to the hundreds that
//! its manager owns. What lies beside the added paths is copied.

use pintle_value::{
    json::Reader,
    token::{Token, Tokens},
};

use super::codec::{SELF, Writer};
use super::{FieldSet, PathElement};

impl FieldSet {
    /// Returns FieldsV1 with the paths of this set added. Only the levels that these paths lie in are
    /// read, and the rest is copied unchecked. `None` where only decoding can tell: if another writer
    /// ordered these levels, or if they are invalid.
    pub(crate) fn added_to(&self, text: &str) -> Option<String> {
        let mut addition = Addition { text, reader: Reader::of_valid(text), out: Writer::new() };
        addition.object(self, None)?;
        Some(addition.out.finish())
    }
}

struct Addition<'t> {
    /// FieldsV1 that is valid JSON.
    text: &'t str,
    reader: Reader<'t>,
    out: Writer,
}

/// A key of FieldsV1, or the end of an object.
enum Key {
    Path(PathElement),
    Own,
    End,
}

impl Addition<'_> {
    /// Copies the content of the next object and adds the set to it. `is_added` says whether the
    /// object's own path is added, too; the root has none. Returns whether that path is a member.
    fn object(&mut self, set: &FieldSet, is_added: Option<bool>) -> Option<bool> {
        if self.reader.value().ok()? != Token::Object {
            return None;
        }
        let mut from = self.reader.offset();
        let mut key = self.key()?;
        // An empty object is a member.
        let was_member = !matches!(key, Key::Path(_));
        if let Key::Own = key {
            self.reader.skip().ok()?;
            from = self.reader.offset();
            key = self.key()?;
        }
        let is_member = is_added.is_some_and(|is_added| is_added || was_member);
        let (mut nodes, mut last) = (&set.nodes[..], None);
        while let Key::Path(element) = key {
            if last.as_ref() >= Some(&element) {
                return None;
            }
            let (earlier, rest) =
                nodes.split_at(nodes.partition_point(|node| node.element < element));
            earlier.iter().for_each(|node| node.write(is_member, &mut self.out));
            nodes = rest;
            match rest.split_first() {
                Some((node, later)) if node.element == element => {
                    let begin = self.out.open(&element, is_member);
                    let is_child_member = self.object(&node.below, Some(node.member))?;
                    self.out.close(begin, is_child_member);
                    nodes = later;
                }
                _ => {
                    self.reader.skip().ok()?;
                    let copied = &self.text[from..self.reader.offset()];
                    self.out.copy(copied.trim_start_matches(','), is_member);
                }
            }
            last = Some(element);
            from = self.reader.offset();
            key = self.key()?;
        }
        nodes.iter().for_each(|node| node.write(is_member, &mut self.out));
        matches!(key, Key::End).then_some(is_member)
    }

    /// Reads the next key; `None` for one that this server does not write.
    fn key(&mut self) -> Option<Key> {
        match self.reader.key().ok()? {
            None => Some(Key::End),
            Some(SELF) => Some(Key::Own),
            Some(key) => PathElement::parse(key).ok()?.map(Key::Path),
        }
    }
}

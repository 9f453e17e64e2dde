//! The reader: stores granit-parser's events in a flat list of nodes, so that aliases can be read
//! repeatedly, and yields the tokens of the equivalent JSON.

use super::{
    nodes::{Node, Nodes, Tag},
    resolve::{Scalar, general, json_number, resolve},
    yaml_error,
};
use crate::{
    DEPTH_MAX, Error, json,
    token::{Token, Tokens},
};

/// Reads tokens from YAML text.
///
/// A merge key (`<<`) is replaced by the members of the map that it names, at its own position. Of
/// equal names the last one wins, merged or not. This is go-yaml v2's behaviour and differs from
/// the YAML specification.
pub struct Reader<'a> {
    nodes: Nodes<'a>,
    /// The number of documents begun.
    documents: usize,
    /// The node that the next [`Tokens::value`] reads; `None` for an empty document.
    next: Option<Next>,
    /// The open lists and maps, innermost last.
    open: Vec<Rest>,
    /// The last text that does not occur literally in the input.
    scratch: String,
    aliases: AliasBudget,
}

/// A node to read, and whether it was reached through an alias.
#[derive(Clone, Copy)]
struct Next {
    at: usize,
    aliased: bool,
}

/// The remaining nodes of an open list or map.
struct Rest {
    at: usize,
    end: usize,
    aliased: bool,
    /// Whether a merge key opened the map, so that its members belong to the enclosing map.
    merged: bool,
}

/// The location of a text.
enum Text {
    Node(usize),
    Scratch,
}

impl<'a> Reader<'a> {
    /// A reader at the first document of `text`.
    pub fn new(text: &'a str) -> Result<Self, Error> {
        let mut reader = Self {
            nodes: Nodes::load(text)?,
            documents: 0,
            next: None,
            open: Vec::new(),
            scratch: String::new(),
            aliases: AliasBudget::default(),
        };
        reader.next_document();
        Ok(reader)
    }

    /// Advances to the next document. Returns whether there is one.
    pub fn next_document(&mut self) -> bool {
        let Some(&at) = self.nodes.documents.get(self.documents) else { return false };
        self.documents += 1;
        self.next = Some(Next { at, aliased: false });
        true
    }

    /// The duplicate keys in go-yaml's words: `line 3: key "a" already set in map`.
    pub fn duplicates(&self) -> impl Iterator<Item = String> {
        self.nodes.duplicates().map(|duplicate| duplicate.to_string())
    }

    /// The keys of the first document's map, with their lines counted from 1.
    pub(super) fn key_lines(&self) -> Vec<(String, u32)> {
        let Some(&root) = self.nodes.documents.first() else { return Vec::new() };
        let Node::Map { end } = self.nodes[root] else { return Vec::new() };
        let mut lines = Vec::new();
        let mut at = root + 1;
        while at < end {
            if let Node::Scalar { text, .. } = &self.nodes[at] {
                lines.push((text.to_string(), self.nodes.line(at)));
            }
            at = self.nodes.after(self.nodes.after(at));
        }
        lines
    }

    fn open(&mut self, at: usize, aliased: bool, merged: bool) -> Result<(), Error> {
        let end = self.nodes.after(at);
        self.open.push(Rest { at: at + 1, end, aliased, merged });
        if self.open.len() > DEPTH_MAX { Err(Error::Depth) } else { Ok(()) }
    }

    /// Resolves an alias to its target.
    fn follow(&mut self, mut next: Next) -> Result<Next, Error> {
        if let Node::Alias { target } = self.nodes[next.at] {
            self.aliases.count(next.aliased, 0)?;
            next = Next { at: target, aliased: true };
        }
        let size = match &self.nodes[next.at] {
            Node::Scalar { text, .. } => text.len(),
            _ => 0,
        };
        self.aliases.count(next.aliased, size)?;
        Ok(next)
    }

    /// Opens the maps that a merge key names. The one with the highest precedence is opened first,
    /// so that its members are read last.
    fn merge(&mut self, value: Next) -> Result<(), Error> {
        let next = self.follow(value)?;
        match self.nodes[next.at] {
            Node::Map { .. } => self.open(next.at, next.aliased, true),
            Node::List { end } => {
                let mut at = next.at + 1;
                while at < end {
                    let item = self.follow(Next { at, aliased: next.aliased })?;
                    if !matches!(self.nodes[item.at], Node::Map { .. }) {
                        return Err(merge_error());
                    }
                    self.open(item.at, item.aliased, true)?;
                    at = self.nodes.after(at);
                }
                Ok(())
            }
            _ => Err(merge_error()),
        }
    }

    /// Returns the text of a key. A key that is not a string becomes its textual form.
    fn key_text(&mut self, key: Next) -> Result<Text, Error> {
        let key = self.follow(key)?;
        let Node::Scalar { text, tag } = &self.nodes[key.at] else {
            return Err(yaml_error("yaml: invalid map key: a list or a map"));
        };
        self.scratch.clear();
        match resolve_tagged(text, *tag)? {
            Scalar::String | Scalar::Timestamp | Scalar::Merge if *tag == Tag::Binary => {
                self.scratch = text_of_base64(text)?;
            }
            Scalar::String | Scalar::Timestamp | Scalar::Merge => return Ok(Text::Node(key.at)),
            Scalar::Bool(b) => self.scratch.push_str(if b { "true" } else { "false" }),
            Scalar::Int(n) => self.scratch.push_str(itoa::Buffer::new().format(n)),
            Scalar::Float(x) if x.is_nan() => self.scratch.push_str(".nan"),
            Scalar::Float(x) if x.is_infinite() => {
                self.scratch.push_str(if x > 0.0 { ".inf" } else { "-.inf" });
            }
            // Upstream formats float keys with the precision of 32 bits.
            Scalar::Float(x) => self.scratch.push_str(&general(&format!("{:e}", x as f32))),
            Scalar::Null => {
                return Err(yaml_error("unsupported map key of type: %!s(<nil>), key: <nil>"));
            }
        }
        Ok(Text::Scratch)
    }
}

impl Tokens for Reader<'_> {
    fn value(&mut self) -> Result<Token<'_>, Error> {
        let Some(next) = self.next.take() else { return Ok(Token::Null) };
        let next = self.follow(next)?;
        let begun = match self.nodes[next.at] {
            Node::List { .. } => Token::Array,
            Node::Map { .. } => Token::Object,
            Node::Scalar { .. } | Node::Alias { .. } => Token::Null,
        };
        if begun != Token::Null {
            self.open(next.at, next.aliased, false)?;
            return Ok(begun);
        }
        // An alias never points to an alias, so this node is a scalar.
        let Node::Scalar { text, tag } = &self.nodes[next.at] else { return Ok(begun) };
        self.scratch.clear();
        Ok(match resolve_tagged(text, *tag)? {
            Scalar::Null => Token::Null,
            Scalar::Bool(b) => Token::Bool(b),
            Scalar::Int(n) => {
                self.scratch.push_str(itoa::Buffer::new().format(n));
                Token::Number(&self.scratch)
            }
            Scalar::Float(x) => {
                json_number(x, &mut self.scratch)
                    .map_err(|word| yaml_error(&format!("json: unsupported value: {word}")))?;
                Token::Number(&self.scratch)
            }
            _ if *tag == Tag::Binary => {
                self.scratch = text_of_base64(text)?;
                Token::String(&self.scratch)
            }
            Scalar::String | Scalar::Timestamp | Scalar::Merge => Token::String(text),
        })
    }

    fn item(&mut self) -> Result<bool, Error> {
        let Some(rest) = self.open.last_mut() else { return Ok(false) };
        if rest.at == rest.end {
            self.open.pop();
            return Ok(false);
        }
        self.next = Some(Next { at: rest.at, aliased: rest.aliased });
        rest.at = self.nodes.after(rest.at);
        Ok(true)
    }

    fn key(&mut self) -> Result<Option<&str>, Error> {
        let text = loop {
            let Some(rest) = self.open.last_mut() else { return Ok(None) };
            if rest.at == rest.end {
                let merged = rest.merged;
                self.open.pop();
                if merged {
                    continue;
                }
                return Ok(None);
            }
            let key = Next { at: rest.at, aliased: rest.aliased };
            let value = Next { at: self.nodes.after(key.at), aliased: rest.aliased };
            rest.at = self.nodes.after(value.at);
            match &self.nodes[key.at] {
                Node::Scalar { text, tag: Tag::None } if text == "<<" => self.merge(value)?,
                _ => {
                    let text = self.key_text(key)?;
                    self.next = Some(value);
                    break text;
                }
            }
        };
        Ok(Some(match text {
            Text::Scratch => &self.scratch,
            Text::Node(at) => match &self.nodes[at] {
                Node::Scalar { text, .. } => text,
                _ => "",
            },
        }))
    }

    fn json(&mut self) -> Result<Box<str>, Error> {
        self.tree().map(|value| json::to_string(&value).into())
    }

    fn end(&mut self) -> Result<(), Error> {
        let empty = |&at: &usize| match &self.nodes[at] {
            Node::Scalar { text, tag } => matches!(resolve_tagged(text, *tag), Ok(Scalar::Null)),
            _ => false,
        };
        if !self.nodes.documents[self.documents..].iter().all(empty) {
            return Err(yaml_error("yaml: more than one document"));
        }
        Ok(())
    }
}

/// Resolves a scalar by its text and tag.
fn resolve_tagged(text: &str, tag: Tag) -> Result<Scalar, Error> {
    if matches!(tag, Tag::Text | Tag::Binary) {
        return Ok(Scalar::String);
    }
    let found = resolve(text);
    match (tag, found) {
        (Tag::Null, Scalar::Null)
        | (Tag::Bool, Scalar::Bool(_))
        | (Tag::Int, Scalar::Int(_))
        | (Tag::Float, Scalar::Float(_))
        | (Tag::None, _) => Ok(found),
        (Tag::Float, Scalar::Int(n)) => Ok(Scalar::Float(n as f64)),
        _ => {
            let (found, tag) = (found.tag(), tag.name());
            Err(yaml_error(&format!("yaml: cannot decode {found} `{text}` as a {tag}")))
        }
    }
}

/// Decodes a `!!binary` scalar to text.
fn text_of_base64(text: &str) -> Result<String, Error> {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let bytes = STANDARD
        .decode(text.replace(['\n', '\r'], ""))
        .map_err(|_| yaml_error("yaml: !!binary value contains invalid base64 data"))?;
    Ok(json::text(&bytes).into_owned())
}

fn merge_error() -> Error {
    yaml_error("yaml: map merge requires map or sequence of maps as the value")
}

/// Bounds the expansion of aliases. The limit on the share of nodes that come from aliases is
/// go-yaml's: high for small documents, lower for large ones. The text that aliases repeat has a
/// limit of its own.
#[derive(Default)]
struct AliasBudget {
    all: u32,
    aliased: u32,
    aliased_bytes: usize,
}

/// The maximum number of text bytes that aliases may repeat.
const ALIASED_BYTES_MAX: usize = 8 << 20;

impl AliasBudget {
    /// Counts a node and its text.
    fn count(&mut self, aliased: bool, bytes: usize) -> Result<(), Error> {
        const SMALL: f64 = 400_000.0;
        const LARGE: f64 = 4_000_000.0;
        self.all = self.all.saturating_add(1);
        if !aliased {
            return Ok(());
        }
        self.aliased += 1;
        self.aliased_bytes += bytes;
        let all = f64::from(self.all);
        let position = ((all - SMALL) / (LARGE - SMALL)).clamp(0.0, 1.0);
        let allowed = 0.99 - 0.89 * position;
        let too_many =
            self.aliased > 100 && self.all > 1000 && f64::from(self.aliased) / all > allowed;
        if too_many || self.aliased_bytes > ALIASED_BYTES_MAX {
            return Err(yaml_error("yaml: document contains excessive aliasing"));
        }
        Ok(())
    }
}

//! The reader: granit-parser's events, kept as a flat list of nodes so that aliases can be read again,
//! as the tokens that JSON of the same meaning has.

use super::{
    nodes::{Node, Nodes, Tag},
    resolve::{Scalar, general, json_number, resolve},
};
use crate::{
    DEPTH_MAX, Error,
    token::{Token, Tokens},
};

/// Reads tokens from YAML text.
///
/// A merge key (`<<`) is read as the members of what it names, at its own position; a later member of the
/// same name counts, be it merged or not. (YAML says otherwise, go-yaml v2 does so.)
pub struct Reader<'a> {
    nodes: Nodes<'a>,
    /// How many documents have been begun.
    documents: usize,
    /// The node that the next [`Tokens::value`] gives; `None` for an empty document.
    next: Option<Next>,
    /// The lists and maps that are open, innermost last.
    open: Vec<Rest>,
    /// Holds the last text that is not in the input as it is.
    made: String,
    steps: Steps,
}

/// A node to read, and whether the way to it led over an alias.
#[derive(Clone, Copy)]
struct Next {
    at: usize,
    aliased: bool,
}

/// What is still to come of an open list or map.
struct Rest {
    at: usize,
    end: usize,
    aliased: bool,
    /// The map stands for a merge key in the map before it.
    merged: bool,
}

/// Where a text is.
enum Text {
    Node(usize),
    Made,
}

impl<'a> Reader<'a> {
    /// Reads from the first document of `text`.
    pub fn new(text: &'a str) -> Result<Self, Error> {
        let mut reader = Self {
            nodes: Nodes::load(text)?,
            documents: 0,
            next: None,
            open: Vec::new(),
            made: String::new(),
            steps: Steps::default(),
        };
        reader.next_document();
        Ok(reader)
    }

    /// Goes on to the next document, if there is one.
    pub fn next_document(&mut self) -> bool {
        let Some(&at) = self.nodes.documents.get(self.documents) else { return false };
        self.documents += 1;
        self.next = Some(Next { at, aliased: false });
        true
    }

    /// The keys that come more than once, each as go-yaml says it: `line 3: key "a" already set in
    /// map`.
    pub fn duplicates(&self) -> impl Iterator<Item = String> {
        self.nodes.duplicates().map(|duplicate| duplicate.to_string())
    }

    fn open(&mut self, at: usize, aliased: bool, merged: bool) -> Result<(), Error> {
        let end = self.nodes.after(at);
        self.open.push(Rest { at: at + 1, end, aliased, merged });
        if self.open.len() > DEPTH_MAX { Err(Error::Depth) } else { Ok(()) }
    }

    /// Follows an alias to the node that it stands for.
    fn follow(&mut self, mut next: Next) -> Result<Next, Error> {
        if let Node::Alias { target } = self.nodes[next.at] {
            self.steps.count(next.aliased, 0)?;
            next = Next { at: target, aliased: true };
        }
        let size = match &self.nodes[next.at] {
            Node::Scalar { text, .. } => text.len(),
            _ => 0,
        };
        self.steps.count(next.aliased, size)?;
        Ok(next)
    }

    /// Opens the map or the maps that stand behind a merge key, the one that counts most last.
    fn merge(&mut self, value: Next) -> Result<(), Error> {
        let next = self.follow(value)?;
        match self.nodes[next.at] {
            Node::Map { .. } => self.open(next.at, next.aliased, true),
            Node::List { end } => {
                let mut at = next.at + 1;
                while at < end {
                    let item = self.follow(Next { at, aliased: next.aliased })?;
                    if !matches!(self.nodes[item.at], Node::Map { .. }) {
                        return Err(merge_refused());
                    }
                    self.open(item.at, item.aliased, true)?;
                    at = self.nodes.after(at);
                }
                Ok(())
            }
            _ => Err(merge_refused()),
        }
    }

    /// The text of a key: keys that are no text become what they would be written as.
    fn key_text(&mut self, key: Next) -> Result<Text, Error> {
        let key = self.follow(key)?;
        let Node::Scalar { text, tag } = &self.nodes[key.at] else {
            return Err(refused("yaml: invalid map key: a list or a map"));
        };
        self.made.clear();
        match meaning(text, *tag)? {
            Scalar::String | Scalar::Timestamp | Scalar::Merge if *tag == Tag::Binary => {
                self.made = text_of_base64(text)?;
            }
            Scalar::String | Scalar::Timestamp | Scalar::Merge => return Ok(Text::Node(key.at)),
            Scalar::Bool(b) => self.made.push_str(if b { "true" } else { "false" }),
            Scalar::Int(n) => self.made.push_str(itoa::Buffer::new().format(n)),
            Scalar::Float(x) if x.is_nan() => self.made.push_str(".nan"),
            Scalar::Float(x) if x.is_infinite() => {
                self.made.push_str(if x > 0.0 { ".inf" } else { "-.inf" });
            }
            // Upstream writes keys with the precision of 32 bits.
            Scalar::Float(x) => self.made.push_str(&general(&format!("{:e}", x as f32))),
            Scalar::Null => {
                return Err(refused("unsupported map key of type: %!s(<nil>), key: <nil>"));
            }
        }
        Ok(Text::Made)
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
        // No alias stands for an alias, so what `follow` gave is a scalar.
        let Node::Scalar { text, tag } = &self.nodes[next.at] else { return Ok(begun) };
        self.made.clear();
        Ok(match meaning(text, *tag)? {
            Scalar::Null => Token::Null,
            Scalar::Bool(b) => Token::Bool(b),
            Scalar::Int(n) => {
                self.made.push_str(itoa::Buffer::new().format(n));
                Token::Number(&self.made)
            }
            Scalar::Float(x) => {
                json_number(x, &mut self.made)
                    .map_err(|word| refused(&format!("json: unsupported value: {word}")))?;
                Token::Number(&self.made)
            }
            _ if *tag == Tag::Binary => {
                self.made = text_of_base64(text)?;
                Token::String(&self.made)
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
            Text::Made => &self.made,
            Text::Node(at) => match &self.nodes[at] {
                Node::Scalar { text, .. } => text,
                _ => "",
            },
        }))
    }

    fn end(&mut self) -> Result<(), Error> {
        let empty = |&at: &usize| match &self.nodes[at] {
            Node::Scalar { text, tag } => matches!(meaning(text, *tag), Ok(Scalar::Null)),
            _ => false,
        };
        if !self.nodes.documents[self.documents..].iter().all(empty) {
            return Err(refused("yaml: more than one document"));
        }
        Ok(())
    }
}

/// What a scalar means, given its tag.
fn meaning(text: &str, tag: Tag) -> Result<Scalar, Error> {
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
            Err(refused(&format!("yaml: cannot decode {found} `{text}` as a {tag}")))
        }
    }
}

/// The text that a `!!binary` scalar means.
fn text_of_base64(text: &str) -> Result<String, Error> {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let bytes = STANDARD
        .decode(text.replace(['\n', '\r'], ""))
        .map_err(|_| refused("yaml: !!binary value contains invalid base64 data"))?;
    Ok(crate::json::text(&bytes).into_owned())
}

/// An error in the words of upstream's converter.
pub(super) fn refused(message: &str) -> Error {
    Error::Yaml(message.to_owned())
}

fn merge_refused() -> Error {
    refused("yaml: map merge requires map or sequence of maps as the value")
}

/// The bound on aliases: go-yaml's, which lets most of a small document come from them, and less of a
/// large one; and one on the text that they repeat.
#[derive(Default)]
struct Steps {
    all: u32,
    aliased: u32,
    aliased_bytes: usize,
}

/// So much text may come from aliases.
const ALIASED_BYTES_MAX: usize = 8 << 20;

impl Steps {
    /// Counts a node, and the text that it holds.
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
            return Err(refused("yaml: document contains excessive aliasing"));
        }
        Ok(())
    }
}

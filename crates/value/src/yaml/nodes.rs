//! The nodes of YAML text, in document order.

use std::{borrow::Cow, collections::BTreeSet, fmt, ops::Index};

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError};

use super::{
    resolve::{Scalar, resolve},
    yaml_error,
};
use crate::{DEPTH_MAX, Error};

/// The nodes of all documents of a text.
pub(super) struct Nodes<'a> {
    nodes: Vec<Node<'a>>,
    /// The line on which each node begins, counted from 1.
    lines: Vec<u32>,
    /// The root node of each document.
    pub(super) documents: Vec<usize>,
}

/// A node. The children of a list or map follow it, up to `end`.
pub(super) enum Node<'a> {
    Scalar { text: Cow<'a, str>, tag: Tag },
    List { end: usize },
    Map { end: usize },
    Alias { target: usize },
}

/// The type of a scalar according to its tag and style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    /// No tag, plain style: the text decides.
    None,
    /// Text: not in plain style, or with a tag other than those below.
    Text,
    Null,
    Bool,
    Int,
    Float,
    /// Base64.
    Binary,
}

impl Tag {
    fn of(tag: Option<&granit_parser::Tag>, style: ScalarStyle) -> Self {
        let Some(tag) = tag else {
            return if style == ScalarStyle::Plain { Self::None } else { Self::Text };
        };
        match tag.suffix_in_namespace("tag:yaml.org,2002:").as_deref() {
            Some("null") => Self::Null,
            Some("bool") => Self::Bool,
            Some("int") => Self::Int,
            Some("float") => Self::Float,
            Some("binary") => Self::Binary,
            _ => Self::Text,
        }
    }

    /// The tag as it is written in YAML.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None | Self::Text => "!!str",
            Self::Null => "!!null",
            Self::Bool => "!!bool",
            Self::Int => "!!int",
            Self::Float => "!!float",
            Self::Binary => "!!binary",
        }
    }
}

/// A duplicate key; displayed in go-yaml's words.
pub(super) struct Duplicate<'n> {
    line: u32,
    key: &'n str,
    /// Whether the key is not a string.
    plain: bool,
}

impl fmt::Display for Duplicate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, key, plain } = self;
        if *plain {
            write!(f, "line {line}: key {key} already set in map")
        } else {
            write!(f, "line {line}: key {key:?} already set in map")
        }
    }
}

/// Whether a plain scalar resolves to a type other than text.
fn resolves(text: &str, tag: Tag) -> bool {
    tag == Tag::None && !matches!(resolve(text), Scalar::String | Scalar::Timestamp | Scalar::Merge)
}

/// The `end` of a list or map that is still open.
const OPEN: usize = 0;

impl<'a> Nodes<'a> {
    /// Parses all of `text`.
    pub(super) fn load(text: &'a str) -> Result<Self, Error> {
        let options = granit_parser::options! {
            emit_comments: false,
            emit_unresolved_aliases: true,
            flow_nesting_limit: DEPTH_MAX,
            block_nesting_limit: DEPTH_MAX,
        };
        let mut this = Self { nodes: Vec::new(), lines: Vec::new(), documents: Vec::new() };
        let mut open = Vec::new();
        // The number of open flow collections, with everything nested in them.
        let mut flow = 0_usize;
        // Node indices of the anchors, sorted by anchor id.
        let mut anchors: Vec<(usize, usize)> = Vec::new();
        for event in Parser::new_from_str_with_options(text, options) {
            let (event, span) = event.map_err(scan_error)?;
            let at = this.nodes.len();
            if open.is_empty() && event.is_node() {
                this.documents.push(at);
            }
            let start = span.start.byte_offset().unwrap_or_default();
            if flow == 0 && event.is_node() && is_indented_by_tab(text, start) {
                return Err(tab_error(span.start.line()));
            }
            anchors.extend(event.anchor_id().map(|id| (id, at)));
            let line = u32::try_from(span.start.line()).unwrap_or(u32::MAX);
            match event {
                Event::Scalar(text, style, _, tag) => {
                    let tag = Tag::of(tag.as_deref(), style);
                    this.push(Node::Scalar { text, tag }, line);
                }
                Event::SequenceStart(..) => {
                    flow += usize::from(flow > 0 || is_bracket(text, start));
                    open.push(at);
                    this.push(Node::List { end: OPEN }, line);
                }
                Event::MappingStart(..) => {
                    flow += usize::from(flow > 0 || is_bracket(text, start));
                    open.push(at);
                    this.push(Node::Map { end: OPEN }, line);
                }
                Event::SequenceEnd | Event::MappingEnd => {
                    flow = flow.saturating_sub(1);
                    this.close(open.pop());
                }
                Event::Alias(id) => {
                    let found = anchors.binary_search_by_key(&id, |(id, _)| *id);
                    let target = found.map_or(at, |i| anchors[i].1);
                    if target == at || this.is_open(target) {
                        let name = span.slice(text).unwrap_or_default().trim_start_matches('*');
                        let message = format!("yaml: anchor '{name}' value contains itself");
                        return Err(yaml_error(&message));
                    }
                    this.push(Node::Alias { target }, line);
                }
                Event::UnresolvedAlias(name) => {
                    return Err(yaml_error(&format!("yaml: unknown anchor '{name}' referenced")));
                }
                _ => {}
            }
        }
        Ok(this)
    }

    fn push(&mut self, node: Node<'a>, line: u32) {
        self.nodes.push(node);
        self.lines.push(line);
    }

    fn close(&mut self, at: Option<usize>) {
        let len = self.nodes.len();
        if let Some(Node::List { end } | Node::Map { end }) = at.map(|at| &mut self.nodes[at]) {
            *end = len;
        }
    }

    fn is_open(&self, at: usize) -> bool {
        matches!(self.nodes[at], Node::List { end: OPEN } | Node::Map { end: OPEN })
    }

    /// The line on which a node begins, counted from 1.
    pub(super) fn line(&self, at: usize) -> u32 {
        self.lines.get(at).copied().unwrap_or_default()
    }

    /// The index of the node after the one at `at` and its children.
    pub(super) fn after(&self, at: usize) -> usize {
        match self.nodes[at] {
            Node::List { end } | Node::Map { end } => end,
            Node::Scalar { .. } | Node::Alias { .. } => at + 1,
        }
    }

    /// The duplicate keys, with the lines of their values, ordered by the end of the value: go-yaml
    /// reads a value before it checks its key.
    pub(super) fn duplicates(&self) -> impl Iterator<Item = Duplicate<'_>> {
        let maps = self.nodes.iter().enumerate().filter_map(|(at, node)| match node {
            Node::Map { end } => Some((at + 1, *end)),
            _ => None,
        });
        let mut found: Vec<(usize, Duplicate<'_>)> =
            maps.flat_map(|(at, end)| self.repeated_keys(at, end)).collect();
        found.sort_by_key(|(end, _)| *end);
        // Of values that end together, the innermost comes first; it began last.
        found.chunk_by_mut(|(a, _), (b, _)| a == b).for_each(<[_]>::reverse);
        found.into_iter().map(|(_, duplicate)| duplicate)
    }

    /// The keys that are repeated between two nodes, each with the index of the node after its
    /// value.
    fn repeated_keys(&self, mut at: usize, end: usize) -> Vec<(usize, Duplicate<'_>)> {
        let (mut seen, mut again) = (BTreeSet::new(), Vec::new());
        while at < end {
            let value = self.after(at);
            if let Node::Scalar { text, tag } = &self.nodes[at]
                && !(text == "<<" && *tag == Tag::None)
                && !seen.insert((&**text, *tag == Tag::Text))
            {
                let line = self.lines.get(value).copied().unwrap_or_default();
                let duplicate = Duplicate { line, key: text, plain: resolves(text, *tag) };
                again.push((self.after(value), duplicate));
            }
            at = self.after(value);
        }
        again
    }
}

impl<'a> Index<usize> for Nodes<'a> {
    type Output = Node<'a>;

    fn index(&self, at: usize) -> &Self::Output {
        &self.nodes[at]
    }
}

fn is_bracket(text: &str, at: usize) -> bool {
    matches!(text.as_bytes().get(at), Some(b'[' | b'{'))
}

/// Whether a node is the first on its line and follows a tab. In block style, tabs are not allowed
/// as indentation.
fn is_indented_by_tab(text: &str, at: usize) -> bool {
    let before = text.as_bytes().get(..at).unwrap_or_default();
    let blank = before.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t'));
    let blanks = blank.clone().count();
    blank.into_iter().any(|byte| *byte == b'\t')
        && matches!(before.get(..at - blanks), Some([] | [.., b'\n' | b'\r']))
}

fn tab_error(line: usize) -> Error {
    let line = if line > 1 { format!("line {line}: ") } else { String::new() };
    yaml_error(&format!("yaml: {line}found character that cannot start any token"))
}

fn scan_error(error: ScanError) -> Error {
    match error.kind() {
        ErrorKind::RecursionLimitExceeded => Error::Depth,
        kind => {
            let line = error.marker().line();
            match upstream_message(kind) {
                // Upstream's scanner omits line 1 in errors, and reports an unexpected end one line
                // later.
                Some((words, Where::Here)) if line <= 1 => yaml_error(&format!("yaml: {words}")),
                Some((words, _)) => yaml_error(&format!("yaml: line {line}: {words}")),
                None => yaml_error(&format!("yaml: line {line}: {kind}")),
            }
        }
    }
}

/// The position at which upstream's reader reports an error.
enum Where {
    Here,
    AtTheEnd,
}

/// Upstream's message for errors that the parser words differently.
fn upstream_message(kind: &ErrorKind) -> Option<(&'static str, Where)> {
    Some(match kind {
        ErrorKind::UnclosedFlowCollection { .. } => {
            ("did not find expected node content", Where::AtTheEnd)
        }
        ErrorKind::MisplacedFlowCollectionEnd => {
            ("did not find expected node content", Where::Here)
        }
        ErrorKind::UnclosedQuotedScalar => ("found unexpected end of stream", Where::Here),
        ErrorKind::MissingLowSurrogate
        | ErrorKind::UnpairedLowSurrogate
        | ErrorKind::InvalidLowSurrogate => {
            ("found invalid Unicode character escape code", Where::Here)
        }
        ErrorKind::UnexpectedCharacter { character } if character.is_control() => {
            ("control characters are not allowed", Where::Here)
        }
        _ => return None,
    })
}

//! Generates well-typed expressions from the rows.

use std::collections::BTreeMap;

use crate::VARIABLES;
use crate::plain::Type;
use crate::rows::{LITERALS, Part, ROWS, Row};

/// An expression with its parts.
#[derive(Clone, Debug)]
pub struct Made {
    pub parts: Vec<Piece>,
    pub t: Type,
    /// The precedence of its operator.
    pub tight: u8,
    /// True if it uses local variables of an enclosing expression.
    pub is_open: bool,
}

#[derive(Clone, Debug)]
pub enum Piece {
    Text(String),
    Made(Made, /* in parentheses */ bool),
}

impl Made {
    /// Returns the expression's text; `write` returns the text of each part.
    pub fn text_with(&self, write: &mut impl FnMut(&Made) -> String) -> String {
        let pieces = self.parts.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Made(made, false) => write(made),
            Piece::Made(made, true) => format!("({})", write(made)),
        });
        pieces.collect::<Vec<_>>().concat()
    }

    pub fn text(&self) -> String {
        self.text_with(&mut Self::text)
    }
}

/// Generates a sequence of expressions that the seed determines.
#[derive(Debug)]
pub struct Maker {
    state: u64,
    extensions: bool,
    locals: Vec<(String, Type)>,
    names: usize,
}

impl Maker {
    pub fn new(seed: u64, extensions: bool) -> Self {
        Self { state: seed, extensions, locals: Vec::new(), names: 0 }
    }

    /// Generates an expression of a random type.
    pub fn make(&mut self) -> Made {
        self.names = 0;
        let t = self.any('T');
        let depth = 2 + self.below(3);
        self.expression(&t, depth)
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Chooses a type for a parameter: `K` is a type of map keys, `N` an ordered type.
    fn any(&mut self, parameter: char) -> Type {
        let (all, ends) = match parameter {
            'K' => (&["string", "string", "int", "bool"][..], true),
            'N' => (&["int", "double", "string", "uint"][..], true),
            _ => (&["int", "string", "bool", "double", "uint", "int", "string"][..], false),
        };
        if !ends && self.below(4) == 0 {
            let inner = Box::new(self.any('K'));
            return match self.below(3) {
                0 => Type::Map(Box::new(self.any('K')), inner),
                _ => Type::List(inner),
            };
        }
        Type::read(all[self.below(all.len())])
    }

    fn expression(&mut self, t: &Type, depth: usize) -> Made {
        if depth == 0 || self.below(6) == 0 {
            return self.leaf(t);
        }
        let rows: Vec<&Row> = ROWS
            .iter()
            .filter(|(part, _, result, _)| {
                (self.extensions || *part == Part::Language)
                    && Type::read(result).unify(t, &mut BTreeMap::new())
            })
            .collect();
        let row = rows[self.below(rows.len())];
        self.by_row(row, t, depth - 1)
    }

    /// A local variable, a variable or a literal.
    fn leaf(&mut self, t: &Type) -> Made {
        let fits = |(_, of): &&(String, Type)| of == t;
        let locals: Vec<_> =
            self.locals.iter().filter(fits).map(|(name, _)| name.clone()).collect();
        let leaf = |text: String, is_open, tight| Made {
            parts: vec![Piece::Text(text)],
            t: t.clone(),
            tight,
            is_open,
        };
        if !locals.is_empty() && self.below(3) > 0 {
            return leaf(locals[self.below(locals.len())].clone(), true, 8);
        }
        let variables = VARIABLES.iter().filter(|(_, of, _)| Type::read(of) == *t);
        let mut texts: Vec<&str> = variables.map(|(name, _, _)| *name).collect();
        let literals = LITERALS.iter().filter(|(of, _)| Type::read(of) == *t);
        texts.extend(literals.flat_map(|(_, texts)| texts.iter()));
        if texts.is_empty() {
            return match t {
                Type::List(items) if self.below(3) > 0 => {
                    let row = (Part::Language, 8, "list T", "[<T>, <T>]");
                    debug_assert!(!matches!(**items, Type::Parameter(_)));
                    self.by_row(&row, t, 0)
                }
                Type::List(_) => leaf("[]".to_owned(), false, 8),
                Type::Map(..) if self.below(3) > 0 => {
                    self.by_row(&(Part::Language, 8, "map K T", "{<K>: <T>}"), t, 0)
                }
                _ => leaf("{}".to_owned(), false, 8),
            };
        }
        let text = texts[self.below(texts.len())];
        leaf(text.to_owned(), false, if text.starts_with('-') { 7 } else { 8 })
    }

    fn by_row(&mut self, row: &Row, t: &Type, depth: usize) -> Made {
        let (_, tight, result, mut rest) = *row;
        let mut bound = BTreeMap::new();
        assert!(Type::read(result).unify(t, &mut bound), "rows are chosen by their type");
        let visible = self.locals.len();
        let mut made = Made { parts: Vec::new(), t: t.clone(), tight, is_open: false };
        while let Some(at) = hole(rest) {
            made.parts.push(Piece::Text(rest[..at].to_owned()));
            let (head, tail) = rest.split_at(at);
            if let Some(tail) = tail.strip_prefix('@') {
                let of = Type::read(&tail[..1]).with(&mut bound, &mut |name| self.any(name));
                let name = format!("v{}", self.names);
                self.names += 1;
                made.parts.push(Piece::Text(name.clone()));
                self.locals.push((name, of));
                rest = &tail[1..];
                continue;
            }
            let end = tail.find('>').expect("holes are closed");
            let of = Type::read(&tail[1..end]).with(&mut bound, &mut |name| self.any(name));
            rest = &tail[end + 1..];
            let inner = self.expression(&of, depth);
            let least = least(tight, head, made.parts.len() == 1, rest);
            let wraps = inner.tight < least || self.below(12) == 0;
            made.is_open |= inner.is_open && self.is_outer(&inner, visible);
            made.parts.push(Piece::Made(inner, wraps));
        }
        made.parts.push(Piece::Text(rest.to_owned()));
        self.locals.truncate(visible);
        made
    }

    /// True if a part uses local variables that were declared outside of this expression.
    fn is_outer(&self, inner: &Made, visible: usize) -> bool {
        inner.parts.iter().any(|piece| match piece {
            Piece::Text(text) => self.locals[..visible].iter().any(|(name, _)| name == text),
            Piece::Made(made, _) => self.is_outer(made, visible),
        })
    }
}

/// The offset of the next hole or declaration; a `<` before a letter is not a comparison.
fn hole(text: &str) -> Option<usize> {
    let mut signs = text.match_indices(['<', '@']);
    signs.find_map(|(at, _)| text[at + 1..].starts_with(char::is_alphabetic).then_some(at))
}

/// The minimum precedence of an expression that needs no parentheses in a hole.
fn least(tight: u8, before: &str, is_first: bool, behind: &str) -> u8 {
    match (tight, behind.chars().next()) {
        (_, Some('.' | '[')) => 8,
        (1, None) => 1,
        (1, _) => 2,
        (7, _) => 8,
        (2..=6, _) if is_first && before.is_empty() => tight,
        (2..=6, _) => tight + 1,
        _ => 0,
    }
}

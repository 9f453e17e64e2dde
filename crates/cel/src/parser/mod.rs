//! The parser: recursive descent along the language's grammar.
//!
//! Upstream's generated parser recovers after an error. This one reports the first error (and skips
//! one superfluous token, as upstream does), with upstream's messages.

mod input;
mod literal;
mod logic;
mod macros;
mod token;

use std::sync::Arc;

use crate::ast::{Call, Entry, Expr, Field, Id, Item, Kind, Literal, Select, Struct};
use crate::escape::is_reserved;
use crate::source::Issues;
use input::begins_operand;
use token::{Spanned, Token};

/// The maximum length of an expression in characters.
const LENGTH_MAX: usize = 100_000;

const RELATIONS: &[(&str, &str)] = &[
    ("<", "_<_"),
    ("<=", "_<=_"),
    (">=", "_>=_"),
    (">", "_>_"),
    ("==", "_==_"),
    ("!=", "_!=_"),
    ("in", "@in"),
];

const FACTORS: &[(&str, &str)] = &[("*", "_*_"), ("/", "_/_"), ("%", "_%_")];

const TERMS: &[(&str, &str)] = &[("+", "_+_"), ("-", "_-_")];

/// Parses `text`. Returns the expression, `None` if issues were reported, and the number of nodes.
/// `bindings` enables `cel.bind`.
pub(crate) fn parse(text: &str, bindings: bool, issues: &mut Issues) -> (Option<Expr>, usize) {
    let length = text.chars().count();
    if length > LENGTH_MAX {
        let message = "expression code point size exceeds limit: size: ";
        issues.report(None, format!("{message}{length}, limit {LENGTH_MAX}"));
        return (None, 0);
    }
    let tokens = token::tokens(text, issues);
    let also: (usize, &[&str]) = (0, &[]);
    let mut parser =
        Parser { text, tokens, next: 0, also, open: 0, nodes: 0, depth: 0, bindings, issues };
    let root = parser.whole();
    let nodes = parser.nodes as usize;
    (root.ok().filter(|_| parser.issues.is_empty()), nodes)
}

/// An issue was reported; parsing ends.
#[derive(Debug)]
struct Reported;

type Parse<T> = Result<T, Reported>;

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Spanned>,
    next: usize,
    /// The tokens besides an operand that can occur at a position, for error messages.
    also: (usize, &'static [&'static str]),
    /// The number of open brackets.
    open: u32,
    nodes: Id,
    depth: u32,
    bindings: bool,
    issues: &'a mut Issues,
}

impl Parser<'_> {
    fn whole(&mut self) -> Parse<Expr> {
        let expr = self.expr()?;
        self.expect_end()?;
        Ok(expr)
    }

    fn expr(&mut self) -> Parse<Expr> {
        self.deeper(|p| {
            let condition = p.or()?;
            let Some(at) = p.take("?") else { return Ok(condition) };
            let id = p.id();
            let truthy = p.or()?;
            p.expect(":", "':'")?;
            let falsy = p.expr()?;
            Ok(call(id, at, "_?_:_", vec![condition, truthy, falsy]))
        })
    }

    fn or(&mut self) -> Parse<Expr> {
        self.logic("||", "_||_", Self::and)
    }

    fn and(&mut self) -> Parse<Expr> {
        self.logic("&&", "_&&_", |p| p.binary(RELATIONS, Self::sum))
    }

    fn sum(&mut self) -> Parse<Expr> {
        self.binary(TERMS, |p| p.binary(FACTORS, Self::unary))
    }

    /// Parses a chain of `sign` to a balanced tree.
    fn logic(
        &mut self,
        sign: &str,
        function: &'static str,
        operand: impl Fn(&mut Self) -> Parse<Expr>,
    ) -> Parse<Expr> {
        let mut terms = vec![operand(self)?];
        let mut signs = Vec::new();
        while let Some(at) = self.take(sign) {
            let term = operand(self)?;
            terms.push(term);
            signs.push((self.id(), at));
        }
        Ok(logic::balance(function, terms, &signs))
    }

    /// Parses a chain of left-associative operators. Each makes the tree one level deeper.
    fn binary(
        &mut self,
        signs: &[(&str, &'static str)],
        operand: impl Fn(&mut Self) -> Parse<Expr>,
    ) -> Parse<Expr> {
        let depth = self.depth;
        let mut left = operand(self)?;
        while let Some((at, function)) = self.take_one_of(signs) {
            self.deepen()?;
            let id = self.id();
            let right = operand(self)?;
            left = call(id, at, function, vec![left, right]);
        }
        self.depth = depth;
        Ok(left)
    }

    fn unary(&mut self) -> Parse<Expr> {
        for (sign, function) in [("!", "!_"), ("-", "-_")] {
            let Some(at) = self.take(sign) else { continue };
            // A single minus before a number is part of the literal.
            if sign == "-" && matches!(self.peek(), Token::Int | Token::Float) {
                self.next -= 1;
                return self.member();
            }
            let mut count = 1;
            while self.take(sign).is_some() {
                count += 1;
            }
            self.operand_after(sign, at)?;
            let id = self.id();
            let operand = self.member()?;
            return Ok(if count % 2 == 0 {
                operand
            } else {
                call(id, at, function, vec![operand])
            });
        }
        self.member()
    }

    fn member(&mut self) -> Parse<Expr> {
        let depth = self.depth;
        let mut operand = self.primary()?;
        loop {
            if let Some(at) = self.take(".") {
                self.deepen()?;
                operand = self.select(operand, at)?;
            } else if let Some(at) = self.take("[") {
                self.deepen()?;
                self.open += 1;
                self.also = (self.next, &["?"]);
                let optional = self.take("?").is_some();
                let id = self.id();
                let index = self.expr()?;
                self.expect("]", "']'")?;
                self.open -= 1;
                let function = if optional { "_[?_]" } else { "_[_]" };
                operand = call(id, at, function, vec![operand, index]);
            } else {
                self.depth = depth;
                return Ok(operand);
            }
        }
    }

    /// Parses the part after a dot: a field or a method call.
    fn select(&mut self, operand: Expr, at: u32) -> Parse<Expr> {
        let optional = self.take("?").is_some();
        let name = self.field_name(optional)?;
        let is_plain = self.previous().token == Token::Ident;
        if !optional
            && is_plain
            && let Some(open) = self.take("(")
        {
            let id = self.id();
            let args = self.list_until(")", Self::expr)?;
            return self.call_or_macro(id, open, name, Some(operand), args);
        }
        let id = self.id();
        if optional {
            let field = Literal::String((&*name).into());
            let start = self.previous().start;
            let field = Expr { id: self.id(), at: start, kind: Kind::Literal(field) };
            return Ok(call(id, at, "_?._", vec![operand, field]));
        }
        let select = Select { operand, field: name, test_only: false };
        Ok(Expr { id, at, kind: Kind::Select(Box::new(select)) })
    }

    fn field_name(&mut self, optional: bool) -> Parse<Arc<str>> {
        match self.peek() {
            Token::Ident => Ok(self.take_text().into()),
            Token::EscapedIdent => {
                // Kubernetes' environment does not support names in backquotes.
                let at = self.tokens[self.next].start;
                self.issues.report(Some(at), "unsupported syntax: '`'");
                let text = self.take_text();
                Ok(text[1..text.len() - 1].into())
            }
            _ if optional => {
                let at = self.tokens[self.next].start;
                let error = self.mismatch("{IDENTIFIER, ESC_IDENTIFIER}");
                self.issues.report(Some(at), "unsupported ident kind");
                error
            }
            _ => self.no_alternative(self.previous().start),
        }
    }

    fn primary(&mut self) -> Parse<Expr> {
        let Spanned { token, start, .. } = self.tokens[self.next];
        match token {
            Token::Sign("(") => {
                self.next += 1;
                self.open += 1;
                let inside = self.expr()?;
                self.expect(")", "')'")?;
                self.open -= 1;
                Ok(inside)
            }
            Token::Sign("[") => {
                self.next += 1;
                let id = self.id();
                let items = self.list_until("]", Self::item)?;
                Ok(Expr { id, at: start, kind: Kind::List(items) })
            }
            Token::Sign("{") => {
                self.next += 1;
                let id = self.id();
                let entries = self.list_until("}", Self::entry)?;
                Ok(Expr { id, at: start, kind: Kind::Map(entries) })
            }
            Token::Sign(".") | Token::Ident => self.name(start),
            _ => self.literal(start),
        }
    }

    /// Parses a variable, a function call, or the construction of a struct.
    fn name(&mut self, start: u32) -> Parse<Expr> {
        let dot = if self.take(".").is_some() { "." } else { "" };
        if self.peek() != Token::Ident {
            return self.no_alternative(start);
        }
        let at = self.tokens[self.next].start;
        if let Some(after) = self.struct_name_end() {
            return self.make_struct(dot, after);
        }
        let text = self.take_text();
        let name: Arc<str> = format!("{dot}{text}").into();
        if is_reserved(text) {
            self.issues.report(Some(start), format!("reserved identifier: {text}"));
            if self.take("(").is_some() {
                self.list_until(")", Self::expr)?;
            }
            return Ok(self.nothing(at));
        }
        let open = self.take("(");
        let id = self.id();
        match open {
            Some(open) => {
                let args = self.list_until(")", Self::expr)?;
                self.call_or_macro(id, open, name, None, args)
            }
            None => Ok(Expr { id, at, kind: Kind::Ident(name) }),
        }
    }

    /// The index of `{`, if a dotted name precedes it.
    fn struct_name_end(&self) -> Option<usize> {
        let mut at = self.next + 1;
        while self.tokens.get(at)?.token == Token::Sign(".")
            && self.tokens.get(at + 1)?.token == Token::Ident
        {
            at += 2;
        }
        (self.tokens.get(at)?.token == Token::Sign("{")).then_some(at)
    }

    fn make_struct(&mut self, dot: &str, open: usize) -> Parse<Expr> {
        let names = self.tokens[self.next..open].iter();
        let name: String = names.map(|t| &self.text[t.start as usize..t.end as usize]).collect();
        let name = format!("{dot}{name}").into();
        let at = self.tokens[open].start;
        self.next = open + 1;
        let id = self.id();
        let fields = self.list_until("}", |p| {
            let optional = p.take("?").is_some();
            let name = p.field_name(true)?;
            let at = p.tokens[p.next].start;
            p.expect(":", "':'")?;
            Ok(Field { at, name, value: p.expr()?, optional })
        })?;
        Ok(Expr { id, at, kind: Kind::Struct(Box::new(Struct { name, fields })) })
    }

    fn item(&mut self) -> Parse<Item> {
        let optional = self.take("?").is_some();
        Ok(Item { value: self.expr()?, optional })
    }

    fn entry(&mut self) -> Parse<Entry> {
        let optional = self.take("?").is_some();
        let key = self.expr()?;
        self.expect(":", "':'")?;
        Ok(Entry { key, value: self.expr()?, optional })
    }

    /// Parses comma-separated items up to `close`. Except for arguments, a trailing comma is
    /// allowed.
    fn list_until<T>(
        &mut self,
        close: &'static str,
        item: impl Fn(&mut Self) -> Parse<T>,
    ) -> Parse<Vec<T>> {
        self.open += 1;
        self.also = match close {
            ")" => (self.next, &[")"]),
            "]" => (self.next, &["]", ",", "?"]),
            _ => (self.next, &["}", ",", "?"]),
        };
        let mut items = Vec::new();
        let trailing = close != ")";
        // A single comma without items is allowed where a trailing comma is.
        if trailing && self.peek() == Token::Sign(",") {
            self.next += 1;
            self.expect(close, if close == "]" { "']'" } else { "'}'" })?;
            self.open -= 1;
            return Ok(items);
        }
        loop {
            if (items.is_empty() || trailing) && self.take(close).is_some() {
                break;
            }
            let begins = begins_operand(self.peek()) || self.peek() == Token::Sign("?");
            if !items.is_empty() && trailing && !begins {
                self.expect(close, if close == "]" { "']'" } else { "'}'" })?;
                break;
            }
            items.push(item(self)?);
            if self.take(",").is_none() {
                let expected = match close {
                    ")" => "')'",
                    "]" => "{']', ','}",
                    _ => "{'}', ','}",
                };
                self.expect(close, expected)?;
                break;
            }
        }
        self.open -= 1;
        Ok(items)
    }

    fn literal(&mut self, start: u32) -> Parse<Expr> {
        let negative = self.take("-").is_some();
        let token = self.peek();
        let number = matches!(token, Token::Int | Token::Float);
        if negative && !number {
            return self.no_operand();
        }
        let known = [Token::Uint, Token::String, Token::Bytes].contains(&token)
            || matches!(token, Token::Sign("true" | "false" | "null"));
        if !number && !known {
            return self.no_operand();
        }
        let text = self.take_text();
        let literal = match token {
            Token::Int => literal::int(text, negative).ok_or("invalid int literal"),
            Token::Uint => literal::uint(text).ok_or("invalid uint literal"),
            Token::Float => literal::double(text, negative).ok_or("invalid double literal"),
            Token::String => literal::string(text),
            Token::Bytes => literal::bytes(text),
            Token::Sign("true") => Ok(Literal::Bool(true)),
            Token::Sign("false") => Ok(Literal::Bool(false)),
            _ => Ok(Literal::Null),
        };
        match literal {
            Ok(literal) => Ok(Expr { id: self.id(), at: start, kind: Kind::Literal(literal) }),
            Err(message) => {
                self.issues.report(Some(start), message);
                Ok(self.nothing(start))
            }
        }
    }
}

fn call(id: Id, at: u32, function: &str, args: Vec<Expr>) -> Expr {
    let call = Call { function: function.into(), target: None, args };
    Expr { id, at, kind: Kind::Call(Box::new(call)) }
}

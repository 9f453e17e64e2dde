//! The parser of `labelSelector`. Messages equal upstream's, quirks included.

use std::collections::BTreeSet;

use pintle_value::Str;

use super::{Operator, Requirement, Selector};
use crate::{field, names, quote::quote};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    End,
    Close,
    Comma,
    Not,
    DoubleEquals,
    Equals,
    Greater,
    Identifier,
    In,
    Less,
    NotEquals,
    NotIn,
    Open,
}

/// The token with this exact text.
fn fixed(text: &str) -> Option<Token> {
    Some(match text {
        ")" => Token::Close,
        "," => Token::Comma,
        "!" => Token::Not,
        "==" => Token::DoubleEquals,
        "=" => Token::Equals,
        ">" => Token::Greater,
        "in" => Token::In,
        "<" => Token::Less,
        "!=" => Token::NotEquals,
        "notin" => Token::NotIn,
        "(" => Token::Open,
        _ => return None,
    })
}

/// Parses the requirements in the order of the text.
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, String> {
    if text.len() > Selector::LENGTH_MAX {
        return Err(format!("must be no more than {} bytes", Selector::LENGTH_MAX));
    }
    let mut parser = Parser { text, at: 0 };
    let mut requirements = Vec::new();
    loop {
        let (token, literal) = parser.peek();
        match token {
            Token::Identifier | Token::Not => {}
            Token::End => return Ok(requirements),
            _ => {
                let expected = "expected: !, identifier, or 'end of string'";
                return Err(format!("found '{literal}', {expected}"));
            }
        }
        let requirement = parser.requirement();
        requirements.push(requirement.map_err(|e| format!("unable to parse requirement: {e}"))?);
        match parser.next() {
            (Token::End, _) => return Ok(requirements),
            (Token::Comma, _) => {}
            (_, found) => return Err(format!("found '{found}', expected: ',' or 'end of string'")),
        }
        let (token, found) = parser.peek();
        if !matches!(token, Token::Identifier | Token::Not) {
            return Err(format!("found '{found}', expected: identifier after ','"));
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn requirement(&mut self) -> Result<Requirement, String> {
        let (key, unary) = self.key()?;
        if let Some(operator) = unary {
            return requirement(key, operator, Vec::new());
        }
        let operator = self.operator()?;
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => vec![self.exact_value()?],
        };
        requirement(key, operator, values)
    }

    /// Parses a key, and the operator if it follows from the key alone.
    fn key(&mut self) -> Result<(Str, Option<Operator>), String> {
        let (mut token, mut literal) = self.next();
        let not = token == Token::Not;
        if not {
            (token, literal) = self.next();
        }
        if token != Token::Identifier {
            return Err(format!("found '{literal}', expected: identifier"));
        }
        let wrong = names::qualified_name(literal);
        if !wrong.is_empty() {
            // Upstream writes `<nil>` for the missing path.
            let (key, wrong) = (quote(literal), wrong.join("; "));
            return Err(format!("<nil>: Invalid value: {key}: {wrong}"));
        }
        let ends = matches!(self.peek().0, Token::End | Token::Comma);
        let unary = match (not, ends) {
            (true, _) => Some(Operator::DoesNotExist),
            (false, true) => Some(Operator::Exists),
            (false, false) => None,
        };
        Ok((literal.into(), unary))
    }

    fn operator(&mut self) -> Result<Operator, String> {
        match self.next_keyword() {
            (Token::In, _) => Ok(Operator::In),
            (Token::NotIn, _) => Ok(Operator::NotIn),
            (Token::Equals, _) => Ok(Operator::Equals),
            (Token::DoubleEquals, _) => Ok(Operator::DoubleEquals),
            (Token::NotEquals, _) => Ok(Operator::NotEquals),
            (Token::Greater, _) => Ok(Operator::GreaterThan),
            (Token::Less, _) => Ok(Operator::LessThan),
            (_, found) => {
                const EXPECTED: &str = "in, notin, =, ==, !=, gt, lt";
                Err(format!("found '{found}', expected: {EXPECTED}"))
            }
        }
    }

    /// Parses `(a,,b)` to sorted, unique values; a value may be empty.
    fn values(&mut self) -> Result<Vec<Str>, String> {
        let (token, found) = self.next();
        if token != Token::Open {
            return Err(format!("found '{found}' expected: '('"));
        }
        match self.peek() {
            (Token::Close, _) => {
                self.next();
                Ok(vec![Str::default()])
            }
            (Token::Identifier | Token::Comma, _) => {
                let values = self.identifiers()?;
                self.next(); // the closing parenthesis, which `identifiers` has seen
                Ok(values.into_iter().collect())
            }
            (_, found) => Err(format!("found '{found}', expected: ',', ')' or identifier")),
        }
    }

    fn identifiers(&mut self) -> Result<BTreeSet<Str>, String> {
        let mut values = BTreeSet::new();
        loop {
            match self.next() {
                (Token::Identifier, literal) => {
                    values.insert(Str::from(literal));
                    match self.peek() {
                        (Token::Comma, _) => {}
                        (Token::Close, _) => return Ok(values),
                        (_, found) => return Err(format!("found '{found}', expected: ',' or ')'")),
                    }
                }
                (Token::Comma, _) => {
                    let next = self.peek().0;
                    if values.is_empty() || matches!(next, Token::Close | Token::Comma) {
                        values.insert(Str::default());
                    }
                    if next == Token::Close {
                        return Ok(values);
                    }
                }
                (_, found) => return Err(format!("found '{found}', expected: ',', or identifier")),
            }
        }
    }

    fn exact_value(&mut self) -> Result<Str, String> {
        if matches!(self.peek().0, Token::End | Token::Comma) {
            return Ok(Str::default());
        }
        match self.next() {
            (Token::Identifier, literal) => Ok(literal.into()),
            (_, found) => Err(format!("found '{found}', expected: identifier")),
        }
    }

    /// Consumes the next token, treating `in` and `notin` as identifiers.
    fn next(&mut self) -> (Token, &'a str) {
        match self.next_keyword() {
            (Token::In | Token::NotIn, literal) => (Token::Identifier, literal),
            other => other,
        }
    }

    /// The token that [`Parser::next`] will return.
    fn peek(&self) -> (Token, &'a str) {
        Parser { text: self.text, at: self.at }.next()
    }

    fn next_keyword(&mut self) -> (Token, &'a str) {
        let rest = self.text[self.at..].trim_start_matches([' ', '\t', '\r', '\n']);
        self.at = self.text.len() - rest.len();
        let (token, length) = match rest.bytes().next() {
            None | Some(0) => return (Token::End, ""), // upstream treats NUL as the end
            Some(first) if is_special(first) => special(rest),
            Some(_) => word(rest),
        };
        self.at += length;
        // Upstream also skips a NUL that ends a token.
        self.at += usize::from(self.text[self.at..].starts_with('\0'));
        (token, &rest[..length])
    }
}

/// The operator at the beginning of `rest`, and its length.
fn special(rest: &str) -> (Token, usize) {
    match rest.get(..2).and_then(fixed) {
        Some(token) => (token, 2),
        None => (fixed(&rest[..1]).expect("every special character is a token"), 1),
    }
}

/// The keyword or identifier at the beginning of `rest`, and its length.
fn word(rest: &str) -> (Token, usize) {
    let ends = |b: u8| b == 0 || is_special(b) || is_blank(b);
    let length = rest.bytes().position(ends).unwrap_or(rest.len());
    (fixed(&rest[..length]).unwrap_or(Token::Identifier), length)
}

const fn is_special(byte: u8) -> bool {
    matches!(byte, b'=' | b'!' | b'(' | b')' | b',' | b'>' | b'<')
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn requirement(key: Str, operator: Operator, values: Vec<Str>) -> Result<Requirement, String> {
    Requirement::new(key, operator, values).map_err(|errors| field::aggregate(&errors))
}

//! The token stream of the parser, and its errors about unexpected tokens.

use super::token::{Spanned, Token};
use super::{Parse, Parser, Reported};
use crate::ast::{Expr, Id, Kind, Literal};
use crate::source::Offset;

/// The maximum nesting of an expression.
const DEPTH_MAX: u32 = 250;

/// The tokens that can begin an operand, as errors list them; in parentheses, other tokens that are
/// allowed at some positions only.
const OPERAND: &[&str] = &[
    "'['",
    "(']')",
    "'{'",
    "('}')",
    "'('",
    "(')')",
    "'.'",
    "(',')",
    "'-'",
    "'!'",
    "('?')",
    "'true'",
    "'false'",
    "'null'",
    "NUM_FLOAT",
    "NUM_INT",
    "NUM_UINT",
    "STRING",
    "BYTES",
    "IDENTIFIER",
];

impl<'a> Parser<'a> {
    pub(super) fn id(&mut self) -> Id {
        self.nodes += 1;
        self.nodes - 1
    }

    /// A placeholder for an unparsable expression, so that parsing continues.
    pub(super) fn nothing(&mut self, at: u32) -> Expr {
        Expr { id: self.id(), at, kind: Kind::Literal(Literal::Null) }
    }

    pub(super) fn peek(&self) -> Token {
        self.tokens[self.next].token
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Token {
        self.tokens.get(self.next + ahead).map_or(Token::End, |t| t.token)
    }

    pub(super) fn previous(&self) -> Spanned {
        self.tokens[self.next - 1]
    }

    /// Consumes `sign` if it is next, and returns its position.
    pub(super) fn take(&mut self, sign: &str) -> Option<u32> {
        let Spanned { token, start, .. } = self.tokens[self.next];
        if !matches!(token, Token::Sign(s) if s == sign) {
            return None;
        }
        self.next += 1;
        Some(start)
    }

    pub(super) fn take_one_of(
        &mut self,
        signs: &[(&str, &'static str)],
    ) -> Option<(u32, &'static str)> {
        signs.iter().find_map(|(sign, function)| Some((self.take(sign)?, *function)))
    }

    /// Consumes the next token, except for the end.
    pub(super) fn take_text(&mut self) -> &'a str {
        let Spanned { start, end, .. } = self.tokens[self.next];
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        &self.text[start as usize..end as usize]
    }

    pub(super) fn expect(&mut self, sign: &'static str, expected: &str) -> Parse<u32> {
        if let Some(at) = self.take(sign) {
            return Ok(at);
        }
        if self.peek_at(1) == Token::Sign(sign) {
            self.extraneous(expected);
            self.next += 1;
            return self.take(sign).ok_or(Reported);
        }
        // After a single missing sign, parsing goes on if the next token could follow the sign.
        let single = !expected.contains(',');
        let missing = match sign {
            ":" => begins_operand(self.peek()),
            _ => self.peek() == Token::End && self.open == 1,
        };
        if single && missing {
            let found = self.found();
            let at = self.tokens[self.next].start;
            self.issues.report(Some(at), format!("Syntax error: missing '{sign}' at {found}"));
            return Ok(at);
        }
        self.mismatch(expected)
    }

    pub(super) fn expect_end(&mut self) -> Parse<()> {
        match (self.peek(), self.peek_at(1)) {
            (Token::End, _) => Ok(()),
            (_, Token::End) => {
                self.extraneous("<EOF>");
                Err(Reported)
            }
            _ => self.mismatch("<EOF>"),
        }
    }

    /// Checks that an operand follows `!` or `-`. The error is the one that upstream's generated
    /// parser reports.
    pub(super) fn operand_after(&mut self, sign: &str, at: u32) -> Parse<()> {
        if begins_operand(self.peek()) {
            return Ok(());
        }
        if sign == "-" {
            let offending = self.tokens[self.next];
            let text = &self.text[at as usize..offending.end as usize];
            let message = format!("Syntax error: no viable alternative at input '{text}'");
            self.issues.report(Some(offending.start), message);
            return Ok(());
        }
        let expected = self.operand_expected();
        self.extraneous(&expected);
        if self.peek() == Token::End {
            return Err(Reported);
        }
        self.next += 1;
        Ok(())
    }

    /// The tokens that are allowed at the next position.
    pub(super) fn operand_expected(&self) -> String {
        let also = if self.also.0 == self.next { self.also.1 } else { &[] };
        let shown = OPERAND.iter().filter_map(|name| match name.strip_prefix('(') {
            Some(rest) => {
                let name = rest.strip_suffix(')')?;
                also.contains(&name.trim_matches('\'')).then_some(name)
            }
            None => Some(*name),
        });
        format!("{{{}}}", shown.collect::<Vec<_>>().join(", "))
    }

    /// Reports that no operand begins here; skips one superfluous token.
    pub(super) fn no_operand(&mut self) -> Parse<Expr> {
        let expected = self.operand_expected();
        if self.peek() != Token::End && begins_operand(self.peek_at(1)) {
            self.extraneous(&expected);
            self.next += 1;
            return self.unary();
        }
        self.mismatch(&expected)
    }

    pub(super) fn extraneous(&mut self, expected: &str) {
        let found = self.found();
        let at = self.tokens[self.next].start;
        let message = format!("Syntax error: extraneous input {found} expecting {expected}");
        self.issues.report(Some(at), message);
    }

    pub(super) fn mismatch<T>(&mut self, expected: &str) -> Parse<T> {
        let found = self.found();
        let at = self.tokens[self.next].start;
        self.wrong(Some(at), format!("Syntax error: mismatched input {found} expecting {expected}"))
    }

    /// Reports that no name follows a dot at `start`.
    pub(super) fn no_alternative<T>(&mut self, start: u32) -> Parse<T> {
        let offending = self.tokens[self.next];
        let text = &self.text[start as usize..offending.end as usize];
        if matches!(text, ".true" | ".false" | ".null") {
            return self.mismatch("IDENTIFIER");
        }
        let message = format!("Syntax error: no viable alternative at input '{text}'");
        self.wrong(Some(offending.start), message)
    }

    pub(super) fn found(&self) -> String {
        let Spanned { token, start, end } = self.tokens[self.next];
        match token {
            Token::End => "'<EOF>'".to_owned(),
            _ => format!("'{}'", &self.text[start as usize..end as usize]),
        }
    }

    pub(super) fn wrong<T>(&mut self, at: Offset, message: impl Into<String>) -> Parse<T> {
        self.issues.report(at, message);
        Err(Reported)
    }

    pub(super) fn deepen(&mut self) -> Parse<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let message = format!("expression recursion limit exceeded: {DEPTH_MAX}");
            return self.wrong(None, message);
        }
        Ok(())
    }

    pub(super) fn deeper<T>(&mut self, inside: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        self.deepen()?;
        let result = inside(self);
        self.depth = self.depth.saturating_sub(1);
        result
    }
}

/// Whether an operand can begin with the token.
pub(super) const fn begins_operand(token: Token) -> bool {
    match token {
        Token::Ident | Token::Int | Token::Uint | Token::Float | Token::String | Token::Bytes => {
            true
        }
        Token::Sign(sign) => {
            matches!(sign.as_bytes(), b"[" | b"{" | b"(" | b"." | b"-" | b"!")
                || matches!(sign.as_bytes(), b"true" | b"false" | b"null")
        }
        _ => false,
    }
}

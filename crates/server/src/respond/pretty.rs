//! Indents compact JSON by two spaces a level, as Go's `json.Indent` does. It works on the bytes,
//! so members keep their order, and the JSON may come in pieces.

use bytes::Bytes;

use crate::body::Pieces;

/// Indents valid compact JSON.
pub(super) fn indent(compact: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Layout::default().write(compact, &mut out);
    out
}

/// Indents valid compact JSON that comes in pieces.
pub(super) fn indent_pieces(pieces: Box<dyn Pieces>) -> Box<dyn Pieces> {
    Box::new(Indented { pieces, layout: Layout::default() })
}

struct Indented {
    pieces: Box<dyn Pieces>,
    layout: Layout,
}

impl Pieces for Indented {
    fn next(&mut self) -> Option<Bytes> {
        let piece = self.pieces.next()?;
        let mut out = Vec::new();
        self.layout.write(&piece, &mut out);
        Some(out.into())
    }

    fn takes_work(&mut self) -> bool {
        true
    }
}

/// The position in a document.
#[derive(Default)]
struct Layout {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The last byte opened an object or a list; an empty one stays on its line.
    opened: bool,
}

impl Layout {
    fn write(&mut self, compact: &[u8], out: &mut Vec<u8>) {
        out.reserve(compact.len() + compact.len() / 2);
        for &byte in compact {
            if self.in_string {
                out.push(byte);
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            let closes = matches!(byte, b'}' | b']');
            let is_empty = std::mem::take(&mut self.opened) && {
                if !closes {
                    self.depth += 1;
                    new_line(self.depth, out);
                }
                closes
            };
            if closes && !is_empty {
                self.depth = self.depth.saturating_sub(1);
                new_line(self.depth, out);
            }
            match byte {
                b'\n' => continue,
                b'"' => self.in_string = true,
                b'{' | b'[' => self.opened = true,
                _ => {}
            }
            out.push(byte);
            match byte {
                b',' => new_line(self.depth, out),
                b':' => out.push(b' '),
                _ => {}
            }
        }
    }
}

fn new_line(depth: usize, out: &mut Vec<u8>) {
    out.push(b'\n');
    out.resize(out.len() + 2 * depth, b' ');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Ready;

    fn check(compact: &str, expected: &str) {
        assert_eq!(String::from_utf8(indent(compact.as_bytes())).unwrap(), expected);
        // Pieces of any length give the same result.
        for len in 1..4 {
            let pieces: Vec<_> =
                compact.as_bytes().chunks(len).map(Bytes::copy_from_slice).collect();
            let mut pieces = indent_pieces(Box::new(Ready(pieces.into_iter())));
            let all: Vec<u8> = std::iter::from_fn(|| pieces.next()).flatten().collect();
            assert_eq!(String::from_utf8(all).unwrap(), expected, "in pieces of {len}");
        }
    }

    #[test]
    fn json_is_laid_out_as_go_does() {
        check("1", "1");
        check("{}", "{}");
        check("[]", "[]");
        check(r#"{"a":[],"b":{}}"#, "{\n  \"a\": [],\n  \"b\": {}\n}");
        check(
            r#"{"a":[1,{"b":null}]}"#,
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": null\n    }\n  ]\n}",
        );
        check(r#"{"a":"x{,:[\"}\\"}"#, "{\n  \"a\": \"x{,:[\\\"}\\\\\"\n}");
        check("{\"a\":1}\n", "{\n  \"a\": 1\n}");
    }
}

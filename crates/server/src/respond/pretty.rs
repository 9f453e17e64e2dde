//! Compact JSON to JSON on many lines, two spaces a level, as Go's `json.Indent` lays it out. Works on
//! the bytes, so that members keep their order.

/// Lays out valid compact JSON.
pub(crate) fn indent(compact: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(compact.len() + compact.len() / 2);
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, &byte) in compact.iter().enumerate() {
        if in_string {
            out.push(byte);
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => {
                in_string = true;
                out.push(byte);
            }
            b'{' | b'[' => {
                out.push(byte);
                if !matches!(compact.get(at + 1), Some(b'}' | b']')) {
                    depth += 1;
                    new_line(depth, &mut out);
                }
            }
            b'}' | b']' => {
                if !matches!(at.checked_sub(1).map(|at| compact[at]), Some(b'{' | b'[')) {
                    depth = depth.saturating_sub(1);
                    new_line(depth, &mut out);
                }
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                new_line(depth, &mut out);
            }
            b':' => out.extend_from_slice(b": "),
            b'\n' => {}
            _ => out.push(byte),
        }
    }
    out
}

fn new_line(depth: usize, out: &mut Vec<u8>) {
    out.push(b'\n');
    out.resize(out.len() + 2 * depth, b' ');
}

#[cfg(test)]
mod tests {
    use super::indent;

    fn check(compact: &str, expected: &str) {
        assert_eq!(String::from_utf8(indent(compact.as_bytes())).unwrap(), expected);
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

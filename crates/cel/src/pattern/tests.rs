use super::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;

#[test]
fn patterns_match_as_in_go() {
    for (pattern, text, expected) in [
        ("^[a-z]+$", "abc", true),
        ("^[a-z]+$", "abc\n", false),
        (r"^\d+$", "12", true),
        (r"^\d+$", "١٢", false),
        (r"^[\w-]+$", "a_b-1", true),
        (r"^[^\d]$", "x", true),
        (r"^[\D]$", "x", true),
        (r"^[\D]$", "1", false),
        (r"^\W$", "é", true),
        ("^[[:alpha:]]+$", "ab", true),
        ("^[[]$", "[", true),
        ("^[]a]+$", "]a", true),
        ("^[^]]$", "x", true),
        ("^[a&&b]+$", "&", true),
        ("^a{2,3}$", "aaa", true),
        ("^a{x}$", "a{x}", true),
        (r"^\$\{[a-z]+\}$", "${ab}", true),
        (r"(?i)^A$", "a", true),
        ("b", "abc", true),
    ] {
        assert!(Pattern::check(pattern).is_ok(), "{pattern}");
        let compiled = Pattern::compile(pattern).map(|compiled| compiled.is_match(text));
        assert_eq!(compiled, Ok(expected), "{pattern} {text:?}");
    }
}

#[test]
fn pattern_errors_match_go() {
    for (pattern, expected) in [
        ("(", "error parsing regexp: missing closing ): `(`"),
        ("[a", "error parsing regexp: missing closing ]: `[a`"),
        ("*", "error parsing regexp: missing argument to repetition operator: `*`"),
        ("(?=a)", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"),
        (r"\k", r"error parsing regexp: invalid escape sequence: `\k`"),
        (r"[\x€]", r"error parsing regexp: invalid escape sequence: `\x€]`"),
        (r"[\xa€]", r"error parsing regexp: invalid escape sequence: `\xa€`"),
        (r"[\x{41", r"error parsing regexp: invalid escape sequence: `\x{41`"),
        (r"[a-\x{62", r"error parsing regexp: invalid escape sequence: `\x{62`"),
        (r"[\x+1]", r"error parsing regexp: invalid escape sequence: `\x+1`"),
        (r"\x{41", r"error parsing regexp: invalid escape sequence: `\x{41`"),
        (r"\xa", r"error parsing regexp: invalid escape sequence: `\xa`"),
        (r"\x", r"error parsing regexp: invalid escape sequence: `\x`"),
        (r"[\x", r"error parsing regexp: invalid escape sequence: `\x`"),
        (r"\x{}", r"error parsing regexp: invalid escape sequence: `\x{}`"),
        (r"\x{4g}", r"error parsing regexp: invalid escape sequence: `\x{4g`"),
        (r"\x{110000}", r"error parsing regexp: invalid escape sequence: `\x{110000`"),
        (r"\x+1", r"error parsing regexp: invalid escape sequence: `\x+1`"),
        ("a{1001}", "error parsing regexp: invalid repeat count: `{1001}`"),
        ("((a{1000}){1000}){100}", "error parsing regexp: expression too large"),
    ] {
        let result = Pattern::check(pattern).map_err(|error| error.to_string());
        assert_eq!(result, Err(expected.to_owned()), "{pattern}");
    }
}

/// A pattern that passes the check can be compiled, so a stored schema never fails later.
#[test]
fn checked_patterns_compile() {
    let mut largest = 0;
    for count in [1, 10, 50, 100, 200, 400, 800, 1000] {
        let pattern = format!("^([a-z]{{{count}}}é?){{20}}$");
        let Ok(bytes) = Pattern::check(&pattern) else { continue };
        assert!(bytes > largest, "{count}");
        assert!(Pattern::compile(&pattern).is_ok(), "{count}");
        largest = bytes;
    }
    assert!(largest > 100_000, "{largest}");
}

/// Patterns that are made of the parts of the syntax, complete or not, and of characters of several
/// bytes.
#[test]
fn no_pattern_panics() {
    const PARTS: &[&str] = &[
        "a", "€", "[", "]", "[^", "(", ")", "(?", "(?P<", ">", ":", "i", "-", "\\", "x", "{", "}",
        "4", "7", ",", "*", "+", "?", "|", "^", "$", ".", "\\Q", "\\E", "\\p", "[:", ":]", "\\d",
        "\\b", "\u{301}",
    ];
    let parts = prop::collection::vec(prop::sample::select(PARTS), 0..12);
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..5000 {
        let pattern = parts.new_tree(&mut runner).expect("a pattern").current().concat();
        if Pattern::check(&pattern).is_ok() {
            assert!(Pattern::compile(&pattern).is_ok(), "{pattern}");
        }
    }
}

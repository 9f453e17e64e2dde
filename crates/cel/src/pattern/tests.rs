use super::*;

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

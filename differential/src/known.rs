//! Known deviations of other implementations from Kubernetes v1.36.

/// A deviation: the implementation, a regular expression for minimal expressions with both results
/// (`expression => theirs, not ours`), an example, and the difference.
#[derive(Debug)]
pub struct Known {
    pub of: &'static str,
    pub shows: &'static str,
    pub example: &'static str,
    pub why: &'static str,
}

const fn known(
    of: &'static str,
    shows: &'static str,
    example: &'static str,
    why: &'static str,
) -> Known {
    Known { of, shows, example, why }
}

const CEL_RUST: &str = "cel-rust";
const RSCEL: &str = "rscel";

const FOLDED: &str =
    "does not fold constants; in Kubernetes an error in a constant part fails the whole expression";
const DOUBLES: &str =
    "formats doubles without exponents; Kubernetes uses one beyond 1e21, and where it is shorter";
const INFINITY: &str = "formats infinity differently";
const EMPTY: &str = "evaluates the left operand of `in` for an empty list";
const TEXT_KEYS: &str = "supports only string keys of maps";

/// The first match is used.
#[rustfmt::skip]
pub const KNOWN: &[Known] = &[
    known(CEL_RUST, r"not error: constant: ", "on ? 1 : int('a')", FOLDED),
    known(CEL_RUST, r#""-?inf", not "[+-]Inf""#, "string(1.0 / 0.0)", INFINITY),
    known(CEL_RUST, r#"string\(.*, not .*\de[+-]\d+""#, "string(9.3e18)", DOUBLES),
    known(
        CEL_RUST,
        r"indexOf\(.*, .*index out of range: .*not (-1|\[)",
        "'a'.indexOf('b', 7)",
        "rejects an offset beyond the end; cel-go v0.26 finds nothing there, and later versions fail",
    ),
    known(
        CEL_RUST,
        r"indexOf\(.*, .* => (\d+|error: .*index out of range: -\d+), not -?\d+$",
        "'a'.indexOf('', 7)",
        "finds an empty string only within the text; cel-go v0.26 at any offset",
    ),
    known(
        CEL_RUST,
        r"lists\.range\(.*size must be non-negative.*not \[\]",
        "lists.range(-1)",
        "rejects negative ranges, which are empty in cel-go",
    ),
    known(CEL_RUST, r"in \[\] => error.*not false", "ports[9] in []", EMPTY),
    known(RSCEL, r"not error: constant: ", "on ? 1 : int('a')", FOLDED),
    known(RSCEL, r#""-?inf", not "[+-]Inf""#, "string(1.0 / 0.0)", INFINITY),
    known(RSCEL, r#"string\(.*, not .*\de[+-]\d+""#, "string(9.3e18)", DOUBLES),
    known(
        RSCEL,
        r"Only strings can be|Op 'in' invalid|Index operator invalid",
        "{1: 2}[1]",
        TEXT_KEYS,
    ),
    known(RSCEL, r"0x[0-9A-F]+.*Syntax Error", "0x1F", "has no hexadecimal numbers"),
    known(RSCEL, r"'''.*Syntax Error", "'''x'y'''", "has no triple-quoted strings"),
    known(
        RSCEL,
        r#"size\(\) expects exactly one argument|field: "size""#,
        "name.size()",
        "has the function `size` but not the method",
    ),
    known(
        RSCEL,
        r#"size\(.*(Invalid op .*"uint"|not true)"#,
        "size(name) - 9",
        "returns sizes as unsigned integers",
    ),
    known(
        RSCEL,
        r"size\(.*=> \d+, not \d+",
        "size(text)",
        "counts the bytes of strings, not the characters",
    ),
    known(
        RSCEL,
        r#"string\(\) invalid for Type\("bool"\)"#,
        "string(on)",
        "does not convert booleans to strings",
    ),
    known(RSCEL, r"error: panic", "-9223372036854775808", "does not check for integer overflow"),
    known(
        RSCEL,
        r#"(all|exists|exists_one|filter|map)\(\) only available|field: "(all|exists)""#,
        "labels.all(v, v != '')",
        "has macros only for lists",
    ),
    known(
        RSCEL,
        r"int\(.*, not error: (constant: )?(unsigned )?integer overflow",
        "int(ratio * 9.3e30)",
        "clamps doubles that are out of range",
    ),
    known(RSCEL, r"(\S+) > (\S+) => true, not false", "3 > 3", "considers equal values greater"),
    known(
        RSCEL,
        r"(\d+u|uint\().*[<>].*=> (true|false), not",
        "18446744073709551615u >= count",
        "compares unsigned numbers by their difference as signed ones",
    ),
    known(
        RSCEL,
        r"&&.* => error.*not false|\|\|.* => error.*not true|exists\(.* => error.*not true",
        "ports[9] == 1 && false",
        "fails where another operand or item determines the result",
    ),
    known(
        RSCEL,
        r"\.(all|exists|exists_one|map|filter)\(.*not error: ",
        "hosts.all(v, ports[9] == 1)",
        "considers errors in macros false",
    ),
    known(
        RSCEL,
        r"\.\w+\(v\d*, .*\{.*=> (true|false|\[.*), not",
        "hosts.all(v, {v: 1}.exists(k, on))",
        "considers errors in macros false, such as the lack of macros for maps",
    ),
    known(
        RSCEL,
        r"\[.*, not error: (index out of bounds|no such key|type conversion|division|modulus)",
        "[ports[9], 1][1]",
        "stores errors as list items, which fail only if they are used",
    ),
    known(RSCEL, r"in \[\] => error.*not false", "ports[9] in []", EMPTY),
    known(
        RSCEL,
        r"=> (true|false), not error: NaN values cannot be ordered",
        "ratio < 0.0 / 0.0",
        "orders NaN",
    ),
];

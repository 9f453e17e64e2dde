//! Where others are known to depart from what Kubernetes v1.36 does.

/// A departure: whose, a regular expression for the least expressions that show it with both outcomes
/// (`expression => theirs, not ours`), one that does, and why it is no fault of Pintle's.
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

const FOLDED: &str = "evaluates what is reached; Kubernetes folds constants, and an error in them is one of the whole";
const DOUBLES: &str =
    "writes doubles without exponents; Kubernetes has one beyond 1e21, and where it is shorter";
const INFINITY: &str = "writes infinity in another way";
const EMPTY: &str = "evaluates what is looked for in an empty list";
const TEXT_KEYS: &str = "has maps by text alone";

/// Of several that fit, the first counts.
#[rustfmt::skip]
pub const KNOWN: &[Known] = &[
    known(CEL_RUST, r"not error: constant: ", "on ? 1 : int('a')", FOLDED),
    known(CEL_RUST, r#""-?inf", not "[+-]Inf""#, "string(1.0 / 0.0)", INFINITY),
    known(CEL_RUST, r#"string\(.*, not .*\de[+-]\d+""#, "string(9.3e18)", DOUBLES),
    known(
        CEL_RUST,
        r"indexOf\(.*, .*index out of range: .*not (-1|\[)",
        "'a'.indexOf('b', 7)",
        "has no place behind a text's end; cel-go v0.26 finds nothing there, and later versions err",
    ),
    known(
        CEL_RUST,
        r"indexOf\(.*, .* => (\d+|error: .*index out of range: -\d+), not -?\d+$",
        "'a'.indexOf('', 7)",
        "finds an empty text within a text only; cel-go v0.26 wherever it is looked for",
    ),
    known(
        CEL_RUST,
        r"lists\.range\(.*size must be non-negative.*not \[\]",
        "lists.range(-1)",
        "has no negative ranges, which are empty for cel-go",
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
    known(RSCEL, r"'''.*Syntax Error", "'''x'y'''", "has no texts in three quotes"),
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
        "gives sizes as unsigned numbers",
    ),
    known(
        RSCEL,
        r"size\(.*=> \d+, not \d+",
        "size(text)",
        "counts the bytes of texts, not the characters",
    ),
    known(
        RSCEL,
        r#"string\(\) invalid for Type\("bool"\)"#,
        "string(on)",
        "makes no text of booleans",
    ),
    known(RSCEL, r"error: panic", "-9223372036854775808", "checks no bounds of numbers"),
    known(
        RSCEL,
        r#"(all|exists|exists_one|filter|map)\(\) only available|field: "(all|exists)""#,
        "labels.all(v, v != '')",
        "has macros over lists alone",
    ),
    known(
        RSCEL,
        r"int\(.*, not error: (constant: )?(unsigned )?integer overflow",
        "int(ratio * 9.3e30)",
        "brings doubles that are too great within bounds",
    ),
    known(RSCEL, r"(\S+) > (\S+) => true, not false", "3 > 3", "takes what is equal for greater"),
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
        "errs where another operand or item decides",
    ),
    known(
        RSCEL,
        r"\.(all|exists|exists_one|map|filter)\(.*not error: ",
        "hosts.all(v, ports[9] == 1)",
        "takes errors in macros for false",
    ),
    known(
        RSCEL,
        r"\.\w+\(v\d*, .*\{.*=> (true|false|\[.*), not",
        "hosts.all(v, {v: 1}.exists(k, on))",
        "takes errors in macros for false, as that there are none over maps",
    ),
    known(
        RSCEL,
        r"\[.*, not error: (index out of bounds|no such key|type conversion|division|modulus)",
        "[ports[9], 1][1]",
        "keeps errors as items of lists, where they hurt only if they are used",
    ),
    known(RSCEL, r"in \[\] => error.*not false", "ports[9] in []", EMPTY),
    known(
        RSCEL,
        r"=> (true|false), not error: NaN values cannot be ordered",
        "ratio < 0.0 / 0.0",
        "orders what is no number",
    ),
];

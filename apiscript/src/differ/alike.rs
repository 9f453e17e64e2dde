//! Decides which texts and numbers count as equal in the responses of two servers: values that each
//! server chooses itself, such as uids, times, addresses and resource versions, say nothing about
//! its behaviour.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use regex::{Captures, Regex};
use serde_json::Value;

/// Patterns of values that a server chooses, and their replacements.
const MADE_UP: [(&str, &str); 18] = [
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
    (r"\b(127\.0\.0\.1|localhost):\d{4,5}\b", "<address>"),
    (r"\b10\.([089]|96|1\d\d)\.\d+\.\d+\b", "<cluster ip>"),
    (r"\bapiserver-[a-z2-7]{26}", "apiserver-<identity>"),
    (r#"(?i)(resource ?version\\*"?: ?\\*"?)\d+"#, "${1}<version>"),
    (r"\(\d{4,}\) is too old|current: \d+|too large resource version: \d+", "<version>"),
    (r"(precondition|record) \(\d+\)", "${1} (<version>)"),
    (r"object meta: \d+", "object meta: <version>"),
    (r"\b0x[0-9a-f]{6,}\b", "<pointer>"),
    (r#"(in scheme \\*")[^"\\]+"#, "${1}<scheme>"),
    (r"X509SHA256=[0-9a-f]{64}", "X509SHA256=<sum>"),
    (r#""(kubernetes-|pintle-)?admin""#, "\"<me>\""),
    (r"^(kubernetes-|pintle-)?admin$", "<me>"),
    (r"\b(g-|G_)[a-z0-9]{5}\b", "${1}<suffix>"),
    (r"kube-api-access-\w{5}", "kube-api-access-<suffix>"),
    (r"\b3[0-2]\d{3}(/(TCP|UDP))", "<port>${1}"),
    (r"(request-timeout|timeout) after .*", "${1} after <time>"),
    (r"^(<invalid>|<unknown>|(\d+[smhdy]){1,2})$", "<age>"),
];

static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let compiled = |(pattern, word)| (Regex::new(pattern).expect("a constant pattern"), word);
    MADE_UP.into_iter().map(compiled).collect()
});
static TIME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").expect("a constant pattern")
});

/// The text with the values that a server chooses replaced by their kind.
pub(super) fn normal(text: &str) -> String {
    let precision = |found: &Captures<'_>| match found.get(1) {
        Some(fraction) => format!("<time.{}>", "u".repeat(fraction.len() - 1)),
        None => "<time>".to_owned(),
    };
    let mut text = TIME.replace_all(text, precision).into_owned();
    for (pattern, word) in PATTERNS.iter() {
        if pattern.is_match(&text) {
            text = pattern.replace_all(&text, *word).into_owned();
        }
    }
    text
}

/// Whether two texts under a key count as equal.
pub(super) fn texts(key: &str, a: &str, b: &str) -> bool {
    let is_version = |text: &str| text != "0" && text.bytes().all(|byte| byte.is_ascii_digit());
    match key {
        "resourceVersion" | "olderVersion" => {
            !a.is_empty() && !b.is_empty() && is_version(a) && is_version(b)
        }
        "continue" => !a.is_empty() && !b.is_empty(),
        "message" => sorted(&normal(a)) == sorted(&normal(b)),
        _ => normal(a) == normal(b),
    }
}

/// The parts of an aggregated error, sorted: many come from Go's maps, which have no order.
fn sorted(message: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = message.split([',', '[', ']', '{', '}']).map(str::trim).collect();
    parts.sort_unstable();
    parts
}

/// Whether two numbers under a key count as equal.
pub(super) fn numbers(key: &str, a: &Value, b: &Value) -> bool {
    let is_port = |n: &Value| n.as_u64().is_some_and(|n| (30_000..=32_767).contains(&n));
    let is_of_time = ["iat", "exp", "nbf", "warnafter"].contains(&key);
    let is_node_port = key == "nodePort" || key == "healthCheckNodePort";
    is_of_time || (is_node_port && is_port(a) && is_port(b))
}

/// The claims of a text that is a token.
pub(super) fn claims(text: &str) -> Option<Value> {
    let claims = text.strip_prefix("eyJ")?.split('.').nth(1)?;
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_a_server_chooses_count_as_equal() {
        for (key, a, b, expected) in [
            (
                "uid",
                "5bb1b4d0-0000-4000-8000-000000000001",
                "5bb1b4d0-1111-4000-8000-000000000002",
                true,
            ),
            ("time", "2026-01-01T00:00:00Z", "2027-01-01T00:00:01Z", true),
            ("time", "2026-01-01T00:00:00Z", "2027-01-01T00:00:01.123456Z", false),
            ("resourceVersion", "12", "345", true),
            ("resourceVersion", "0", "345", false),
            ("resourceVersion", "", "345", false),
            ("message", "x: [b, a]", "x: [a, b]", true),
            ("message", "x: [b, a]", "x: [a, c]", false),
            ("clusterIP", "10.0.0.7", "10.96.3.1", true),
            ("clusterIP", "10.0.0.7", "None", false),
        ] {
            assert_eq!(texts(key, a, b), expected, "{key}: {a} and {b}");
        }
    }
}

//! The text formats that upstream checks (`k8s.io/kube-openapi/pkg/validation/strfmt`); others are
//! ignored.

mod address;

use std::net::Ipv6Addr;
use std::sync::LazyLock;

use base64::Engine as _;
use pintle_meta::duration;
use regex::Regex;

use crate::structural::{Structural, Type};

/// A format that is checked.
#[derive(Clone, Copy)]
pub(crate) struct Format(fn(&str) -> bool);

impl Format {
    /// Whether a text has the format.
    pub(crate) fn holds(self, text: &str) -> bool {
        (self.0)(text)
    }
}

/// The format of a schema's texts, if it is known.
pub(crate) fn of(schema: &Structural) -> Option<Format> {
    let name = schema.rules.as_ref().map(|rules| rules.format.as_str())?;
    if !matches!(schema.ty, None | Some(Type::String)) || name.is_empty() {
        return None;
    }
    named(name)
}

/// Whether a format is supported for a type. Any other format is accepted, ignored, and causes a
/// warning.
pub(crate) fn is_known(ty: &str, name: &str) -> bool {
    match ty {
        "" | "string" => named(name).is_some(),
        "integer" => matches!(name, "int32" | "int64"),
        "number" => matches!(name, "float" | "double"),
        _ => false,
    }
}

/// Returns the format with this name, in which dashes are ignored.
fn named(name: &str) -> Option<Format> {
    let name = name.replace('-', "");
    let row = FORMATS.iter().find(|(known, _)| *known == name)?;
    Some(Format(row.1))
}

type Row = (&'static str, fn(&str) -> bool);

const FORMATS: &[Row] = &[
    ("bsonobjectid", |text| text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit())),
    ("byte", is_base64),
    ("cidr", address::is_cidr),
    ("creditcard", |text| {
        let digits: String = text.chars().filter(char::is_ascii_digit).collect();
        CREDIT_CARD.is_match(&digits) && luhn(&digits)
    }),
    ("date", |text| text.len() == 10 && is_date(text)),
    ("datetime", is_date_time),
    ("duration", is_duration),
    ("email", |text| EMAIL.is_match(text)),
    ("hexcolor", |text| HEX_COLOR.is_match(text)),
    ("hostname", is_hostname),
    ("ipv4", address::is_ipv4),
    ("ipv6", |text| text.parse::<Ipv6Addr>().is_ok()),
    ("isbn", |text| is_isbn10(text) || is_isbn13(text)),
    ("isbn10", is_isbn10),
    ("isbn13", is_isbn13),
    ("k8slongname", |text| pintle_meta::names::dns1123_subdomain(text).is_empty()),
    ("k8sshortname", |text| pintle_meta::names::dns1123_label(text).is_empty()),
    ("mac", |text| MAC.is_match(text)),
    ("password", |_| true),
    ("rgbcolor", |text| RGB_COLOR.is_match(text)),
    ("ssn", |text| SSN.is_match(text)),
    ("uri", is_request_uri),
    ("uuid", |text| UUID.is_match(text)),
    ("uuid3", |text| UUID3.is_match(text)),
    ("uuid4", |text| UUID4.is_match(text)),
    ("uuid5", |text| UUID5.is_match(text)),
];

/// A compiled constant expression.
macro_rules! expression {
    ($name:ident, $text:expr) => {
        static $name: LazyLock<Regex> =
            LazyLock::new(|| Regex::new($text).expect("a constant that a test compiles"));
    };
}

expression!(UUID, "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$");
expression!(UUID3, "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$");
expression!(UUID4, "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$");
expression!(UUID5, "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$");
// A single label has at most one dash, after its first character; the last of several labels has
// letters only.
expression!(
    HOSTNAME,
    r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$"
);
expression!(EMAIL, r#"^([^<>()\[\],;:\s@"]+|"[^"]+")@[^\s@<>(),;:"]+$"#);
expression!(HEX_COLOR, "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$");
expression!(
    RGB_COLOR,
    r"^rgb\(\s*(0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])\s*,\s*(0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])\s*,\s*(0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])\s*\)$"
);
expression!(SSN, "^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$");
expression!(
    MAC,
    r"^([0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}|[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){7}|[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){19}|[0-9a-fA-F]{4}(\.[0-9a-fA-F]{4}){2}|[0-9a-fA-F]{4}(\.[0-9a-fA-F]{4}){3})$"
);
expression!(
    CREDIT_CARD,
    "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$"
);
expression!(
    DATE_TIME,
    r"^([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$"
);
expression!(WORD_DURATION, r"^((\d+)\s*([A-Za-zµ]+)\s*)+$");

fn is_base64(text: &str) -> bool {
    // Upstream's expression requires padding and at least one group.
    !text.is_empty() && base64::engine::general_purpose::STANDARD.decode(text).is_ok()
}

/// Lengths are in bytes, unlike those of the expression.
fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && text.split('.').all(|part| part.len() <= 63) && HOSTNAME.is_match(text)
}

fn is_date(text: &str) -> bool {
    pintle_meta::time::parse(&format!("{text}T00:00:00Z")).is_ok()
}

fn is_date_time(text: &str) -> bool {
    let Some(parts) = DATE_TIME.captures(text) else { return false };
    let below = |group: usize, bound: u8| parts[group].parse::<u8>().is_ok_and(|n| n < bound);
    is_date(&parts[1]) && below(2, 24) && below(3, 60) && below(4, 60)
}

fn is_duration(text: &str) -> bool {
    const UNITS: &[&str] = &[
        "ns",
        "nano",
        "nanos",
        "nanosecond",
        "nanoseconds",
        "us",
        "µs",
        "micro",
        "micros",
        "microsecond",
        "microseconds",
        "ms",
        "milli",
        "millis",
        "millisecond",
        "milliseconds",
        "s",
        "sec",
        "secs",
        "second",
        "seconds",
        "m",
        "min",
        "mins",
        "minute",
        "minutes",
        "h",
        "hr",
        "hour",
        "hours",
        "d",
        "day",
        "days",
        "w",
        "wk",
        "week",
        "weeks",
    ];
    if duration::parse(text).is_ok() {
        return true;
    }
    let units = text.split(|c: char| c.is_ascii_digit() || c.is_whitespace());
    WORD_DURATION.is_match(text)
        && units
            .filter(|unit| !unit.is_empty())
            .all(|unit| UNITS.contains(&unit.to_lowercase().as_str()))
}

/// Whether the text is a valid request target: an absolute URI, or a path.
fn is_request_uri(text: &str) -> bool {
    let plain = !text.bytes().any(|b| b.is_ascii_control() || b == b' ' || b == 0x7f);
    let escapes_hold = text.match_indices('%').all(|(at, _)| {
        text.as_bytes().get(at + 1..at + 3).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit))
    });
    if !plain || !escapes_hold {
        return false;
    }
    if text.starts_with('/') {
        return true;
    }
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let mut letters = scheme.bytes();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
        && !rest.is_empty()
}

fn luhn(digits: &str) -> bool {
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(i, b)| {
            let digit = u32::from(b - b'0') * if i % 2 == 1 { 2 } else { 1 };
            digit / 10 + digit % 10
        })
        .sum();
    sum.is_multiple_of(10)
}

fn isbn_digits(text: &str) -> Vec<u32> {
    let digit = |c: char| c.to_digit(10).or((c == 'X').then_some(10));
    text.chars().filter(|c| !matches!(c, '-' | ' ')).map(|c| digit(c).unwrap_or(99)).collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = isbn_digits(text);
    let (Some(last), true) = (digits.last(), digits.len() == 10) else { return false };
    digits[..9].iter().all(|d| *d < 10)
        && *last <= 10
        && digits.iter().zip(1..).map(|(d, i)| d * i).sum::<u32>().is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits = isbn_digits(text);
    digits.len() == 13
        && digits.iter().all(|d| *d < 10)
        && digits
            .iter()
            .zip([1, 3].iter().cycle())
            .map(|(d, w)| d * w)
            .sum::<u32>()
            .is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_match_upstream() {
        for (format, good, bad) in [
            ("bsonobjectid", &["507f1f77bcf86cd799439011"][..], &["507f"][..]),
            ("byte", &["aGVsbG8="], &["aGVsbG8", "", "*"]),
            (
                "cidr",
                &["10.0.0.0/8", "fd00::/64", "10.0.0.1/08", "010.0.0.0/8", "::ffff:1.2.3.4/100"],
                &["10.0.0.0", "10.0.0.0/33", "10.0.0.0/", "10.0.0/8", "::/129", "::/+1", "1/8"],
            ),
            ("creditcard", &["4111 1111 1111 1111"], &["4111 1111 1111 1112"]),
            ("date", &["2020-02-29"], &["2021-02-29", "2020-2-1"]),
            ("date-time", &["2014-12-15T19:30:20.000Z"], &["2014-12-15", "2014-12-15T25:30:20Z"]),
            ("datetime", &["2014-12-15T19:30:20+01:00"], &["x"]),
            ("duration", &["1h30m", "22 ns", "3 days", "1d"], &["x", "1 parsec"]),
            ("email", &["a@b.c", "a.b@c"], &["a", "a@"]),
            ("hexcolor", &["#fff", "FFFFFF"], &["#ff"]),
            (
                "hostname",
                &["example.com", "1host", "a", "m-y", "bücher.example", "💩.la", "a-b.c-d.com"],
                &["-x", "a..b", "a.b", "my-host", "a.b1", "a_b", "a.", "", "x.c-d", "a-.com"],
            ),
            (
                "ipv4",
                &["1.2.3.4", "010.00.0.001", "::ffff:1.2.3.4", "1:2:3:4:5:6:1.2.3.4"],
                &[
                    "1.2.3",
                    "::1",
                    "1.2.3.256",
                    "1.2.3.4.5",
                    "1:2:3:4:5:1.2.3.4",
                    "1.2.3.4:",
                    ".",
                    "",
                ],
            ),
            ("ipv6", &["::1"], &["1.2.3.4"]),
            ("isbn", &["0321751043", "978-0321751041"], &["0321751044"]),
            ("k8s-short-name", &["a-b"], &["A", "a.b"]),
            ("mac", &["01:23:45:67:89:ab"], &["01:23"]),
            ("rgbcolor", &["rgb(1,2,255)"], &["rgb(1,2,256)"]),
            ("ssn", &["111-22-3333"], &["1"]),
            ("uri", &["http://a/b", "/x", "urn:x"], &["a b", "x", "%zz", ""]),
            ("uuid", &["a987fbc9-4bed-3078-cf07-9141ba07c9f3"], &["x"]),
            (
                "uuid4",
                &["57b73598-8764-4ad0-a76a-679bb6640eb1"],
                &["a987fbc9-4bed-3078-cf07-9141ba07c9f3"],
            ),
        ] {
            let known = named(format).unwrap_or_else(|| panic!("{format}"));
            good.iter().for_each(|text| assert!(known.holds(text), "{format} {text}"));
            bad.iter().for_each(|text| assert!(!known.holds(text), "{format} {text}"));
        }
        for expression in [&UUID, &UUID3, &UUID5, &HOSTNAME, &EMAIL, &CREDIT_CARD, &WORD_DURATION] {
            assert!(!expression.as_str().is_empty());
        }
    }
}

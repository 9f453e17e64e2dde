//! The text formats that upstream checks (`k8s.io/kube-openapi/pkg/validation/strfmt`); others are
//! ignored.

mod address;
mod email;

use std::net::Ipv6Addr;
use std::sync::LazyLock;

use pintle_meta::duration;
use pintle_value::Value;
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

/// The format of a schema, of texts or numbers; empty if its type does not support it.
pub(crate) fn name(schema: &Structural) -> &str {
    let name = schema.rules.as_ref().map_or("", |rules| rules.format.as_str());
    if is_known(schema.ty.map_or("", Type::name), name) { name } else { "" }
}

/// The format of a value itself: of the Go type that holds it in upstream.
pub(crate) const fn of_value(value: &Value) -> &'static str {
    match value {
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        _ => "",
    }
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
    ("byte", |text| BASE64.is_match(text)),
    ("cidr", address::is_cidr),
    ("creditcard", |text| {
        let digits: String = text.chars().filter(char::is_ascii_digit).collect();
        CREDIT_CARD.is_match(&digits) && luhn(&digits)
    }),
    ("date", |text| text.len() == 10 && is_date(text)),
    ("datetime", is_date_time),
    ("duration", is_duration),
    ("email", email::is_email),
    ("hexcolor", |text| HEX_COLOR.is_match(text)),
    ("hostname", is_hostname),
    ("ipv4", address::is_ipv4),
    ("ipv6", |text| text.parse::<Ipv6Addr>().is_ok()),
    ("isbn", |text| is_isbn10(text) || is_isbn13(text)),
    ("isbn10", is_isbn10),
    ("isbn13", is_isbn13),
    ("k8slongname", |text| pintle_meta::names::dns1123_subdomain(text).is_empty()),
    ("k8sshortname", |text| pintle_meta::names::dns1123_label(text).is_empty()),
    ("mac", is_mac),
    ("password", |_| true),
    ("rgbcolor", |text| RGB_COLOR.is_match(text)),
    ("ssn", |text| text.len() == SSN_BYTES && SSN.is_match(text)),
    ("uri", pintle_cel::Url::is_request),
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
expression!(HEX_COLOR, "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$");
// The white space of Go's `\s`.
expression!(
    RGB_COLOR,
    r"^rgb\([\t\n\f\r ]*(0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*,[\t\n\f\r ]*(0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*,[\t\n\f\r ]*(0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*\)$"
);
expression!(SSN, "^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$");
// The bits after the last byte may be any.
expression!(
    BASE64,
    "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$"
);
expression!(
    CREDIT_CARD,
    "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$"
);
// As in upstream, any character can precede the fraction.
expression!(TIME, r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$");
expression!(PART_OF_DURATION, r"([0-9]+)[\t\n\f\r ]*([A-Za-zµ]+)");

/// The length of a social security number; its expression also fits numbers without separators.
const SSN_BYTES: usize = 11;

/// Lengths are in bytes, unlike those of the expression.
fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && text.split('.').all(|part| part.len() <= 63) && HOSTNAME.is_match(text)
}

fn is_date(text: &str) -> bool {
    pintle_meta::time::parse(&format!("{text}T00:00:00Z")).is_ok()
}

/// Whether the text is a date and a time. As in upstream, a further `T` ends the time.
fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let Some(parts) = TIME.captures(time) else { return false };
    date.len() == 10 && is_date(date) && &parts[1] < "24" && &parts[2] < "60" && &parts[3] < "60"
}

/// Whether the text is a duration of Go, or contains numbers with units, among which one is known.
/// As in upstream, the last name of a unit can be followed by more letters, and the text can have
/// anything between its numbers.
fn is_duration(text: &str) -> bool {
    const UNITS: &[(&[&str], &str)] = &[
        (&["ns"], "nano"),
        (&["us", "µs"], "micro"),
        (&["ms"], "milli"),
        (&["s"], "sec"),
        (&["m"], "min"),
        (&["h", "hr"], "hour"),
        (&["d"], "day"),
        (&["w", "wk"], "week"),
    ];
    if duration::parse(text).is_ok() {
        return true;
    }
    let mut has_unit = false;
    for part in PART_OF_DURATION.captures_iter(text) {
        if part[1].parse::<i64>().is_err() {
            return false;
        }
        let unit = part[2].to_lowercase();
        has_unit |= UNITS
            .iter()
            .any(|(names, last)| names.contains(&unit.as_str()) || unit.starts_with(last));
    }
    has_unit
}

/// Whether the text is a hardware address of 6, 8 or 20 bytes.
fn is_mac(text: &str) -> bool {
    [(':', 2), ('-', 2), ('.', 4)].into_iter().any(|(separator, digits)| {
        let is_group =
            |part: &str| part.len() == digits && part.bytes().all(|b| b.is_ascii_hexdigit());
        let groups = text.split(separator);
        groups.clone().all(is_group) && matches!(groups.count() * digits / 2, 6 | 8 | 20)
    })
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
    text.chars()
        .filter(|c| !matches!(c, '-' | ' ' | '\t' | '\n' | '\x0c' | '\r'))
        .map(|c| digit(c).unwrap_or(99))
        .collect()
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
mod tests;

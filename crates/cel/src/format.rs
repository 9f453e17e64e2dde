//! Named text formats (`dns1123Label`, `uuid`, `date` …).

use pintle_meta::names;

use crate::{time, url};

/// A named format.
#[derive(Debug)]
pub(crate) struct Format {
    /// Its name in expressions.
    key: &'static str,
    /// Its name in messages.
    pub(crate) name: &'static str,
    /// Returns the errors of a text.
    pub(crate) wrong: fn(&str) -> Vec<String>,
    /// The length of upstream's pattern, for the cost of a call at run time.
    pub(crate) pattern_length: u64,
}

const fn format(
    key: &'static str,
    name: &'static str,
    pattern_length: u64,
    wrong: fn(&str) -> Vec<String>,
) -> Format {
    Format { key, name, wrong, pattern_length }
}

static FORMATS: &[Format] = &[
    format("dns1123Label", "DNS1123Label", 30, |s| names::label_rule(s, false)),
    format("dns1123Subdomain", "DNS1123Subdomain", 60, |s| names::subdomain_rule(s, false)),
    format("dns1035Label", "DNS1035Label", 30, |s| names::dns1035_rule(s, false)),
    format("qualifiedName", "QualifiedName", 60, names::qualified_name),
    format("dns1123LabelPrefix", "DNS1123LabelPrefix", 30, |s| names::label_rule(s, true)),
    format("dns1123SubdomainPrefix", "DNS1123SubdomainPrefix", 60, |s| {
        names::subdomain_rule(s, true)
    }),
    format("dns1035LabelPrefix", "DNS1035LabelPrefix", 30, |s| names::dns1035_rule(s, true)),
    format("labelValue", "LabelValue", 40, names::label_value),
    format("uri", "URI", 1103, |s| url::parse_request(s).err().into_iter().collect()),
    format("uuid", "uuid", 70, |s| unless(is_uuid(s), "does not match the UUID format")),
    format("byte", "byte", 84, |s| unless(is_base64(s), "invalid base64")),
    format("date", "date", 71, |s| unless(time::parse_date(s).is_some(), "invalid date")),
    format("datetime", "datetime", 71, |s| unless(is_date_time(s), "invalid datetime")),
];

/// The format with this name in expressions.
pub(crate) fn find(key: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.key == key)
}

fn unless(ok: bool, message: &str) -> Vec<String> {
    if ok { Vec::new() } else { vec![message.to_owned()] }
}

/// Hexadecimal digits in groups, optionally separated by dashes.
fn is_uuid(text: &str) -> bool {
    let mut rest = text.as_bytes();
    for (at, len) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if at > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        let Some((group, behind)) = rest.split_at_checked(len) else { return false };
        if !group.iter().all(u8::is_ascii_hexdigit) {
            return false;
        }
        rest = behind;
    }
    rest.is_empty()
}

fn is_base64(text: &str) -> bool {
    let digits = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    let is_digit = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    !text.is_empty() && text.len().is_multiple_of(4) && digits.bytes().all(is_digit)
}

/// True for a date and a time as RFC 3339 writes them, in any case: `2026-01-31T23:59:59.5+01:00`.
/// The hour, minute and second have two digits each, so their text has the order of the numbers.
fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(clock)) = (parts.next(), parts.next()) else { return false };
    let Some((hms, rest)) = clock.split_at_checked(8) else { return false };
    let number = |range: std::ops::Range<usize>, most: &str| {
        let digits = hms.get(range).unwrap_or("");
        digits.bytes().all(|b| b.is_ascii_digit()) && digits <= most
    };
    let colons = hms.get(2..3) == Some(":") && hms.get(5..6) == Some(":");
    let ok = number(0..2, "23") && number(3..5, "59") && number(6..8, "59");
    text.len() >= 4
        && time::parse_date(date).is_some()
        && colons
        && ok
        && is_fraction_and_zone(rest)
}

/// True for the end of such a time, after the seconds: an optional fraction, and `z` or an offset
/// such as `+01:00`.
fn is_fraction_and_zone(text: &str) -> bool {
    let is_zone = |zone: &str| match zone.as_bytes() {
        b"z" => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => [h1, h2, m1, m2].iter().all(|d| d.is_ascii_digit()),
        _ => false,
    };
    // Upstream's pattern accepts any character before the fraction.
    let mut chars = text.chars();
    let fraction = chars.next().map_or("", |_| chars.as_str());
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    is_zone(text) || (digits > 0 && is_zone(&fraction[digits..]))
}

//! Formats of texts and numbers of several kinds, with the messages of
//! `k8s.io/apimachinery/pkg/util/validation`. `pintle_meta::names` has names of objects.

use std::net::{IpAddr, Ipv4Addr};

const SUBDOMAIN_LENGTH_MAX: usize = 253;
const PORT_NAME_LENGTH_MAX: usize = 15;

/// Upstream's message for a number out of range.
pub(crate) fn within(least: i64, most: i64) -> String {
    format!("must be between {least} and {most}, inclusive")
}

/// Checks the number of a port.
pub(crate) fn port_number(number: i64) -> Option<String> {
    (!(1..=65535).contains(&number)).then(|| within(1, 65535))
}

/// Checks the name of a port (RFC 6335).
pub(crate) fn port_name(name: &str) -> Vec<String> {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let mut wrong = Vec::new();
    if name.len() > PORT_NAME_LENGTH_MAX {
        wrong.push(format!("must be no more than {PORT_NAME_LENGTH_MAX} characters"));
    }
    if name.is_empty() || !name.bytes().all(inner) {
        wrong.push(
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned(),
        );
    }
    if !name.bytes().any(|b| b.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        wrong.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        wrong.push("must not begin or end with a hyphen".to_owned());
    }
    wrong
}

/// Checks the name of an environment variable.
pub(crate) fn environment_name(name: &str) -> Vec<String> {
    let is_fit = |b: u8| (b' '..=b'~').contains(&b) && b != b'=';
    let mut wrong = Vec::new();
    if name.is_empty() {
        wrong.push("environment variable name must be non-empty".to_owned());
    }
    if !name.bytes().all(is_fit) {
        wrong.push(
            "a valid environment variable name must consist only of printable ASCII characters \
             other than '='"
                .to_owned(),
        );
    }
    wrong
}

/// Checks a key of a ConfigMap or Secret.
pub(crate) fn config_key(key: &str) -> Vec<String> {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    let mut wrong = Vec::new();
    if key.len() > SUBDOMAIN_LENGTH_MAX {
        wrong.push(format!("must be no more than {SUBDOMAIN_LENGTH_MAX} characters"));
    }
    if key.is_empty() || !key.bytes().all(inner) {
        wrong.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. \
             'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
             '[-._a-zA-Z0-9]+')"
                .to_owned(),
        );
    }
    match key {
        "." | ".." => wrong.push(format!("must not be '{key}'")),
        _ if key.starts_with("..") => wrong.push("must not start with '..'".to_owned()),
        _ => {}
    }
    wrong
}

/// Checks the name of an HTTP header.
pub(crate) fn header_name(name: &str) -> Vec<String> {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    if !name.is_empty() && name.bytes().all(inner) {
        return Vec::new();
    }
    vec![
        "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. \
         'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"
            .to_owned(),
    ]
}

/// Checks a percentage: `25%`.
pub(crate) fn percent(text: &str) -> Vec<String> {
    let digits = text.strip_suffix('%').unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        return Vec::new();
    }
    vec![
        "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  \
         or '93%', regex used for validation is '[0-9]+%')"
            .to_owned(),
    ]
}

/// Checks a DNS subdomain that may contain underscores, as search paths may.
pub(crate) fn subdomain_with_underscores(text: &str) -> Vec<String> {
    let is_label = |label: &str| {
        let label = label.strip_prefix('_').unwrap_or(label);
        let ends = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b);
        let bytes = label.as_bytes();
        ends(bytes.first()) && ends(bytes.last()) && bytes.iter().all(|b| inner(*b))
    };
    let mut wrong = Vec::new();
    if text.len() > SUBDOMAIN_LENGTH_MAX {
        wrong.push(format!("must be no more than {SUBDOMAIN_LENGTH_MAX} characters"));
    }
    if !text.split('.').all(is_label) {
        wrong.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '_', '-' or '.', and must start and end with an alphanumeric character (e.g. \
             'example.com', regex used for validation is \
             '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    wrong
}

/// An IP address as Go once read it: zeros may lead the parts of an IPv4 address.
pub(crate) fn parse_ip(text: &str) -> Option<IpAddr> {
    text.parse().ok().or_else(|| {
        let mut parts = [0_u8; 4];
        let mut written = text.split('.');
        for part in &mut parts {
            let digits = written.next().filter(|d| d.bytes().all(|b| b.is_ascii_digit()))?;
            let significant = digits.trim_start_matches('0');
            *part = match (digits.is_empty(), significant.is_empty()) {
                (true, _) => return None,
                (false, true) => 0,
                (false, false) => significant.parse().ok()?,
            };
        }
        written.next().is_none().then(|| IpAddr::V4(Ipv4Addr::from(parts)))
    })
}

/// Checks an IP address in an old field, which accepts an IPv6 address that is not in canonical
/// form. The address may not be IPv4-mapped, and its parts may not have leading zeros.
pub fn ip(text: &str) -> Vec<String> {
    match (parse_ip(text), text.parse::<IpAddr>()) {
        (None, _) => {
            vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()]
        }
        (Some(_), Err(_)) => vec!["must not have leading 0s".to_owned()],
        (Some(_), Ok(IpAddr::V6(ip))) if ip.to_ipv4_mapped().is_some() => {
            vec!["must not be an IPv4-mapped IPv6 address".to_owned()]
        }
        _ => Vec::new(),
    }
}

/// Upstream's warning about a valid IP address that is not in canonical form.
pub(crate) fn odd_ip(text: &str) -> Option<String> {
    match (parse_ip(text)?, text.parse::<IpAddr>()) {
        (ip, Err(_)) => Some(format!("non-standard IP address {text:?} is invalid: use \"{ip}\"")),
        (_, Ok(IpAddr::V6(ip))) if ip.to_ipv4_mapped().is_some() => {
            let plain = ip.to_ipv4_mapped()?;
            Some(format!("non-standard IP address {text:?} is invalid: use \"{plain}\""))
        }
        (_, Ok(ip @ IpAddr::V6(_))) if ip.to_string() != text => {
            Some(format!("IPv6 address {text:?} should be in RFC 5952 canonical format (\"{ip}\")"))
        }
        _ => None,
    }
}

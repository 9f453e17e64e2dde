//! IP addresses and CIDR ranges, parsed as Go does, with its errors.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use pintle_meta::quote::quote;

/// An address, and whether it has a zone.
pub(crate) struct Parsed {
    pub(crate) ip: IpAddr,
    pub(crate) zone: bool,
}

/// The error, and the rest of the text at its position.
struct ParseError<'a> {
    message: &'static str,
    at: &'a str,
}

/// Parses an address.
pub(crate) fn parse(text: &str) -> Result<Parsed, String> {
    let parsed = match text.find(['.', ':', '%']).map(|at| text.as_bytes()[at]) {
        Some(b'.') => parse_v4(text).map(|ip| Parsed { ip: IpAddr::V4(ip.into()), zone: false }),
        Some(b':') => parse_zoned(text),
        Some(_) => Err(ParseError { message: "missing IPv6 address", at: "" }),
        None => Err(ParseError { message: "unable to parse IP", at: "" }),
    };
    parsed.map_err(|ParseError { message, at }| {
        let at = if at.is_empty() { String::new() } else { format!(" (at {})", quote(at)) };
        format!("ParseAddr({}): {message}{at}", quote(text))
    })
}

fn parse_v4(text: &str) -> Result<[u8; 4], ParseError<'_>> {
    let wrong = |message, at| Err(ParseError { message, at });
    if text.is_empty() {
        return wrong("unable to parse IP", "");
    }
    let mut bytes = [0; 4];
    let (mut field, mut digits, mut value) = (0, 0, 0_u32);
    for (i, c) in text.char_indices() {
        match c {
            '0'..='9' => {
                if digits == 1 && value == 0 {
                    return wrong("IPv4 field has octet with leading zero", "");
                }
                value = value * 10 + (c as u32 - '0' as u32);
                digits += 1;
                if value > 255 {
                    return wrong("IPv4 field has value >255", "");
                }
            }
            '.' if i == 0 || i + 1 == text.len() || digits == 0 => {
                return wrong("IPv4 field must have at least one digit", &text[i..]);
            }
            '.' if field == 3 => return wrong("IPv4 address too long", ""),
            '.' => {
                bytes[field] = value as u8;
                field += 1;
                (digits, value) = (0, 0);
            }
            _ => return wrong("unexpected character", &text[i..]),
        }
    }
    if field < 3 {
        return wrong("IPv4 address too short", "");
    }
    bytes[3] = value as u8;
    Ok(bytes)
}

fn parse_zoned(text: &str) -> Result<Parsed, ParseError<'_>> {
    let (address, zone) = match text.split_once('%') {
        Some((_, "")) => {
            return Err(ParseError { message: "zone must be a non-empty string", at: "" });
        }
        Some((address, _)) => (address, true),
        None => (text, false),
    };
    let ip = IpAddr::V6(Ipv6Addr::from(parse_v6(address)?));
    Ok(Parsed { ip, zone })
}

/// Parses eight fields; `::` stands for one or more fields of zeros.
fn parse_v6(text: &str) -> Result<[u8; 16], ParseError<'_>> {
    let wrong = |message, at| Err(ParseError { message, at });
    let mut bytes = [0_u8; 16];
    let mut len = 0;
    let mut gap = None;
    let mut rest = text;
    if let Some(behind) = rest.strip_prefix("::") {
        gap = Some(0);
        rest = behind;
    }
    while len < 16 && !(rest.is_empty() && gap == Some(len)) {
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits > 4 {
            return wrong("each group must have 4 or less digits", rest);
        }
        if digits == 0 {
            return wrong("each colon-separated field must have at least one digit", rest);
        }
        if rest[digits..].starts_with('.') {
            if gap.is_none() && len != 12 {
                let message =
                    "embedded IPv4 address must replace the final 2 fields of the address";
                return wrong(message, rest);
            }
            if len + 4 > 16 {
                let message =
                    "too many hex fields to fit an embedded IPv4 at the end of the address";
                return wrong(message, rest);
            }
            bytes[len..len + 4].copy_from_slice(&parse_v4(rest)?);
            len += 4;
            rest = "";
            break;
        }
        let field = u16::from_str_radix(&rest[..digits], 16).unwrap_or_default();
        bytes[len..len + 2].copy_from_slice(&field.to_be_bytes());
        len += 2;
        rest = &rest[digits..];
        if rest.is_empty() {
            break;
        }
        if !rest.starts_with(':') {
            return wrong("unexpected character, want colon", rest);
        }
        if rest.len() == 1 {
            return wrong("colon must be followed by more characters", rest);
        }
        rest = &rest[1..];
        if let Some(behind) = rest.strip_prefix(':') {
            if gap.is_some() {
                return wrong("multiple :: in address", rest);
            }
            gap = Some(len);
            rest = behind;
        }
    }
    if !rest.is_empty() {
        return wrong("trailing garbage after address", rest);
    }
    match gap {
        None if len < 16 => wrong("address string too short", ""),
        Some(_) if len == 16 => wrong("the :: must expand to at least one field of zeros", ""),
        Some(gap) => {
            bytes.copy_within(gap..len, 16 - (len - gap));
            bytes[gap..16 - (len - gap)].fill(0);
            Ok(bytes)
        }
        None => Ok(bytes),
    }
}

/// Whether an IPv6 address is IPv4-mapped.
pub(crate) fn is_mapped(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some())
}

/// Formats an address as Go does, except an IPv4-mapped one, which this crate refuses.
pub(crate) fn text(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => Ipv4Addr::to_string(&ip),
        // Go formats IPv4-compatible addresses in hexadecimal.
        IpAddr::V6(ip) => compressed(ip.segments()),
    }
}

fn compressed(fields: [u16; 8]) -> String {
    // The first of the longest runs of zeros, at least two.
    let (mut best, mut best_len) = (0, 0);
    let mut at = 0;
    while at < 8 {
        let len = fields[at..].iter().take_while(|f| **f == 0).count();
        if len > best_len && len >= 2 {
            (best, best_len) = (at, len);
        }
        at += len.max(1);
    }
    let join = |fields: &[u16]| {
        let fields: Vec<String> = fields.iter().map(|f| format!("{f:x}")).collect();
        fields.join(":")
    };
    match best_len {
        0 => join(&fields),
        len => format!("{}::{}", join(&fields[..best]), join(&fields[best + len..])),
    }
}

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cidr {
    pub(crate) ip: IpAddr,
    /// The prefix length in bits.
    pub(crate) length: u8,
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", text(self.ip), self.length)
    }
}

impl Cidr {
    /// The range with the bits after the prefix cleared.
    pub(crate) fn masked(self) -> Self {
        let length = u32::from(self.length);
        let ip = match self.ip {
            IpAddr::V4(ip) => {
                let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() & mask))
            }
            IpAddr::V6(ip) => {
                let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & mask))
            }
        };
        Self { ip, ..self }
    }

    /// Whether the range contains an address of the same family.
    pub(crate) fn contains(self, ip: IpAddr) -> bool {
        self.ip.is_ipv4() == ip.is_ipv4() && self.masked() == Self { ip, ..self }.masked()
    }
}

//! IP addresses and ranges as texts, with the messages of
//! `k8s.io/apimachinery/pkg/util/validation/ip.go`.
//!
//! Old fields accept valid addresses that are not in canonical form, with a warning; new fields
//! require the canonical form. Both refuse forms that programs parse in different ways: leading
//! zeros, and IPv4-mapped IPv6 addresses.

use std::net::IpAddr;

use pintle_value::Value;

use crate::{
    checks::WARNINGS_MAX,
    field::Field,
    formats::{self, parse_ip},
};

const NOT_A_RANGE: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// Checks an address that must be in canonical form.
pub(crate) fn canonical_ip(text: &str) -> Vec<String> {
    let wrong = formats::ip(text);
    match parse_ip(text) {
        Some(ip) if wrong.is_empty() && ip.to_string() != text => {
            vec![format!("must be in canonical form ({:?})", ip.to_string())]
        }
        _ => wrong,
    }
}

/// Checks an address of a destination, which may not be a special one.
pub(crate) fn special_ip(text: &str) -> Vec<String> {
    let Some(ip) = parse_ip(text) else { return vec!["must be a valid IP address".to_owned()] };
    let first_segment = |ip: IpAddr| match ip {
        IpAddr::V4(_) => 0,
        IpAddr::V6(ip) => ip.segments()[0],
    };
    let ip = ip.to_canonical();
    let is_link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(_) => first_segment(ip) & 0xffc0 == 0xfe80,
    };
    let is_link_local_multicast = match ip {
        IpAddr::V4(ip) => ip.octets()[..3] == [224, 0, 0],
        IpAddr::V6(_) => first_segment(ip) & 0xff0f == 0xff02,
    };
    let rows = [
        (ip.is_unspecified(), format!("may not be unspecified ({text})")),
        (ip.is_loopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned()),
        (
            is_link_local,
            "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned(),
        ),
        (
            is_link_local_multicast,
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned(),
        ),
    ];
    rows.into_iter().filter(|(holds, _)| *holds).map(|(_, words)| words).collect()
}

/// A range of addresses: an address and the length of its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    ip: IpAddr,
    bits: u8,
}

impl Range {
    /// Parses a range by Go's old rules: leading zeros are allowed, and bits may be set after the
    /// prefix.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (ip, bits) = text.split_once('/')?;
        let ip = parse_ip(ip)?;
        if bits.is_empty() || !bits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let bits = bits.trim_start_matches('0');
        let bits: u8 = if bits.is_empty() { 0 } else { bits.parse().ok()? };
        (bits <= width(ip)).then_some(Self { ip, bits })
    }

    /// Its first address.
    fn first(self) -> IpAddr {
        match self.ip {
            IpAddr::V4(ip) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::from((u32::from(ip) & mask).to_be_bytes())
            }
            IpAddr::V6(ip) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                IpAddr::from((u128::from(ip) & mask).to_be_bytes())
            }
        }
    }

    /// Whether it contains all of `other` and more.
    pub(crate) fn is_wider_than(self, other: Self) -> bool {
        let within = Self { ip: other.ip, bits: self.bits.min(width(other.ip)) };
        width(self.ip) == width(other.ip)
            && within.first() == self.first()
            && self.bits < other.bits
    }

    /// Whether its addresses are IPv6.
    pub(crate) const fn is_ipv6(self) -> bool {
        self.ip.is_ipv6()
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.first(), self.bits)
    }
}

const fn width(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

/// Checks a range in an old field.
pub(crate) fn range(text: &str) -> Vec<String> {
    let Some(range) = Range::parse(text) else { return vec![NOT_A_RANGE.to_owned()] };
    let (ip, bits) = text.split_once('/').unwrap_or_default();
    let has_zeros = ip.parse::<IpAddr>().is_err() || (bits.len() > 1 && bits.starts_with('0'));
    let words = match range.ip {
        _ if has_zeros => "must not have leading 0s in IP or prefix length",
        IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some() => {
            "must not have an IPv4-mapped IPv6 address"
        }
        ip if ip != range.first() => "must not have bits set beyond the prefix length",
        _ => return Vec::new(),
    };
    vec![words.to_owned()]
}

/// Checks a range that must be in canonical form.
pub(crate) fn canonical_range(text: &str) -> Vec<String> {
    let wrong = range(text);
    match Range::parse(text) {
        Some(range) if wrong.is_empty() && range.to_string() != text => {
            vec![format!("must be in canonical form ({:?})", range.to_string())]
        }
        _ => wrong,
    }
}

/// Checks the address of an interface, an address with a prefix length, in canonical form.
pub(crate) fn interface(text: &str) -> Vec<String> {
    let Some(range) = Range::parse(text) else {
        let words = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
        return vec![words.to_owned()];
    };
    let canonical = match range.ip {
        IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some() => {
            format!("{}/{}", ip.to_canonical(), range.bits.saturating_sub(96))
        }
        ip => format!("{ip}/{}", range.bits),
    };
    if canonical == text {
        return Vec::new();
    }
    vec![format!("must be in canonical form ({canonical:?})")]
}

/// Upstream's warning about a valid range that is not in canonical form.
pub(crate) fn odd_range(text: &str) -> Vec<String> {
    let Some(range) = Range::parse(text) else { return Vec::new() };
    let mut odd = Vec::new();
    if range.ip != range.first() {
        let single = format!("{}/{}", range.ip, width(range.ip));
        odd.push(format!(
            "CIDR value {text:?} is ambiguous in this context (should be \"{range}\" or {single:?}?)"
        ));
    }
    let strict = self::range(text);
    if strict.iter().any(|words| !words.contains("bits set")) {
        odd.push(format!("non-standard CIDR value {text:?} is invalid: use \"{range}\""));
    }
    if odd.is_empty() && range.is_ipv6() && range.to_string() != text {
        let words = "should be in RFC 5952 canonical format";
        odd.push(format!("IPv6 CIDR value {text:?} {words} (\"{range}\")"));
    }
    odd
}

/// Upstream's warnings about the addresses in a status of load balancers.
pub(crate) fn odd_points(object: &Value) -> Vec<String> {
    let object = Field::root(object);
    let balancer = object.at(&["status", "loadBalancer"]);
    let odd = balancer.items("ingress").filter_map(|point| {
        let odd = formats::odd_ip(point.str("ip"))?;
        Some(format!("{}: {odd}", point.path()))
    });
    odd.take(WARNINGS_MAX).collect()
}

/// Whether the text is an IPv6 address.
pub(crate) fn is_ipv6(text: &str) -> bool {
    parse_ip(text).is_some_and(|ip| ip.to_canonical().is_ipv6())
}

#[cfg(test)]
mod tests {
    use super::{canonical_ip, canonical_range, odd_range, range, special_ip};

    fn check(rule: fn(&str) -> Vec<String>, text: &str, expected: &str) {
        assert_eq!(rule(text).join("; "), expected, "{text}");
    }

    #[test]
    fn addresses() {
        let bad = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        for (text, expected) in [
            ("10.9.8.7", ""),
            ("2001:db8::ffff", ""),
            ("", bad),
            ("10.9.8", bad),
            ("010.9.8.7", "must not have leading 0s"),
            ("::ffff:1.2.3.4", "must not be an IPv4-mapped IPv6 address"),
            ("2001:DB8::1", "must be in canonical form (\"2001:db8::1\")"),
            ("2001:db8:0:0::1", "must be in canonical form (\"2001:db8::1\")"),
        ] {
            check(canonical_ip, text, expected);
        }
        for (text, expected) in [
            ("10.9.8.7", ""),
            ("0.0.0.0", "may not be unspecified (0.0.0.0)"),
            ("::", "may not be unspecified (::)"),
            ("127.0.0.1", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
            ("::1", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
            ("169.254.1.1", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
            ("fe80::1", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
            ("224.0.0.1", "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
            ("ff02::1", "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
            ("x", "must be a valid IP address"),
        ] {
            check(special_ip, text, expected);
        }
    }

    #[test]
    fn ranges() {
        for (text, expected) in [
            ("10.0.0.0/8", ""),
            ("0.0.0.0/0", ""),
            ("::/0", ""),
            ("2001:db8::/64", ""),
            ("10.0.0.0", super::NOT_A_RANGE),
            ("10.0.0.0/33", super::NOT_A_RANGE),
            ("10.0.0.0/", super::NOT_A_RANGE),
            ("10.0.0.00/8", "must not have leading 0s in IP or prefix length"),
            ("10.0.0.0/08", "must not have leading 0s in IP or prefix length"),
            ("10.0.0.1/8", "must not have bits set beyond the prefix length"),
            ("::ffff:10.0.0.0/104", "must not have an IPv4-mapped IPv6 address"),
        ] {
            check(range, text, expected);
        }
        check(canonical_range, "2001:DB8::/64", "must be in canonical form (\"2001:db8::/64\")");
        check(
            odd_range,
            "2001:DB8::/64",
            "IPv6 CIDR value \"2001:DB8::/64\" should be in RFC 5952 canonical format \
             (\"2001:db8::/64\")",
        );
        check(
            odd_range,
            "10.0.0.1/8",
            "CIDR value \"10.0.0.1/8\" is ambiguous in this context (should be \"10.0.0.0/8\" or \
             \"10.0.0.1/32\"?)",
        );
        check(odd_range, "10.0.0.0/8", "");
    }
}

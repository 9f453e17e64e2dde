//! IP addresses and ranges as Go read them before version 1.17, with leading zeros (upstream:
//! `ParseIPSloppy` and `ParseCIDRSloppy` of `k8s.io/utils/net`).

/// The first number that upstream's readers refuse.
const NUMBER_END: u32 = 0xFF_FFFF;

/// The number of bytes of an IPv6 address, and of the IPv4 address at its end.
const IPV6_BYTES: usize = 16;
const IPV4_BYTES: usize = 4;

/// Whether the text is an address with a dot: an IPv4 address, or an IPv6 address that ends with
/// one.
pub(super) fn is_ipv4(text: &str) -> bool {
    let first = text.bytes().find(|b| matches!(b, b'.' | b':'));
    match first {
        Some(b'.') => is_dotted(text),
        Some(_) => text.contains('.') && is_colon_separated(text),
        None => false,
    }
}

/// Whether the text is a range in CIDR notation. The address may have bits beyond the prefix.
pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match address {
        address if is_dotted(address) => 32,
        address if is_colon_separated(address) => 128,
        _ => return false,
    };
    number(bits, 10).is_some_and(|(bits, rest)| rest.is_empty() && bits <= most)
}

/// Whether the text is an IPv4 address.
fn is_dotted(text: &str) -> bool {
    let mut parts = text.split('.');
    let is_byte =
        |part: &str| number(part, 10).is_some_and(|(n, rest)| rest.is_empty() && n <= 0xFF);
    parts.by_ref().take(IPV4_BYTES).filter(|part| is_byte(part)).count() == IPV4_BYTES
        && parts.next().is_none()
}

/// Whether the text is an IPv6 address.
fn is_colon_separated(text: &str) -> bool {
    let (mut rest, mut has_ellipsis) = match text.strip_prefix("::") {
        Some("") => return true,
        Some(rest) => (rest, true),
        None => (text, false),
    };
    // The number of bytes so far.
    let mut at = 0;
    while at < IPV6_BYTES {
        let Some((group, behind)) = number(rest, 16) else { return false };
        if group > 0xFFFF {
            return false;
        }
        if behind.starts_with('.') {
            let fits = if has_ellipsis {
                at + IPV4_BYTES <= IPV6_BYTES
            } else {
                at + IPV4_BYTES == IPV6_BYTES
            };
            if !fits || !is_dotted(rest) {
                return false;
            }
            (at, rest) = (at + IPV4_BYTES, "");
            break;
        }
        (at, rest) = (at + 2, behind);
        if rest.is_empty() {
            break;
        }
        match rest.strip_prefix(':') {
            None | Some("") => return false,
            Some(behind) => rest = behind,
        }
        if let Some(behind) = rest.strip_prefix(':') {
            if has_ellipsis {
                return false;
            }
            (rest, has_ellipsis) = (behind, true);
            if rest.is_empty() {
                break;
            }
        }
    }
    // An ellipsis stands for at least one group.
    rest.is_empty() && (at < IPV6_BYTES) == has_ellipsis
}

/// Reads a number; returns it and the rest of the text.
fn number(text: &str, radix: u32) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_digit(radix)).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.is_empty() {
        return None;
    }
    let value = digits.chars().try_fold(0, |n: u32, digit| {
        let n = n * radix + digit.to_digit(radix)?;
        (n < NUMBER_END).then_some(n)
    });
    Some((value?, rest))
}

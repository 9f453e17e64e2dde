//! Functions of IP addresses and CIDR ranges.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use pintle_meta::quote::quote;

use super::no_overload;
use crate::address::{self, Cidr};
use crate::context::Context;
use crate::error::EvalError;
use crate::functions::Guard::Typed;
use crate::functions::Row;
use crate::value::{Eval, Opaque, Val};

pub(super) const FUNCTIONS: &[Row] = &[
    ("ip", Typed, ip, &[("string_to_ip", "string -> net.IP"), ("cidr_ip", ".net.CIDR -> net.IP")]),
    ("isIP", Typed, is_ip, &[("is_ip", "string -> bool")]),
    ("ip.isCanonical", Typed, is_canonical, &[("ip_is_canonical", "string -> bool")]),
    ("family", Typed, family, &[("ip_family", ".net.IP -> int")]),
    (
        "isUnspecified",
        Typed,
        |_, args| property(args, |ip| ip.is_unspecified()),
        &[("ip_is_unspecified", ".net.IP -> bool")],
    ),
    (
        "isLoopback",
        Typed,
        |_, args| property(args, |ip| ip.is_loopback()),
        &[("ip_is_loopback", ".net.IP -> bool")],
    ),
    (
        "isLinkLocalMulticast",
        Typed,
        |_, args| property(args, is_link_local_multicast),
        &[("ip_is_link_local_multicast", ".net.IP -> bool")],
    ),
    (
        "isLinkLocalUnicast",
        Typed,
        |_, args| property(args, is_link_local_unicast),
        &[("ip_is_link_local_unicast", ".net.IP -> bool")],
    ),
    (
        "isGlobalUnicast",
        Typed,
        |_, args| property(args, is_global_unicast),
        &[("ip_is_global_unicast", ".net.IP -> bool")],
    ),
    ("cidr", Typed, cidr, &[("string_to_cidr", "string -> net.CIDR")]),
    ("isCIDR", Typed, is_cidr, &[("is_cidr", "string -> bool")]),
    (
        "containsIP",
        Typed,
        contains_ip,
        &[
            ("cidr_contains_ip_string", ".net.CIDR, string -> bool"),
            ("cidr_contains_ip_ip", ".net.CIDR, net.IP -> bool"),
        ],
    ),
    (
        "containsCIDR",
        Typed,
        contains_cidr,
        &[
            ("cidr_contains_cidr_string", ".net.CIDR, string -> bool"),
            ("cidr_contains_cidr", ".net.CIDR, net.CIDR -> bool"),
        ],
    ),
    ("prefixLength", Typed, prefix_length, &[("cidr_prefix_length", ".net.CIDR -> int")]),
    ("masked", Typed, masked, &[("cidr_masked", ".net.CIDR -> net.CIDR")]),
];

const fn is_link_local_multicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => matches!(ip.octets(), [224, 0, 0, _]),
        IpAddr::V6(ip) => ip.segments()[0] & 0xff0f == 0xff02,
    }
}

const fn is_link_local_unicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.segments()[0] & 0xffc0 == 0xfe80,
    }
}

const fn is_global_unicast(ip: IpAddr) -> bool {
    let broadcast = matches!(ip, IpAddr::V4(Ipv4Addr::BROADCAST));
    !broadcast
        && !ip.is_unspecified()
        && !ip.is_loopback()
        && !ip.is_multicast()
        && !is_link_local_unicast(ip)
}

/// Parses an address; zones and IPv4-mapped addresses are rejected.
fn parse(text: &str) -> Result<IpAddr, String> {
    let quoted = quote(text);
    let parsed = address::parse(text).map_err(|error| {
        format!("IP Address {quoted} parse error during conversion from string: {error}")
    })?;
    if parsed.zone {
        return Err(format!("IP address {quoted} with zone value is not allowed"));
    }
    if address::is_mapped(parsed.ip) {
        return Err(format!("IPv4-mapped IPv6 address {quoted} is not allowed"));
    }
    Ok(parsed.ip)
}

/// Parses a range.
fn parse_cidr(text: &str) -> Result<Cidr, String> {
    const MESSAGE: &str = "network address parse error during conversion from string:";
    let cidr = prefix(text)
        .map_err(|why| format!("{MESSAGE} {MESSAGE} netip.ParsePrefix({}): {why}", quote(text)))?;
    if address::is_mapped(cidr.ip) {
        let quoted = quote(text);
        return Err(format!("{MESSAGE} IPv4-mapped IPv6 address {quoted} is not allowed"));
    }
    Ok(cidr)
}

fn prefix(text: &str) -> Result<Cidr, String> {
    let (ip, bits) = text.rsplit_once('/').ok_or("no '/'")?;
    let parsed = address::parse(ip)?;
    if parsed.zone {
        return Err("IPv6 zones cannot be present in a prefix".to_owned());
    }
    let bad = || format!("bad bits after slash: {}", quote(bits));
    if bits.len() > 1 && !matches!(bits.as_bytes()[0], b'1'..=b'9') {
        return Err(bad());
    }
    let length: i64 = bits.parse().map_err(|_| bad())?;
    let most = if parsed.ip.is_ipv4() { 32 } else { 128 };
    match u8::try_from(length) {
        Ok(length) if length <= most => Ok(Cidr { ip: parsed.ip, length }),
        _ => Err("prefix length out of range".to_owned()),
    }
}

fn new<'a>(opaque: Opaque) -> Val<'a> {
    Val::Opaque(Arc::new(opaque))
}

fn ip<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    match args {
        [Val::String(text)] => parse(text).map(|ip| new(Opaque::Ip(ip))).map_err(EvalError::new),
        [value] => Ok(new(Opaque::Ip(range(value)?.ip))),
        _ => no_overload(),
    }
}

fn is_ip<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::String(text)] = args else { return no_overload() };
    Ok(Val::Bool(parse(text).is_ok()))
}

fn is_canonical<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::String(text)] = args else { return no_overload() };
    let ip = parse(text).map_err(EvalError::new)?;
    Ok(Val::Bool(address::text(ip) == **text))
}

fn cidr<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::String(text)] = args else { return no_overload() };
    parse_cidr(text).map(|cidr| new(Opaque::Cidr(cidr))).map_err(EvalError::new)
}

fn is_cidr<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::String(text)] = args else { return no_overload() };
    Ok(Val::Bool(parse_cidr(text).is_ok()))
}

fn ip_of(value: &Val<'_>) -> Result<IpAddr, EvalError> {
    match value {
        Val::Opaque(opaque) => match &**opaque {
            Opaque::Ip(ip) => Ok(*ip),
            _ => no_overload(),
        },
        Val::String(text) => parse(text).map_err(EvalError::new),
        _ => no_overload(),
    }
}

fn range(value: &Val<'_>) -> Result<Cidr, EvalError> {
    match value {
        Val::Opaque(opaque) => match &**opaque {
            Opaque::Cidr(cidr) => Ok(*cidr),
            _ => no_overload(),
        },
        Val::String(text) => parse_cidr(text).map_err(EvalError::new),
        _ => no_overload(),
    }
}

fn property<'a>(args: &[Val<'a>], holds: fn(IpAddr) -> bool) -> Eval<'a> {
    let [value] = args else { return no_overload() };
    Ok(Val::Bool(holds(ip_of(value)?)))
}

fn family<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [value] = args else { return no_overload() };
    Ok(Val::Int(if ip_of(value)?.is_ipv4() { 4 } else { 6 }))
}

fn contains_ip<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [cidr, other] = args else { return no_overload() };
    // For a text that is not an address, upstream returns this error without the reason.
    let other = ip_of(other).map_err(|_| EvalError::no_such_overload())?;
    Ok(Val::Bool(range(cidr)?.contains(other)))
}

fn contains_cidr<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [cidr, other] = args else { return no_overload() };
    let (cidr, other) = (range(cidr)?, range(other)?);
    Ok(Val::Bool(cidr.length <= other.length && cidr.contains(other.ip)))
}

fn prefix_length<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [value] = args else { return no_overload() };
    Ok(Val::Int(range(value)?.length.into()))
}

fn masked<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [value] = args else { return no_overload() };
    Ok(new(Opaque::Cidr(range(value)?.masked())))
}

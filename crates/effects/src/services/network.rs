//! Ranges of addresses: their members, and the search for available addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IP family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    pub(crate) const fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// The name in services.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    pub(crate) const fn other(self) -> Self {
        match self {
            Self::V4 => Self::V6,
            Self::V6 => Self::V4,
        }
    }

    const fn bits(self) -> u32 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }

    fn address(self, number: u128) -> IpAddr {
        match self {
            // IPv4 ranges have no larger numbers.
            Self::V4 => Ipv4Addr::from(u32::try_from(number).unwrap_or(u32::MAX)).into(),
            Self::V6 => Ipv6Addr::from(number).into(),
        }
    }
}

/// The shortest prefix that a range of IPv6 addresses may have.
const V6_PREFIX_MIN: u32 = 64;

/// A range of addresses in CIDR notation, without the addresses that no service can have: the
/// network's own, and for IPv4 the broadcast address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    pub(crate) family: Family,
    network: u128,
    first: u128,
    last: u128,
    /// The size, including the addresses that no service can have.
    pub(super) size: u128,
}

impl Network {
    /// Parses `10.0.0.0/24`; the error is the reason.
    pub fn parse(text: &str) -> Result<Self, String> {
        let invalid = || format!("invalid CIDR address: {text}");
        let (address, prefix) = text.split_once('/').ok_or_else(invalid)?;
        let address: IpAddr = address.parse().map_err(|_| invalid())?;
        let prefix: u32 = prefix.parse().map_err(|_| invalid())?;
        let family = Family::of(address);
        let host_bits = family.bits().checked_sub(prefix).ok_or_else(invalid)?;
        if family == Family::V6 && prefix < V6_PREFIX_MIN {
            return Err(format!(
                "shortest allowed prefix length for service CIDR is {V6_PREFIX_MIN}, got {prefix}"
            ));
        }
        // At most 2^64, because larger IPv6 ranges are refused.
        let size = 1_u128 << host_bits;
        let network = number(address) & !(size - 1);
        let last = network + (size - 1);
        let last = if family == Family::V4 { last.saturating_sub(1) } else { last };
        // Nothing follows the last address of IPv6; a range of it alone is empty.
        let first = network.checked_add(1);
        let (first, last) = first.map_or_else(|| (network, network - 1), |first| (first, last));
        Ok(Self { family, network, first, last, size })
    }

    /// Whether a service can have the address.
    pub fn contains(&self, address: IpAddr) -> bool {
        Family::of(address) == self.family && (self.first..=self.last).contains(&number(address))
    }

    /// Whether this range includes all of another.
    pub fn covers(&self, other: &Self) -> bool {
        let end = |network: &Self| network.network + (network.size - 1);
        self.family == other.family && self.network <= other.network && end(other) <= end(self)
    }

    /// The network's own address, which dry runs show.
    pub(crate) fn own_address(&self) -> IpAddr {
        self.family.address(self.network)
    }

    /// Finds the first available address from a random one on. The first part of the range is tried
    /// last: it is reserved for clients that choose an address (KEP-3070).
    pub(crate) fn find_free(
        &self,
        random: impl Fn() -> u64,
        is_free: impl Fn(IpAddr) -> bool,
    ) -> Option<IpAddr> {
        let reserved = self.reserved();
        let upper = (self.first + reserved, self.last);
        let lower = (self.first, (self.first + reserved).saturating_sub(1));
        [upper, lower].into_iter().find_map(|(from, to)| {
            let count = to.checked_sub(from)? + 1;
            let start = u128::from(random()) % count;
            let numbers = (0..count).map(|n| from + (start + n) % count);
            numbers.map(|number| self.family.address(number)).find(|address| is_free(*address))
        })
    }

    /// The number of addresses for services.
    pub(crate) fn size(&self) -> u64 {
        let size = self.last.checked_sub(self.first).map_or(0, |distance| distance + 1);
        u64::try_from(size).unwrap_or(u64::MAX)
    }

    /// The number of addresses that are reserved for clients that choose one.
    fn reserved(&self) -> u128 {
        if self.size <= 16 { 0 } else { (self.size / 16).clamp(16, 256) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.own_address(), self.family.bits() - self.size.trailing_zeros())
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn network(text: &str) -> Network {
        Network::parse(text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn ranges_are_parsed() {
        let rows = [
            ("10.0.0.0/24", Ok(("10.0.0.0/24", "10.0.0.1", "10.0.0.254"))),
            ("10.0.0.77/24", Ok(("10.0.0.0/24", "10.0.0.1", "10.0.0.254"))),
            ("10.0.0.0/30", Ok(("10.0.0.0/30", "10.0.0.1", "10.0.0.2"))),
            ("0.0.0.0/0", Ok(("0.0.0.0/0", "0.0.0.1", "255.255.255.254"))),
            ("fd00::/112", Ok(("fd00::/112", "fd00::1", "fd00::ffff"))),
            ("fd00::/64", Ok(("fd00::/64", "fd00::1", "fd00::ffff:ffff:ffff:ffff"))),
            (
                "ffff:ffff:ffff:ffff::/64",
                Ok((
                    "ffff:ffff:ffff:ffff::/64",
                    "ffff:ffff:ffff:ffff::1",
                    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                )),
            ),
            ("fd00::/63", Err("shortest allowed prefix length for service CIDR is 64, got 63")),
            ("10.0.0.0", Err("invalid CIDR address: 10.0.0.0")),
            ("10.0.0.0/33", Err("invalid CIDR address: 10.0.0.0/33")),
            ("ten/8", Err("invalid CIDR address: ten/8")),
        ];
        for (text, expected) in rows {
            let read = Network::parse(text);
            let read = read.map(|n| {
                let ends = (n.family.address(n.first), n.family.address(n.last));
                (n.to_string(), ends.0.to_string(), ends.1.to_string())
            });
            let expected = expected
                .map(|(n, first, last)| (n.to_owned(), first.to_owned(), last.to_owned()))
                .map_err(str::to_owned);
            assert_eq!(read, expected, "{text}");
        }
    }

    #[test]
    fn only_addresses_for_services_are_in_a_range() {
        let rows = [
            ("10.0.0.0", false),
            ("10.0.0.1", true),
            ("10.0.0.254", true),
            ("10.0.0.255", false),
            ("10.0.1.1", false),
            ("::a00:1", false),
        ];
        for (address, expected) in rows {
            let contains = network("10.0.0.0/24").contains(address.parse().unwrap());
            assert_eq!(contains, expected, "{address}");
        }
    }

    #[test]
    fn a_range_covers_its_parts() {
        let rows = [
            ("10.0.0.0/24", "10.0.0.0/24", true),
            ("10.0.0.0/24", "10.0.0.128/25", true),
            ("10.0.0.128/25", "10.0.0.0/24", false),
            ("10.0.0.0/24", "10.0.1.0/24", false),
            ("0.0.0.0/0", "fd00::/112", false),
            ("fd00::/64", "fd00::/112", true),
        ];
        for (one, other, expected) in rows {
            assert_eq!(network(one).covers(&network(other)), expected, "{one} {other}");
        }
    }

    /// Every address is found once, and the reserved ones last.
    #[test]
    fn all_addresses_are_found() {
        for (text, expected, reserved) in [
            ("10.0.0.0/24", 254, 16),
            ("10.0.0.0/28", 14, 0),
            ("10.0.0.0/32", 0, 0),
            ("fd00::/120", 255, 16),
            ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ff00/120", 255, 16),
            ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", 0, 0),
        ] {
            let network = network(text);
            assert_eq!(network.size(), u64::try_from(expected).unwrap(), "{text}");
            let mut taken = BTreeSet::new();
            let mut last = Vec::new();
            while let Some(address) = network
                .find_free(|| u64::try_from(taken.len() * 37).unwrap(), |a| !taken.contains(&a))
            {
                assert!(network.contains(address), "{address}");
                last.push(address);
                taken.insert(address);
            }
            assert_eq!(taken.len(), expected, "{text}");
            let low = |address: &IpAddr| number(*address) < network.first + reserved;
            let at = last.iter().position(low).unwrap_or(expected);
            assert_eq!(expected - at, usize::try_from(reserved).unwrap(), "{text}");
        }
    }
}

//! The range of node ports.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::Error;

/// `--service-node-port-range`: the first and the last port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    first: u16,
    last: u16,
}

impl PortRange {
    pub(super) fn ports(self) -> RangeInclusive<i64> {
        i64::from(self.first)..=i64::from(self.last)
    }

    /// The number of ports.
    pub(super) fn len(self) -> usize {
        usize::from(self.last - self.first) + 1
    }
}

impl Default for PortRange {
    fn default() -> Self {
        Self { first: 30000, last: 32767 }
    }
}

impl FromStr for PortRange {
    type Err = Error;

    /// Parses `30000-32767`, `30000+2767` or a single port, as upstream does.
    fn from_str(text: &str) -> Result<Self, Error> {
        let refuse = || Error::PortRange { text: text.to_owned() };
        let port = |text: &str| text.trim().parse::<u16>().map_err(|_| refuse());
        let (first, last) = if let Some((first, last)) = text.split_once('-') {
            (port(first)?, port(last)?)
        } else if let Some((first, more)) = text.split_once('+') {
            let first = port(first)?;
            (first, first.saturating_add(port(more)?))
        } else {
            (port(text)?, port(text)?)
        };
        if first == 0 || first > last {
            return Err(refuse());
        }
        Ok(Self { first, last })
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

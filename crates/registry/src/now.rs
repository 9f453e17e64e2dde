//! The time of a request.

/// A point in time: microseconds since 1970, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Microseconds since 1970, UTC.
    pub unix_micros: i64,
}

impl Now {
    /// Whole seconds since 1970.
    pub const fn unix_seconds(self) -> i64 {
        self.unix_micros.div_euclid(1_000_000)
    }
}

//! Work: seats, and the time for which they are occupied.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::Duration;

/// The units of a seat-second.
const UNITS: i128 = 100_000_000;

/// An amount of work in seat-seconds, with eight decimals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeatSeconds(i128);

/// The work that a request is expected to take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkEstimate {
    /// The seats during the execution.
    pub initial_seats: usize,
    /// The seats after the execution, for [`Self::additional_latency`].
    pub final_seats: usize,
    /// How long the final seats are occupied. The client does not wait for this.
    pub additional_latency: Duration,
}

impl SeatSeconds {
    /// The work of occupying seats for a duration, rounded to the nearest unit.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "increments of work are small"
    )]
    pub fn new(seats: f64, duration: Duration) -> Self {
        Self((seats * duration.as_nanos() as f64 / 10.0).round() as i128)
    }

    /// How long this work occupies a number of seats.
    pub fn per_seat(self, seats: usize) -> Duration {
        let units = u128::try_from(self.0).unwrap_or_default();
        let nanoseconds = units * 10 / u128::try_from(seats.max(1)).unwrap_or(1);
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }

    /// The seat-seconds, rounded to a float.
    #[expect(clippy::cast_precision_loss, reason = "for metrics")]
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / UNITS as f64
    }
}

impl WorkEstimate {
    /// A request that occupies seats during its execution, and none afterwards.
    pub const fn seats(seats: usize) -> Self {
        Self { initial_seats: seats, final_seats: 0, additional_latency: Duration::ZERO }
    }

    /// The maximum seats at any time.
    pub fn max_seats(&self) -> usize {
        self.initial_seats.max(self.final_seats)
    }

    /// The work after the execution.
    pub(crate) fn final_work(&self) -> SeatSeconds {
        SeatSeconds::new(as_f64(self.final_seats), self.additional_latency)
    }
}

/// Converts a number of seats for calculations.
#[expect(clippy::cast_precision_loss, reason = "numbers of seats are small")]
pub(crate) const fn as_f64(seats: usize) -> f64 {
    seats as f64
}

/// The nearest whole number of seats; at least 0.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "is not negative")]
pub(crate) const fn rounded(seats: f64) -> usize {
    seats.max(0.0).round() as usize
}

impl fmt::Display for SeatSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (units, scale) = (self.0.unsigned_abs(), UNITS.unsigned_abs());
        write!(f, "{sign}{}.{:08}ss", units / scale, units % scale)
    }
}

impl Add for SeatSeconds {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for SeatSeconds {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl AddAssign for SeatSeconds {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for SeatSeconds {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sum for SeatSeconds {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::default(), Add::add)
    }
}

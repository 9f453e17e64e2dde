//! The number of seats of a request (upstream: the package `flowcontrol/request`).

use std::time::Duration;

use crate::work::{SeatSeconds, WorkEstimate, as_f64};

/// The maximum seats of a list (upstream: with the gate `SizeBasedListCostEstimate`, which is on).
pub const LIST_SEATS_MAX: usize = 100;
/// The maximum seats of a write.
pub const WRITE_SEATS_MAX: usize = 10;

const BYTES_PER_SEAT: u64 = 100_000;
/// The most memory in bytes that a list from the cache takes, because it is sent in pieces.
const STREAMED_BYTES_MAX: u64 = 1_000_000;
const WATCHES_PER_SEAT: usize = 10;
/// The time that a seat is occupied for the event of a write.
const EVENT_DURATION: Duration = Duration::from_millis(5);

/// The objects that a list, or the initial events of a watch, reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The number of objects of the resource.
    pub objects: u64,
    /// Their total size in bytes.
    pub bytes: u64,
    /// The requested page size; 0 for all.
    pub limit: u64,
    /// Whether the request selects a single object by its name.
    pub is_single: bool,
}

/// Estimates a list, in a level where a request takes at most `level_max` seats (0 for no limit).
pub fn list(listed: &Listed, level_max: usize) -> WorkEstimate {
    let average = listed.bytes.checked_div(listed.objects).unwrap_or_default();
    let loaded = match (listed.is_single, listed.limit) {
        (true, _) => 1,
        (false, 0) => listed.objects,
        (false, limit) => limit.min(listed.objects),
    };
    let bytes = loaded.saturating_mul(average).min(STREAMED_BYTES_MAX);
    let seats = usize::try_from(bytes.div_ceil(BYTES_PER_SEAT)).unwrap_or(LIST_SEATS_MAX);
    WorkEstimate::seats(seats.max(1).min(at_most(LIST_SEATS_MAX, level_max)))
}

/// Estimates a write that this number of watches receives.
///
/// Each watch occupies a part of a seat for a moment. If all of them need more than the maximum
/// number of seats, the seats are occupied for longer.
pub fn write(watches: usize, level_max: usize) -> WorkEstimate {
    if watches < WATCHES_PER_SEAT {
        return WorkEstimate::seats(1);
    }
    let wanted = watches.div_ceil(WATCHES_PER_SEAT);
    let work = SeatSeconds::new(as_f64(wanted), EVENT_DURATION);
    let final_seats = wanted.min(at_most(WRITE_SEATS_MAX, level_max));
    let additional_latency = work.per_seat(final_seats);
    WorkEstimate { initial_seats: 1, final_seats, additional_latency }
}

fn at_most(max: usize, level_max: usize) -> usize {
    if level_max == 0 { max } else { max.min(level_max) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_take_seats_by_their_bytes() {
        // objects, bytes, limit, single, maximum of the level; seats
        for (objects, bytes, limit, is_single, level, seats) in [
            (0, 0, 0, false, 0, 1),
            (10, 10_000, 0, false, 0, 1),
            (500, 500_000, 0, false, 0, 5),
            (500, 500_000, 100, false, 0, 1),
            (500, 500_000, 101, false, 0, 2),
            (500, 500_000, 0, true, 0, 1),
            (100_000, 100_000_000, 0, false, 0, 10),
            (100_000, 100_000_000, 0, false, 8, 8),
            (100_000, 100_000_000, 0, false, 20, 10),
        ] {
            let listed = Listed { objects, bytes, limit, is_single };
            assert_eq!(list(&listed, level), WorkEstimate::seats(seats), "{listed:?}");
        }
    }

    #[test]
    fn writes_take_seats_afterwards_by_their_watches() {
        for (watches, level, seats, milliseconds) in [
            (9, 0, 0, 0),
            (10, 0, 1, 5),
            (11, 0, 2, 5),
            (100, 0, 10, 5),
            (1000, 0, 10, 50),
            (1000, 5, 5, 100),
        ] {
            let estimate = write(watches, level);
            assert_eq!(estimate.initial_seats, 1);
            assert_eq!(estimate.final_seats, seats, "{watches}");
            assert_eq!(estimate.additional_latency, Duration::from_millis(milliseconds));
        }
    }
}

//! Priority levels: how the server's seats are divided among them and lent to others.

use crate::allocation::{Bounds, allocate};
use crate::demand::Demand;
use crate::queue_set::Discipline;
use crate::work::{as_f64, rounded};

/// The maximum fraction of a level's nominal seats for one request.
const REQUEST_FRACTION_MAX: f64 = 0.15;

/// The spec of a priority level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// The name.
    pub name: String,
    /// Sent to clients; empty for a mandatory level that is not stored.
    pub uid: String,
    /// The level's part of the server's seats.
    pub shares: Shares,
    /// How requests without a free seat are treated.
    pub discipline: Discipline,
}

/// A level's part of the server's seats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// The shares, relative to the sum over all levels.
    pub nominal: u32,
    /// The percentage of its seats that others may borrow.
    pub lendable_percent: u32,
    /// The maximum that it may borrow, as a percentage of its own seats; unlimited if absent.
    pub borrowing_limit_percent: Option<u32>,
}

/// The possible numbers of seats of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Its own seats.
    pub nominal: usize,
    /// Its seats if it lends all that it may.
    pub min: usize,
    /// Its seats if it borrows all that it may.
    pub max: usize,
}

/// The limit of a level until the next adjustment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adjusted {
    /// The seats.
    pub current: usize,
    /// The target before bounds; `None` for an exempt level.
    pub target: Option<f64>,
}

impl Limits {
    /// The initial limit of a new level.
    pub const fn initial(&self) -> usize {
        self.nominal - (self.nominal - self.min) / 2
    }
}

/// Divides `total` seats by the levels' shares. Fractions are rounded up, so the sum can be
/// slightly higher.
pub fn limits(total: usize, shares: &[Shares]) -> Vec<Limits> {
    let sum: f64 = shares.iter().map(|one| f64::from(one.nominal)).sum();
    let part = |percent: u32, of: usize| rounded(as_f64(of) * f64::from(percent) / 100.0);
    let limits = shares.iter().map(|one| {
        let nominal = match one.nominal {
            0 => 0,
            shares => rounded((as_f64(total) * f64::from(shares) / sum).ceil()),
        };
        let borrowed = one.borrowing_limit_percent.map_or(total, |percent| part(percent, nominal));
        let min = nominal.saturating_sub(part(one.lendable_percent, nominal));
        Limits { nominal, min, max: nominal.saturating_add(borrowed) }
    });
    limits.collect()
}

/// The maximum seats of one request, in a level with this hand size.
pub fn max_seats(nominal: usize, hand_size: usize) -> usize {
    let fraction = rounded((as_f64(nominal) * REQUEST_FRACTION_MAX).ceil());
    fraction.min(nominal / hand_size.max(1)).max(1)
}

/// Adjusts the limits of levels to their demand. Each level is given by its limits, its demand, its
/// current limit and whether it is exempt. Returns the new limits in the same order, and the
/// fraction of its target that every level gets unless a bound applies (upstream:
/// `updateBorrowingLocked`).
pub fn borrow(levels: &[(Limits, Demand, usize, bool)]) -> (Vec<Adjusted>, f64) {
    let least = |limits: &Limits, demand: &Demand, is_exempt: bool| {
        let wanted = if is_exempt {
            demand.high_watermark
        } else {
            demand.high_watermark.min(limits.nominal)
        };
        wanted.max(limits.min)
    };
    let total: usize = levels.iter().map(|(limits, ..)| limits.nominal).sum();
    let (mut exempt, mut min_sum, mut least_sum) = (0_usize, 0, 0);
    let mut classes = Vec::new();
    for (limits, demand, _, is_exempt) in levels {
        let lower = least(limits, demand, *is_exempt);
        if *is_exempt {
            exempt = exempt.saturating_add(lower);
            continue;
        }
        min_sum += limits.min;
        least_sum += lower;
        let (lower, upper) = (as_f64(lower), as_f64(limits.max));
        classes.push(Bounds { lower, upper, target: lower.max(demand.smoothed) });
    }
    let remaining = total.saturating_sub(exempt);
    let mut fraction = 0.0;
    let mut parts = None;
    if remaining > least_sum
        && let Ok((divided, fair)) = allocate(total, &classes)
    {
        (parts, fraction) = (Some(divided), fair);
    }
    let mut class = 0;
    let adjusted = levels.iter().map(|(limits, demand, current, is_exempt)| {
        let lower = least(limits, demand, *is_exempt);
        if *is_exempt {
            return Adjusted { current: lower, target: None };
        }
        let index = class;
        class += 1;
        let current = if remaining <= min_sum {
            limits.min
        } else if remaining <= least_sum {
            let part = as_f64(remaining - min_sum) / as_f64(least_sum - min_sum);
            limits.min + rounded(as_f64(lower - limits.min) * part)
        } else {
            parts.as_ref().map_or(*current, |parts| rounded(parts[index]))
        };
        // Unlike upstream, a level with seats of its own keeps at least one of them: without it, a
        // new request would wait for seconds.
        let current = current.max(limits.nominal.min(1));
        Adjusted { current, target: Some(classes[index].target) }
    });
    (adjusted.collect(), fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The levels of every server, with shares and lendable percentages: exempt, catch-all, system,
    /// node-high, leader-election, workload-high, workload-low, global-default.
    const SUGGESTED: [(u32, u32); 8] =
        [(0, 0), (5, 0), (30, 33), (40, 25), (10, 0), (40, 50), (100, 90), (20, 50)];

    fn suggested(total: usize) -> Vec<Limits> {
        let shares = SUGGESTED.map(|(nominal, lendable_percent)| Shares {
            nominal,
            lendable_percent,
            borrowing_limit_percent: None,
        });
        limits(total, &shares)
    }

    fn demand(high_watermark: usize) -> Demand {
        Demand { high_watermark, smoothed: as_f64(high_watermark), ..Demand::default() }
    }

    #[test]
    fn seats_are_divided_by_shares() {
        let limits = suggested(600);
        let nominal: Vec<_> = limits.iter().map(|limits| limits.nominal).collect();
        assert_eq!(nominal, [0, 13, 74, 98, 25, 98, 245, 49]);
        let min: Vec<_> = limits.iter().map(|limits| limits.min).collect();
        assert_eq!(min, [0, 13, 50, 73, 25, 49, 24, 24]);
        assert_eq!(limits[1].max, 613);
        assert_eq!(max_seats(245, 6), 37);
        assert_eq!(max_seats(49, 6), 8);
        assert_eq!(max_seats(1, 6), 1);
    }

    #[test]
    fn a_level_borrows_unused_seats() {
        let levels = |demands: [usize; 8]| {
            let limits = suggested(600).into_iter().zip(demands);
            let of = |(index, (limits, wanted)): (usize, (Limits, usize))| {
                (limits, demand(wanted), limits.nominal, index == 0)
            };
            limits.enumerate().map(of).collect::<Vec<_>>()
        };
        let current = |demands| {
            let (adjusted, _) = borrow(&levels(demands));
            adjusted.iter().map(|level| level.current).collect::<Vec<_>>()
        };
        let busy = current([0, 0, 0, 0, 0, 0, 0, 500]);
        assert!(busy[7] > 300, "{busy:?}");
        assert_eq!(busy[1], 13);
        let all = current([0, 500, 500, 500, 500, 500, 500, 500]);
        assert!(all[7] >= 49 && all[7] < 60, "{all:?}");
        let crowded_out = current([600, 500, 500, 500, 500, 500, 500, 500]);
        assert_eq!(crowded_out[1..], [13, 50, 73, 25, 49, 24, 24]);
    }
}

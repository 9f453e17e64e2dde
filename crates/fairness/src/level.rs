//! Priority levels: how the server's seats are divided among them, and lent from one to another.

use crate::allocation::{Bounds, allocate};
use crate::demand::Demand;
use crate::queue_set::Discipline;
use crate::work::{as_f64, rounded};

/// Of the nominal seats of a level, one request takes at most so many.
const REQUEST_FRACTION_MAX: f64 = 0.15;

/// The spec of a priority level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Its name.
    pub name: String,
    /// Told to clients; empty for a mandatory level that is not stored.
    pub uid: String,
    /// Its part of the server's seats.
    pub shares: Shares,
    /// What becomes of a request for which there is no seat.
    pub discipline: Discipline,
}

/// The part of the server's seats that a level has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Of the sum over all levels.
    pub nominal: u32,
    /// The percentage of its seats that others may borrow.
    pub lendable_percent: u32,
    /// How much it may borrow, as a percentage of its own; without one, as much as there is.
    pub borrowing_limit_percent: Option<u32>,
}

/// How many seats a level has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Its share.
    pub nominal: usize,
    /// If all is lent that may be.
    pub min: usize,
    /// If all is borrowed that may be.
    pub max: usize,
}

/// The limit of a level for the time until the next adjustment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adjusted {
    /// The seats.
    pub current: usize,
    /// What it was to get, before bounds; nothing for an exempt level.
    pub target: Option<f64>,
}

impl Limits {
    /// The limit of a new level.
    pub const fn initial(&self) -> usize {
        self.nominal - (self.nominal - self.min) / 2
    }
}

/// Divides `total` seats by the levels' shares. Fractions of seats are rounded up, so the sum can be a
/// little more.
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

/// The most seats that one request takes in a level whose flows are dealt so many queues.
pub fn max_seats(nominal: usize, hand_size: usize) -> usize {
    let fraction = rounded((as_f64(nominal) * REQUEST_FRACTION_MAX).ceil());
    fraction.min(nominal / hand_size.max(1)).max(1)
}

/// Adjusts the limits of levels to their demand: each level as its limits, its demand, its current limit
/// and whether it is exempt. Gives the new limits in the same order, and the fraction of its target that
/// each level gets which no bound holds back (upstream: `updateBorrowingLocked`).
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
    let mut given = None;
    if remaining > least_sum
        && let Ok((divided, fair)) = allocate(total, &classes)
    {
        (given, fraction) = (Some(divided), fair);
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
            given.as_ref().map_or(*current, |given| rounded(given[index]))
        };
        // A level that has lent all its seats would find out in seconds that it needs one (upstream's does).
        let current = current.max(limits.nominal.min(1));
        Adjusted { current, target: Some(classes[index].target) }
    });
    (adjusted.collect(), fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The levels of every server: shares, lendable percentage; exempt, catch-all, system, node-high,
    /// leader-election, workload-high, workload-low, global-default.
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
    fn a_level_borrows_what_others_do_not_use() {
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

//! When a deleted object can be removed: the grace period of a kind, of a client, and of an earlier
//! DELETE.

use pintle_meta::{object, time};
use pintle_value::Value;

use crate::GracePeriod;
use crate::request::DeleteOptions;

/// The member of the metadata with the grace period in seconds.
pub(super) const GRACE: &str = "deletionGracePeriodSeconds";

/// Whether an earlier DELETE has set a grace period.
pub(super) fn has_grace(tree: &Value) -> bool {
    tree.at(&["metadata", GRACE]).is_some()
}

/// When a deleted object can be removed, if no finalizer blocks it.
pub(super) enum Due {
    /// At the end of its current grace period, which this request does not shorten.
    Pending,
    /// At this time in microseconds, after a grace period of this many seconds.
    At(i64, i64),
    /// The object's grace period is over.
    Passed,
}

/// Returns when the object can be removed. A request for an object that is being deleted can only
/// shorten the grace period (DEL-06).
pub(super) fn due(tree: &Value, options: &DeleteOptions, period: GracePeriod, now: i64) -> Due {
    if !object::is_terminating(tree) {
        let grace = grace_seconds(period, options);
        return Due::At(now + micros(grace), grace);
    }
    let current = tree.at(&["metadata", GRACE]).and_then(Value::as_int);
    let Some(current @ 1..) = current else { return Due::Passed };
    match options.grace_period_seconds.map(at_least_a_second) {
        Some(0) => Due::At(now, 0),
        Some(requested) if requested < current => {
            let deadline = time::parse(object::text(tree, "deletionTimestamp")).unwrap_or(now);
            let time = deadline - micros(current) + micros(requested);
            if time < now { Due::At(now, 1) } else { Due::At(time, requested) }
        }
        _ => Due::Pending,
    }
}

/// Returns the grace period: 0 for a kind without one, else the client's or the kind's default.
const fn grace_seconds(period: GracePeriod, options: &DeleteOptions) -> i64 {
    match period {
        GracePeriod::None | GracePeriod::Zero => 0,
        GracePeriod::Seconds(default) => match options.grace_period_seconds {
            Some(requested) => at_least_a_second(requested),
            None => default,
        },
    }
}

/// Converts a grace period to microseconds, to be added to a time. Upstream's durations are
/// nanoseconds in 64 bits, at most 292 years, so the year of the sum keeps four digits.
fn micros(seconds: i64) -> i64 {
    seconds.min(i64::MAX / 1_000_000_000) * 1_000_000
}

/// Upstream treats a negative period as one second.
const fn at_least_a_second(seconds: i64) -> i64 {
    if seconds < 0 { 1 } else { seconds }
}

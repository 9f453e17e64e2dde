//! Pods that are still stored after the end of their grace period, for example because their node is
//! lost. Quotas no longer count them except as objects, so that they can be replaced (upstream:
//! `QuotaV1Pod`).
//!
//! Usage changes with writes and not with time, so the quota controller counts again when a grace
//! period is over. Then the pod must not be released a second time when it is removed. Therefore:
//! - For some time after the end, only writes release the pod: by their difference, as before.
//! - Then no write changes usage because of the pod. Later than any of the former writes can commit,
//!   a count leaves the pod out.
//! - If the pod is removed in between, the quota controller counts again.

use std::time::Duration;

use pintle_meta::time;
use pintle_registry::request::Now;
use pintle_value::Value;

/// How long after the end of the grace period a write releases the pod.
const WRITE_DELAY: Duration = Duration::from_secs(30);
/// How long after the end of the grace period a count leaves the pod out. The difference is longer
/// than requests and the difference of the clocks of two servers.
const COUNT_DELAY: Duration = Duration::from_secs(150);

/// The members of a pod on which the end of its grace period depends.
pub const GRACE: &[&[&str]] =
    &[&["metadata", "deletionTimestamp"], &["metadata", "deletionGracePeriodSeconds"]];

/// Until which end of their grace periods pods are charged.
#[derive(Clone, Copy, Debug)]
pub struct ChargedUntil(i64);

impl ChargedUntil {
    /// Pods are charged by a write until some time after their grace period.
    pub fn for_write(now: Now) -> Self {
        Self::after(now, WRITE_DELAY)
    }

    /// Pods are charged by a count until a longer time after their grace period.
    pub fn for_count(now: Now) -> Self {
        Self::after(now, COUNT_DELAY)
    }

    fn after(now: Now, delay: Duration) -> Self {
        let delay = i64::try_from(delay.as_micros()).unwrap_or(i64::MAX);
        Self(now.unix_micros.saturating_sub(delay))
    }

    /// Whether a grace period with this end, in microseconds since 1970, was over early enough.
    pub const fn is_after(self, end: i64) -> bool {
        self.0 > end
    }

    /// How long after this time a grace period with this end will be over early enough.
    pub fn wait(self, end: i64) -> Duration {
        Duration::from_micros(u64::try_from(end.saturating_sub(self.0)).unwrap_or(0))
    }

    pub(super) fn releases(self, pod: &Value) -> bool {
        end_of_grace(pod).is_some_and(|end| self.is_after(end))
    }
}

/// Returns the end of the grace period of a pod that is being deleted, in microseconds since 1970.
/// As in upstream, the period is added to a time that includes it.
pub fn end_of_grace(pod: &Value) -> Option<i64> {
    let deleted = time::parse(pod.str_at(&["metadata", "deletionTimestamp"])?).ok()?;
    let seconds = pod.at(&["metadata", "deletionGracePeriodSeconds"])?.as_int()?;
    Some(deleted.saturating_add(seconds.saturating_mul(1_000_000)))
}

//! Writes the metrics of connections through proxies.

use super::families::{DIAL_DURATION, DIAL_FAILURES, DIAL_STARTS};
use super::family::Page;
use crate::backends::Dials;

/// Writes all metrics of this module.
pub(super) fn write(dials: &Dials, page: &mut Page) {
    super::counters(page, &DIAL_STARTS, &dials.started);
    super::distributions(page, &DIAL_DURATION, &dials.durations);
    super::counters(page, &DIAL_FAILURES, &dials.failed);
}

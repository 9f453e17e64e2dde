//! Writes the metrics of auditing.

use super::families as f;
use super::family::Page;
use crate::audit::{LOSSES, Measures};

/// Writes all metrics of auditing.
pub(super) fn write(measures: &Measures, page: &mut Page) {
    page.single(&f::AUDIT_EVENTS, measures.events());
    page.single(&f::AUDIT_REJECTED, measures.rejected.get());
    let mut levels = page.family(&f::AUDIT_LEVELS);
    let levels_seen = measures.levels().filter(|(_, count)| *count > 0);
    levels_seen.for_each(|(level, count)| levels.value(&[level], count));
    let mut errors = page.family(&f::AUDIT_ERRORS);
    for (plugin, count) in LOSSES.iter().zip(&measures.errors).filter(|(_, count)| count.get() > 0)
    {
        errors.value(&[plugin], count.get());
    }
}

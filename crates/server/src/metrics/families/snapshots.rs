//! Families of snapshots.

use super::Stability::Alpha;
use super::{Family, counter, families, gauge, seconds};
use crate::snapshots::BOUNDS;

const TRIGGER: &[&str] = &["trigger"];

families! {
    SNAPSHOT_DURATION = seconds("pintle_snapshot_duration_seconds", Alpha, TRIGGER, &BOUNDS,
        "How long complete snapshots of the store took, by trigger: a request or the schedule.");
    SNAPSHOT_TIME = gauge("pintle_snapshot_last_success_timestamp_seconds", Alpha, TRIGGER,
        "When the last complete snapshot was begun.");
    SNAPSHOT_SIZE = gauge("pintle_snapshot_last_size_bytes", Alpha, TRIGGER,
        "Bytes of the last complete snapshot.");
    SNAPSHOT_FAILURES = counter("pintle_snapshot_failures_total", Alpha, TRIGGER,
        "Snapshots that failed or were broken off.");
}

//! Events: `events.k8s.io/v1`, stored as events of the core group (EVT-04, EVT-07, MIG-03).

use pintle_value::Value;

use super::{rename, set_api_version};

/// The core group's name of a member, and that of `events.k8s.io`.
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// Converts an event to the core group's form.
pub(crate) fn to_core(event: &mut Value) {
    set_api_version(event, "v1");
    rename(event.make_object(), RENAMED.map(|(core, own)| (own, core)));
}

/// Converts an event from the core group's form.
pub(crate) fn from_core(event: &mut Value) {
    set_api_version(event, "events.k8s.io/v1");
    rename(event.make_object(), RENAMED);
}

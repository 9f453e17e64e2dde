//! Families of auditing.

use super::Stability::Alpha;
use super::{Family, counter, families};

families! {
    AUDIT_EVENTS = counter("apiserver_audit_event_total", Alpha, &[],
        "Events that were made for the backends of the audit log.");
    AUDIT_ERRORS = counter("apiserver_audit_error_total", Alpha, &["plugin"],
        "Events that were lost, by what lost them.");
    AUDIT_LEVELS = counter("apiserver_audit_level_total", Alpha, &["level"],
        "Requests by the level at which the policy has them recorded.");
    AUDIT_REJECTED = counter("apiserver_audit_requests_rejected_total", Alpha, &[],
        "Requests that were refused because they could not be recorded.");
}

//! Families of auditing.

use super::Stability::Alpha;
use super::{Family, counter, families};

families! {
    AUDIT_EVENTS = counter("apiserver_audit_event_total", Alpha, &[],
        "Audit events passed to the audit backends.");
    AUDIT_ERRORS = counter("apiserver_audit_error_total", Alpha, &["plugin"],
        "Lost audit events, by backend.");
    AUDIT_LEVELS = counter("apiserver_audit_level_total", Alpha, &["level"],
        "Requests by audit level.");
    AUDIT_REJECTED = counter("apiserver_audit_requests_rejected_total", Alpha, &[],
        "Requests refused because they could not be audited.");
}

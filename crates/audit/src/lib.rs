//! Audit: which requests are recorded, and what a record of one says.
//!
//! Purpose: the [`Policy`] that says at which [`Level`] a request is recorded, the [`Event`] that records
//! a stage of a request, and the forms in which events are written.
//!
//! Must not know: HTTP, files, the clock, how events reach a backend.
//!
//! Invariants:
//! - An event in a line-based form is one line, whatever clients say: no text of a client ends a line.
//! - Every event can be written: a body that is no JSON is written as a JSON string.

mod event;
mod json;
mod legacy;
mod policy;
mod truncate;

pub use event::{Event, Level, ObjectReference, Request, Response, Stage};
pub use json::event_list;
pub use policy::{Policy, Ruled};
pub use truncate::{TRUNCATED, truncated};

/// Why a policy cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The file is no YAML, or not of the form of a policy.
    #[error("failed decoding: {0}")]
    Syntax(String),
    /// The file is no Policy of audit.k8s.io/v1.
    #[error("unknown group version field {0} in policy")]
    Kind(String),
    /// Fields of the policy have values that make no sense.
    #[error("{0}")]
    Invalid(String),
    /// The policy records nothing.
    #[error("loaded illegal policy with 0 rules")]
    Empty,
}

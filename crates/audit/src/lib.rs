//! Audit: which requests are recorded, and the contents of the records.
//!
//! A [`Policy`] determines the [`Level`] at which a request is recorded; an [`Event`] records a
//! stage of a request and can be written in several formats.
//!
//! Must not know HTTP, files, the clock, or how events reach a backend.
//!
//! Invariants:
//! - An event in a line-based format is one line: text from clients never ends a line.
//! - Every event can be written: a body that is not JSON is written as a JSON string.

mod event;
mod form;
mod json;
mod legacy;
mod members;
mod policy;
mod zone;

pub use event::{
    Annotations, Event, Level, ObjectReference, Request, RequestText, Response, Stage,
};
pub use form::{Form, TRUNCATED};
pub use json::event_list;
pub use policy::{Policy, Recording};
pub use zone::Zone;

/// Why a policy cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The file is not YAML, or does not have the form of a policy.
    #[error("failed decoding: {0}")]
    Syntax(String),
    /// The file is not a Policy of audit.k8s.io/v1.
    #[error("unknown group version field {0} in policy")]
    Kind(String),
    /// Fields of the policy have invalid values.
    #[error("{0}")]
    Invalid(String),
    /// The policy has no rules.
    #[error("loaded illegal policy with 0 rules")]
    Empty,
}

//! The parts that all Kubernetes API objects and responses share: group/version/kind, names,
//! metadata, selectors, quantities, times, the [`User`] of a request, and [`Status`], the form of
//! every error.
//!
//! Must not know: schemas, storage, HTTP beyond status codes, or any particular kind. Nothing here
//! does I/O or reads the clock: the time is always an argument.

pub mod duration;
mod error;
pub mod field;
pub mod fields;
pub mod group;
pub mod labels;
pub mod names;
pub mod object;
pub mod quantity;
pub mod quote;
pub mod status;
#[cfg(test)]
mod tests;
pub mod time;
pub mod uid;
pub mod user;
pub mod validation;
pub mod version;

pub use error::Error;
pub use group::{GroupKind, GroupResource, GroupVersion, GroupVersionKind, GroupVersionResource};
pub use quantity::Quantity;
pub use status::{Reason, Status};
pub use user::User;

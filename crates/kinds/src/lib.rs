//! The built-in kinds of Kubernetes v1.36.
//!
//! Purpose: the differences between kinds, as data where possible: the behaviour of their objects
//! ([`definitions`]), the columns of their Tables ([`printers`]), the conversions between their
//! versions, and the objects of a new cluster ([`bootstrap`]).
//!
//! A kind's behaviour is one entry in its group's module under `groups`: a strategy that changes a
//! few members of a base, with its defaults and rules beside it. Names, verbs and subresources come
//! from the generated table. To change the behaviour of Pods, see `groups/core/pod.rs` and `pods`.
//!
//! Must not know: storage, HTTP, the clock, objects other than the one it is given.
//!
//! Invariants: no function panics on any tree, and setting defaults twice has the same result as
//! once.

mod addresses;
mod amounts;
pub mod bootstrap;
mod checks;
mod conditions;
mod conversion;
mod defaults;
mod definition;
mod deprecation;
mod emulation;
mod features;
mod field;
mod formats;
mod gates;
mod generated;
mod groups;
mod kind;
mod pem;
mod pods;
pub mod printers;
mod removed;
mod rules;
mod runtime_config;
mod signers;
mod strategy;
#[cfg(test)]
mod tests;
pub mod versions;

pub use definition::{built_in, definitions, internal, removed_version, stored};
pub use emulation::{Emulation, NEWEST_MINOR};
pub use features::{Feature, Features};
pub use formats::ip as wrong_ip;
pub use runtime_config::{Error, RuntimeConfig};

//! The built-in kinds of Kubernetes v1.36.
//!
//! Purpose: what is particular to each kind, as data where it can be data: how its objects behave
//! ([`definitions`]), how tables show them ([`printers`]), how its versions become one another, and
//! which objects a new cluster has ([`bootstrap`]).
//!
//! A kind's behaviour is one entry in its group's module under `groups`: a strategy that differs from
//! a base in a few members, with its defaults and rules beside it. Names, verbs and subresources come
//! from the generated table. To change how Pods behave, go to `groups/core/pod.rs` and `pods`.
//!
//! Must not know: storage, HTTP, the clock, other objects than the one at hand.
//!
//! Invariants: no function panics on any tree, and setting defaults twice changes nothing.

mod addresses;
mod amounts;
pub mod bootstrap;
mod checks;
mod conditions;
mod conversion;
mod defaults;
mod definition;
mod deprecation;
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

pub use definition::{built_in, definitions, internal, stored};
pub use features::{Feature, Features};
pub use runtime_config::{Error, RuntimeConfig};

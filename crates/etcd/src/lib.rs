//! The store on etcd: a client of its API, version 3, and [`pintle_store::Store`] on it.
//!
//! Purpose: one database for several servers, each with this store, or a kube-apiserver.
//!
//! Must not know: what keys and values mean; they pass through a `pintle_store::Layout`.
//!
//! Invariants, beside those of the contract:
//! - Of what etcd is asked nothing is repeated that may have had an effect.
//! - Followers are told of a revision by the watch alone, also of own writes: so all of them, in all
//!   servers, see the same order.

mod assembly;
mod channel;
mod client;
mod compaction;
mod error;
mod feed;
mod following;
mod framing;
mod grpc;
mod health;
mod horizon;
mod leases;
mod measures;
mod messages;
mod own;
mod plan;
mod reading;
mod store;
#[cfg(test)]
mod tests;
mod tls;
mod transaction;
mod translation;
mod writing;

pub use error::{Code, Error};
pub use measures::{Calls, LEASE_BOUNDS, Lists, Measures, Method, REQUEST_BOUNDS, Requests};
pub use store::{EtcdOpening, EtcdStore, Options, open};
pub use tls::Tls;

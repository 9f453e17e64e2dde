//! The store on etcd: a client of its API, version 3, and [`pintle_store::Store`] on it.
//!
//! Several servers share one database, each with this store, or with a kube-apiserver.
//!
//! It must not know what keys and values mean; they pass through a `pintle_store::Layout`.
//!
//! Invariants, besides those of the contract:
//! - A request that may have had an effect is not repeated.
//! - Only the watch tells followers of a revision, even of the server's own writes: so all
//!   followers, in all servers, see the same order.

mod assembly;
mod backup;
mod channel;
mod client;
mod compaction;
mod connection;
mod error;
mod feed;
mod following;
mod health;
mod horizon;
mod leases;
mod measures;
mod messages;
mod opening;
mod own;
mod plan;
mod reading;
mod recipient;
mod store;
#[cfg(test)]
mod tests;
mod tls;
mod transaction;
mod translation;
mod writing;

pub use error::Error;
pub use measures::{Calls, LEASE_BOUNDS, Lists, Measures, Method, REQUEST_BOUNDS, Requests};
pub use opening::{EtcdOpening, open};
pub use store::{EtcdStore, Options};
pub use tls::Tls;

//! Measures any Kubernetes API server, and runs the crash campaign.
//!
//! Everything uses the public API, so the same run compares any servers on one machine. The load
//! generator shares the cores with the server: it sends requests that were built before and parses
//! only the necessary part of a response. It knows nothing of Pintle's implementation.

pub mod call;
pub mod cases;
pub mod compare;
pub mod crash;
pub mod http2;
pub mod instructions;
pub mod load;
pub mod objects;
pub mod process;
pub mod report;
pub mod server;

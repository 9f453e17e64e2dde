//! Measures any Kubernetes API server over HTTPS, and kills one again and again to see what it keeps.
//!
//! Everything goes through the public API, so the same run compares any servers on one machine. The
//! generator shares the cores with the server: it sends requests that were made before and reads no
//! more of an answer than it must. It knows nothing of how Pintle works.

pub mod call;
pub mod cases;
pub mod crash;
pub mod http2;
pub mod load;
pub mod objects;
pub mod process;
pub mod report;
pub mod server;

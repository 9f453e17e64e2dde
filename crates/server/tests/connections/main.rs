//! What connects a client to something else: the server between clients and a kubelet, or
//! an extension API server, of the tests' own.

#![allow(clippy::unwrap_used, reason = "a test that cannot connect has nothing to say")]

mod aggregation;
mod certificates;
mod client;
mod collected;
mod egress;
mod encryption;
mod extension;
mod kubelet;
mod logs;
mod parts;
mod pauses;
mod proxies;
mod site;
mod streams;

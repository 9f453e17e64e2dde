//! Connections through the server to backends: kubelets, pods, and extension API servers, which the
//! tests simulate.

#![allow(clippy::unwrap_used, reason = "a test that cannot connect fails")]

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
mod reloads;
mod site;
mod snapshots;
mod streams;
mod webhooks;

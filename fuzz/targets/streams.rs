//! Any bytes as what clients and kubelets send on streams.

#![no_main]

#[path = "../src/streams.rs"]
mod streams;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| streams::streams(bytes));

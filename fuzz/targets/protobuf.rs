//! Any bytes as a message of the Kubernetes API.

#![no_main]

#[path = "../src/schema.rs"]
mod schema;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| schema::protobuf(bytes));

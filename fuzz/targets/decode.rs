//! Any bytes as an object of any built-in type.

#![no_main]

#[path = "../src/schema.rs"]
mod schema;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| schema::decode(bytes));

//! Any bytes as CBOR.

#![no_main]

#[path = "../src/value.rs"]
mod value;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| value::cbor(bytes));

//! Measures encoding an object for etcd and decoding it: `cargo run --release -p pintle-layout
//! --example speed`.
#![expect(clippy::print_stdout, reason = "the figures are what it is for")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use base64::{Engine, engine::general_purpose::STANDARD};
use pintle_kinds::RuntimeConfig;
use pintle_layout::{MediaType, Upstream};
use pintle_store::{Kind, Layout, Revision};
use pintle_value::json;

fn main() {
    let layout =
        Upstream::new(&RuntimeConfig::default(), MediaType::Protobuf, Duration::from_secs(3600));
    for line in include_str!("../tests/stored.jsonl").lines() {
        let row = json::parse(line.as_bytes()).expect("a row");
        let text = |member: &str| row.str_at(&[member]).unwrap_or_default().to_owned();
        let path = text("path");
        let key = layout.key(&path).expect("a key");
        let stored = match row.get("message") {
            Some(_) => STANDARD.decode(text("message")).expect("base64"),
            None => text("json").into_bytes(),
        };
        let value = layout.decode(&key, &stored, Revision(42)).expect("it can be read");
        let decode = micros(|| drop(black_box(layout.decode(&key, &stored, Revision(42)))));
        let encode = micros(|| drop(black_box(layout.encode(&key, &value, Kind::Created))));
        println!(
            "{path}: {} bytes, {} of JSON; decoded in {decode:.1} µs, encoded in {encode:.1} µs",
            stored.len(),
            value.len(),
        );
    }
}

/// The mean of many runs.
fn micros(mut run: impl FnMut()) -> f64 {
    const RUNS: u32 = 2000;
    let begin = Instant::now();
    (0..RUNS).for_each(|_| run());
    begin.elapsed().as_secs_f64() * 1e6 / f64::from(RUNS)
}

//! Measures decoding and encoding in each format, in MB of JSON per second.
//!
//! `cargo run --release -p pintle-schema --example codec_speed -- FILE…`; a file is JSON or YAML of
//! one built-in object. Without files, a small ConfigMap.

#![allow(clippy::print_stdout)]

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use pintle_schema::{
    Format, Schema, TypeId, builtin, conform, decode, default, encode, protobuf, validate,
};
use pintle_value::{Value, cbor, json, yaml};

const SMALL: &str = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"settings","namespace":"default","labels":{"app":"web"}},"data":{"key":"value"}}"#;

fn main() {
    let mut bodies =
        vec![("ConfigMap".to_owned(), json::parse(SMALL.as_bytes()).expect("is JSON"))];
    for file in std::env::args().skip(1) {
        let bytes = std::fs::read(&file).expect("the file can be read");
        bodies.push((file, yaml::parse(&bytes).expect("the file is YAML or JSON")));
    }
    for (name, value) in bodies {
        let kind = value.str_at(&["kind"]).unwrap_or_default();
        let version = value.str_at(&["apiVersion"]).unwrap_or_default();
        let suffix = format!(".{}.{kind}", version.rsplit('/').next().unwrap_or_default());
        let schema = builtin();
        match schema.names().iter().find(|(name, _)| name.ends_with(&suffix)) {
            Some((_, ty)) => measure(&name, schema, *ty, &value),
            None => println!("{name}: no type {suffix}"),
        }
    }
}

fn measure(name: &str, schema: &Schema, ty: TypeId, value: &Value) {
    let mut declared = Vec::new();
    encode::write(schema, ty, value, &mut declared);
    let sorted = json::to_string(value).into_bytes();
    let mut text = Vec::new();
    yaml::write(value, &mut text);
    let size = declared.len();
    println!("{name}: {size} bytes of JSON");
    let decoded = decode(schema, ty, &declared, Format::Json).expect("decodes").value;
    let run = |what: &str, f: &mut dyn FnMut()| report(what, size, f);
    run("parse, no schema", &mut || {
        black_box(json::parse(&declared)).ok();
    });
    run("decode, declared order", &mut || {
        black_box(decode(schema, ty, &declared, Format::Json)).ok();
    });
    run("decode, sorted keys", &mut || {
        black_box(decode(schema, ty, &sorted, Format::Json)).ok();
    });
    run("decode YAML", &mut || {
        black_box(decode(schema, ty, &text, Format::Yaml)).ok();
    });
    let mut message = Vec::new();
    protobuf::encode(schema, ty, &decoded, &mut message);
    let mut binary = Vec::new();
    cbor::write(&decoded, &mut binary);
    println!("  {} bytes of Protobuf, {} of CBOR", message.len(), binary.len());
    run("decode Protobuf", &mut || {
        black_box(protobuf::decode(schema, ty, &message)).ok();
    });
    run("parse CBOR, conform", &mut || {
        let mut value = cbor::parse(&binary).unwrap_or_default();
        black_box(conform(schema, ty, &mut value)).ok();
    });
    run("clone", &mut || {
        black_box(decoded.clone());
    });
    run("conform (clone included)", &mut || {
        black_box(conform(schema, ty, &mut decoded.clone())).ok();
    });
    run("default (clone included)", &mut || {
        default::apply(schema, ty, &mut decoded.clone());
    });
    run("validate", &mut || {
        black_box(validate::validate(schema, ty, &decoded, None));
    });
    let mut out = Vec::with_capacity(2 * size);
    run("write", &mut || {
        out.clear();
        encode::write(schema, ty, &decoded, black_box(&mut out));
    });
    run("write, gap", &mut || {
        out.clear();
        encode::write_object(schema, ty, &decoded, black_box(&mut out));
    });
    run("write, no schema", &mut || {
        out.clear();
        json::write(&decoded, black_box(&mut out));
    });
    run("write Protobuf", &mut || {
        out.clear();
        protobuf::encode(schema, ty, &decoded, black_box(&mut out));
    });
    run("write CBOR", &mut || {
        out.clear();
        cbor::write(&decoded, black_box(&mut out));
    });
    run("write YAML", &mut || {
        out.clear();
        yaml::write(&decoded, black_box(&mut out));
    });
}

/// Runs for a moment and prints the best of many rounds. Rounds are short, so that some of them are
/// not interrupted even on a busy machine.
fn report(what: &str, size: usize, f: &mut dyn FnMut()) {
    const SHORT: Duration = Duration::from_micros(20);
    let (mut best, mut calls) = (Duration::MAX, 1);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(400) {
        let round = Instant::now();
        (0..calls).for_each(|_| f());
        let took = round.elapsed();
        best = best.min(took / calls);
        if took < SHORT {
            calls *= 2;
        }
    }
    let speed = size as f64 / best.as_secs_f64() / 1e6;
    println!("  {what:<26} {:>9.2} µs {speed:>8.0} MB/s", best.as_secs_f64() * 1e6);
}

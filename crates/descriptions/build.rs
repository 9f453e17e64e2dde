//! Collects the descriptions of the built-in types from `k8s-openapi` into one compressed file.
//!
//! The file is a sorted list of records: a key (`type` or `type` NUL `field`), a unit separator,
//! the text, a record separator.

#[path = "generated/roots.rs"]
#[rustfmt::skip]
mod roots;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::{env, fs};

use anyhow::{Context as _, Result, ensure};
use flate2::{Compression, write::ZlibEncoder};
use schemars::SchemaGenerator;

fn main() -> Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=generated/roots.rs");
    let mut generator = SchemaGenerator::default();
    roots::define(&mut generator);

    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for (name, schema) in generator.definitions() {
        if let Some(text) = schema["description"].as_str() {
            texts.insert(name.clone(), text.to_owned());
        }
        for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
            if let Some(text) = schema["description"].as_str() {
                texts.insert(format!("{name}\0{field}"), text.to_owned());
            }
        }
    }
    ensure!(!texts.is_empty(), "k8s-openapi describes nothing");

    let out = PathBuf::from(env::var_os("OUT_DIR").context("cargo sets OUT_DIR")?);
    let file = fs::File::create(out.join("descriptions.z"))?;
    let mut encoder = ZlibEncoder::new(file, Compression::best());
    for (key, text) in &texts {
        let clean = |s: &str| !s.contains(['\x1e', '\x1f']);
        ensure!(clean(key) && clean(text), "{key}: the description has a separator in it");
        write!(encoder, "{key}\x1f{text}\x1e")?;
    }
    encoder.finish()?;
    Ok(())
}

//! Replays the fuzzers' corpus, so that past findings stay fixed. See `fuzz/`.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "../../../fuzz/src/value.rs"]
mod bodies;

use std::{fs, path::Path};

fn replay(target: &str, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 5, "there is a corpus");
    for file in files.into_iter().filter(|file| file.is_file()) {
        println!("{}", file.display()); // shown where the body panics
        body(&fs::read(file).unwrap());
    }
}

#[test]
fn json() {
    replay("json", bodies::json);
}

#[test]
fn cbor() {
    replay("cbor", bodies::cbor);
}

#[test]
fn yaml() {
    replay("yaml", bodies::yaml);
}

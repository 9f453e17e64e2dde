//! Replays the fuzzers' corpus, so that past findings stay fixed. See `fuzz/`.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "../../../fuzz/src/streams.rs"]
mod bodies;

use std::{fs, path::Path};

#[test]
fn streams() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/streams");
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 1, "there is a corpus");
    for file in files {
        println!("{}", file.display()); // shown where the body panics
        bodies::streams(&fs::read(file).unwrap());
    }
}

//! The fuzzer's corpus, replayed: what was found once stays fixed. See `fuzz/`.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "../../../fuzz/src/schema.rs"]
mod bodies;

use std::{fs, path::Path};

#[test]
fn decode() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/decode");
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 5, "there is a corpus");
    for file in files.into_iter().filter(|file| file.is_file()) {
        println!("{}", file.display()); // shown where the body panics
        bodies::decode(&fs::read(file).unwrap());
    }
}

//! Replays the fuzzers' corpus, so that past findings stay fixed. See `fuzz/`.

#![allow(clippy::unwrap_used)]

#[path = "../../../fuzz/src/schema.rs"]
mod bodies;

use std::{fs, path::Path};

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 5, "there is a corpus");
    let files = files.into_iter().filter(|file| file.is_file());
    files.map(|file| fs::read(file).unwrap()).collect()
}

#[test]
fn decode() {
    corpus("decode").iter().for_each(|bytes| bodies::decode(bytes));
}

#[test]
fn protobuf() {
    corpus("protobuf").iter().for_each(|bytes| bodies::protobuf(bytes));
}

/// Messages with one or two bytes changed, some of them truncated, too: the first mutations of a
/// fuzzer.
#[test]
fn damaged_messages() {
    let mut state = 1_u64;
    let mut number = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for message in corpus("protobuf") {
        for _ in 0..200 {
            let mut damaged = message.clone();
            for _ in 0..1 + number(2) {
                let at = number(damaged.len());
                damaged[at] = number(256) as u8;
            }
            if number(4) == 0 {
                damaged.truncate(number(damaged.len()));
            }
            bodies::protobuf(&damaged);
        }
    }
}

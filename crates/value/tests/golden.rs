//! Upstream's fully populated objects: reading their YAML and writing it gives the same bytes.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::{fs, path::PathBuf};

use pintle_value::{json, yaml};

/// The directory of reference facts beside the repository, if present.
fn golden() -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/golden");
    if path.is_dir() {
        return Some(path);
    }
    eprintln!("skipped: no golden files at {}", path.display());
    None
}

fn files(extension: &str) -> Vec<PathBuf> {
    let Some(folder) = golden() else { return Vec::new() };
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .collect();
    files.sort();
    assert!(files.len() > 50, "the golden files are complete");
    files
}

#[test]
fn yaml_is_written_as_upstream_writes_it() {
    for path in files("yaml") {
        let text = fs::read_to_string(&path).unwrap();
        let value = yaml::parse(text.as_bytes()).unwrap();
        let mut out = Vec::new();
        yaml::write(&value, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), text, "{}", path.display());
    }
}

#[test]
fn yaml_and_json_are_equal() {
    for path in files("json") {
        let json = json::parse(&fs::read(&path).unwrap()).unwrap();
        let Ok(text) = fs::read(path.with_extension("yaml")) else { continue };
        assert_eq!(yaml::parse(&text).unwrap(), json, "{}", path.display());
        assert_eq!(json::parse(json::to_string(&json).as_bytes()).unwrap(), json);
    }
}

//! Upstream's fully populated objects: decoding their JSON or YAML and encoding it yields the bytes
//! of upstream's JSON.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::{fs, path::PathBuf};

use pintle_schema::{Format, TypeId, conform, decode, encode, protobuf, with_removed};

/// The directory of reference facts beside the repository, if present.
fn golden() -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/golden");
    if path.is_dir() {
        return Some(path);
    }
    eprintln!("skipped: no golden files at {}", path.display());
    None
}

/// The golden files with their types, removed versions included.
fn files() -> Vec<(PathBuf, TypeId)> {
    let Some(folder) = golden() else { return Vec::new() };
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .filter_map(|path| {
            let ty = type_of(path.file_stem()?.to_str()?)?;
            Some((path, ty))
        })
        .collect();
    files.sort();
    assert!(files.len() > 80, "the tables know all kinds");
    files
}

/// The type for a name such as `apps.v1.Deployment`: the kind of that version with that suffix.
fn type_of(stem: &str) -> Option<TypeId> {
    let mut parts = stem.trim_end_matches(".after_roundtrip").rsplitn(3, '.');
    let (kind, version, group) = (parts.next()?, parts.next()?, parts.next()?);
    let suffix = format!(".{version}.{kind}");
    let package = match group {
        "core" if ["APIVersions", "Status", "UpdateOptions"].contains(&kind) => "apimachinery",
        "core" => "core",
        "internal.apiserver.k8s.io" => "apiserverinternal",
        "flowcontrol.apiserver.k8s.io" => "flowcontrol",
        group => group.split('.').next()?,
    };
    let tables = [pintle_schema::builtin(), with_removed()];
    let mut names = tables.into_iter().flat_map(|table| table.names());
    let found = names.find(|(name, _)| name.ends_with(&suffix) && name.contains(package));
    found.map(|(_, ty)| *ty)
}

#[test]
fn every_golden_file_has_a_type() {
    let Some(folder) = golden() else { return };
    let looked_at = files();
    for entry in fs::read_dir(folder).unwrap() {
        let json = entry.unwrap().path().with_extension("json");
        assert!(looked_at.iter().any(|(path, _)| *path == json), "{}", json.display());
    }
}

#[test]
fn objects_round_trip_byte_for_byte() {
    let mut wrong = Vec::new();
    for (path, ty) in files() {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let decoded = match decode(with_removed(), ty, text.as_bytes(), Format::Json) {
            Ok(decoded) => decoded,
            Err(error) => {
                wrong.push(format!("{name}: {error}"));
                continue;
            }
        };
        if !decoded.problems.is_empty() {
            wrong.push(format!("{name}: {:?}", decoded.problems));
        }
        let mut out = Vec::new();
        encode::write_pretty(with_removed(), ty, &decoded.value, &mut out);
        out.push(b'\n');
        let out = String::from_utf8(out).unwrap();
        if out.trim_end() != text.trim_end() {
            let at = out.lines().zip(text.lines()).position(|(a, b)| a != b);
            let line = at.map_or("", |at| out.lines().nth(at).unwrap());
            let want = at.map_or("", |at| text.lines().nth(at).unwrap());
            wrong.push(format!("{name}: wrote {line}, want {want}"));
        }
        let mut conformed = decoded.value.clone();
        assert_eq!(conform(with_removed(), ty, &mut conformed), Ok(Vec::new()), "{name}");
        assert_eq!(conformed, decoded.value, "{name}");
        let Ok(yaml) = fs::read(path.with_extension("yaml")) else { continue };
        assert_eq!(decode(with_removed(), ty, &yaml, Format::Yaml), Ok(decoded), "{name}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn protobuf_decodes_to_the_same_object() {
    // GRP-04, MT-10
    for (path, ty) in files() {
        let Ok(bytes) = fs::read(path.with_extension("pb")) else { continue };
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read(&path).unwrap();
        let expected = decode(with_removed(), ty, &text, Format::Json).unwrap().value;
        assert_eq!(protobuf::decode(with_removed(), ty, &bytes), Ok(expected), "{name}");
    }
}

#[test]
fn damaged_protobuf_does_not_panic() {
    // Truncates every golden file, and changes bytes, pseudorandomly but reproducibly.
    let mut state = 1_u64;
    let mut below = |bound: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    for (path, ty) in files() {
        let Ok(bytes) = fs::read(path.with_extension("pb")) else { continue };
        for _ in 0..200 {
            let mut damaged = bytes.clone();
            for _ in 0..=below(4) {
                let at = below(damaged.len());
                damaged[at] = below(256) as u8;
            }
            damaged.truncate(damaged.len() - below(2) * below(bytes.len()));
            let _ = protobuf::decode(with_removed(), ty, &damaged);
        }
    }
}

#[test]
fn protobuf_matches_byte_for_byte() {
    // GRP-04, MT-10
    let mut wrong = Vec::new();
    for (path, ty) in files() {
        let Ok(expected) = fs::read(path.with_extension("pb")) else { continue };
        let text = fs::read(&path).unwrap();
        let value = decode(with_removed(), ty, &text, Format::Json).unwrap().value;
        let mut found = Vec::new();
        protobuf::encode(with_removed(), ty, &value, &mut found);
        if found != expected {
            let at = found.iter().zip(&expected).take_while(|(a, b)| a == b).count();
            let around = |bytes: &[u8]| {
                bytes[at.saturating_sub(30)..(at + 20).min(bytes.len())].escape_ascii().to_string()
            };
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            wrong.push(format!("{name}: wrote {}, want {}", around(&found), around(&expected)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

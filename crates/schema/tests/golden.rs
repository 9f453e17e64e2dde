//! Upstream's fully populated objects: decoding their JSON or YAML and encoding it yields the bytes
//! of upstream's JSON.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::{
    fs,
    path::{Path, PathBuf},
};

use pintle_schema::{Format, TypeId, conform, decode, encode, protobuf, with_removed};

/// The folders with golden files: those beside the repository, and the subfolders of the folders
/// that `PINTLE_GOLDEN` lists, separated by `:`. Each listed folder is the `testdata` of a release
/// of `k8s.io/api`, with the objects of that release (`HEAD`) and of earlier ones.
fn folders() -> Vec<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/golden");
    let mut folders: Vec<_> = Some(beside).filter(|path| path.is_dir()).into_iter().collect();
    let listed = std::env::var_os("PINTLE_GOLDEN").unwrap_or_default();
    // An empty list has one empty path.
    for testdata in std::env::split_paths(&listed).filter(|path| !path.as_os_str().is_empty()) {
        let entries = fs::read_dir(&testdata).expect("PINTLE_GOLDEN lists folders");
        folders.extend(entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()));
    }
    folders.sort();
    if folders.is_empty() {
        eprintln!("skipped: no golden files; PINTLE_GOLDEN lists the testdata of k8s.io/api");
    }
    folders
}

/// The golden objects in JSON.
fn objects() -> impl Iterator<Item = PathBuf> {
    let entries = folders().into_iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    let files = entries.map(|entry| entry.unwrap().path());
    let objects =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    objects.filter(|path| {
        let name = path.to_string_lossy();
        let before = name.strip_suffix(".after_roundtrip.json");
        before.is_none_or(|before| !PathBuf::from(format!("{before}.json")).exists())
    })
}

/// The files with an object after a round trip: the golden file itself and, for an object of an
/// earlier release, what the later release writes after reading it. The later release may have lost
/// members that are known here.
fn after_roundtrip(path: &Path, extension: &str) -> Vec<Vec<u8>> {
    let after = path.with_extension(format!("after_roundtrip.{extension}"));
    [after, path.with_extension(extension)].iter().filter_map(|path| fs::read(path).ok()).collect()
}

/// The golden objects with their types, also of removed versions.
fn files() -> Vec<(PathBuf, TypeId)> {
    let typed = objects().filter_map(|path| {
        let ty = type_of(path.file_stem()?.to_str()?)?;
        Some((path, ty))
    });
    let mut files: Vec<_> = typed.collect();
    files.sort();
    files
}

/// The type for a name such as `apps.v1.Deployment`. Kinds that belong to no group are in
/// `core.v1`.
fn type_of(stem: &str) -> Option<TypeId> {
    let mut parts = stem.trim_end_matches(".after_roundtrip").rsplitn(3, '.');
    let (kind, version, group) = (parts.next()?, parts.next()?, parts.next()?);
    let package = match group {
        "internal.apiserver.k8s.io" => "apiserverinternal",
        group => group.split('.').next()?,
    };
    let of_meta = format!("io.k8s.apimachinery.pkg.apis.meta.v1.{kind}");
    let found = with_removed().find(&format!("io.k8s.api.{package}.{version}.{kind}"));
    found.or_else(|| with_removed().find(&of_meta).filter(|_| group == "core"))
}

#[test]
fn every_kind_is_known() {
    let name = |path: PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
    let unknown: Vec<_> = objects().map(name).filter(|name| type_of(name).is_none()).collect();
    assert_eq!(unknown, Vec::<String>::new());
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
        let expected = after_roundtrip(&path, "json");
        if !decoded.problems.is_empty() && expected.len() == 1 {
            wrong.push(format!("{name}: {:?}", decoded.problems));
        }
        let mut out = Vec::new();
        encode::write_pretty(with_removed(), ty, &decoded.value, &mut out);
        out.push(b'\n');
        let out = String::from_utf8(out).unwrap();
        if !expected
            .iter()
            .any(|expected| out.as_bytes().trim_ascii_end() == expected.trim_ascii_end())
        {
            let text = String::from_utf8_lossy(&expected[0]);
            let at = out.lines().zip(text.lines()).position(|(a, b)| a != b);
            let line = at.map_or("", |at| out.lines().nth(at).unwrap());
            let want = at.map_or("", |at| text.lines().nth(at).unwrap());
            wrong.push(format!("{name}: wrote {line}, want {want}"));
        }
        let mut conformed = decoded.value.clone();
        assert_eq!(conform(with_removed(), ty, &mut conformed), Ok(Vec::new()), "{name}");
        assert_eq!(conformed, decoded.value, "{name}");
        let Ok(yaml) = fs::read(path.with_extension("yaml")) else { continue };
        let from_yaml = decode(with_removed(), ty, &yaml, Format::Yaml).unwrap();
        assert_eq!(from_yaml.value, decoded.value, "{name}");
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
        let all_expected = after_roundtrip(&path, "pb");
        let Some(expected) = all_expected.first() else { continue };
        let text = fs::read(&path).unwrap();
        let value = decode(with_removed(), ty, &text, Format::Json).unwrap().value;
        let mut found = Vec::new();
        protobuf::encode(with_removed(), ty, &value, &mut found);
        if !all_expected.contains(&found) {
            let at = found.iter().zip(expected).take_while(|(a, b)| a == b).count();
            let around = |bytes: &[u8]| {
                bytes[at.saturating_sub(30)..(at + 20).min(bytes.len())].escape_ascii().to_string()
            };
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            wrong.push(format!("{name}: wrote {}, want {}", around(&found), around(expected)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

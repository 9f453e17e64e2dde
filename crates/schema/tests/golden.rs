//! Upstream's fully populated objects: decoding their JSON or YAML and writing it gives the bytes of
//! upstream's JSON.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::{fs, path::PathBuf};

use pintle_schema::{Format, TypeId, builtin, conform, decode, encode, protobuf};

/// The folder of facts beside the repository, where there is one.
fn golden() -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/golden");
    if path.is_dir() {
        return Some(path);
    }
    eprintln!("skipped: no golden files at {}", path.display());
    None
}

/// The golden files of kinds in the table, with their types.
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
    assert!(files.len() > 50, "the table knows most kinds");
    files
}

/// The type of `apps.v1.Deployment`: the kind of that version whose name ends like it.
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
    let names = &builtin().names();
    let found = names.iter().find(|(name, _)| name.ends_with(&suffix) && name.contains(package));
    found.map(|(_, ty)| *ty)
}

/// Kinds in versions that v1.36 does not serve: their files are read and written as trees, by the tests
/// of `pintle-value`.
const UNSERVED: [&str; 36] = [
    "admission.k8s.io.v1beta1.AdmissionReview",
    "admissionregistration.k8s.io.v1alpha1.ValidatingAdmissionPolicy",
    "admissionregistration.k8s.io.v1alpha1.ValidatingAdmissionPolicyBinding",
    "admissionregistration.k8s.io.v1beta1.MutatingWebhookConfiguration",
    "admissionregistration.k8s.io.v1beta1.ValidatingAdmissionPolicy",
    "admissionregistration.k8s.io.v1beta1.ValidatingAdmissionPolicyBinding",
    "apidiscovery.k8s.io.v2beta1.APIGroupDiscovery",
    "apps.v1beta1.ControllerRevision",
    "apps.v1beta2.DaemonSet",
    "apps.v1beta2.StatefulSet",
    "authentication.k8s.io.v1beta1.TokenReview",
    "authorization.k8s.io.v1beta1.LocalSubjectAccessReview",
    "authorization.k8s.io.v1beta1.SelfSubjectAccessReview",
    "authorization.k8s.io.v1beta1.SelfSubjectRulesReview",
    "authorization.k8s.io.v1beta1.SubjectAccessReview",
    "batch.v1beta1.CronJob",
    "certificates.k8s.io.v1beta1.CertificateSigningRequest",
    "coordination.k8s.io.v1beta1.Lease",
    "discovery.k8s.io.v1beta1.EndpointSlice",
    "events.k8s.io.v1beta1.Event",
    "extensions.v1beta1.DeploymentRollback",
    "extensions.v1beta1.Ingress",
    "flowcontrol.apiserver.k8s.io.v1beta2.PriorityLevelConfiguration",
    "flowcontrol.apiserver.k8s.io.v1beta3.FlowSchema",
    "imagepolicy.k8s.io.v1alpha1.ImageReview",
    "networking.k8s.io.v1beta1.IngressClass",
    "node.k8s.io.v1alpha1.RuntimeClass",
    "rbac.authorization.k8s.io.v1alpha1.RoleBinding",
    "rbac.authorization.k8s.io.v1beta1.ClusterRole",
    "rbac.authorization.k8s.io.v1beta1.ClusterRoleBinding",
    "rbac.authorization.k8s.io.v1beta1.RoleBinding",
    "scheduling.k8s.io.v1beta1.PriorityClass",
    "storage.k8s.io.v1alpha1.CSIStorageCapacity",
    "storage.k8s.io.v1alpha1.VolumeAttachment",
    "storage.k8s.io.v1alpha1.VolumeAttributesClass",
    "storage.k8s.io.v1beta1.StorageClass",
];

#[test]
fn every_kind_that_is_served_is_looked_at() {
    let Some(folder) = golden() else { return };
    let looked_at = files();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let kind = stem.trim_end_matches(".after_roundtrip");
        let json = path.with_extension("json");
        let is_looked_at = looked_at.iter().any(|(path, _)| *path == json);
        assert_ne!(is_looked_at, UNSERVED.contains(&kind), "{stem}");
    }
}

#[test]
fn objects_round_trip_byte_for_byte() {
    let mut wrong = Vec::new();
    for (path, ty) in files() {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let decoded = match decode(builtin(), ty, text.as_bytes(), Format::Json) {
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
        encode::write_pretty(builtin(), ty, &decoded.value, &mut out);
        out.push(b'\n');
        let out = String::from_utf8(out).unwrap();
        if out.trim_end() != text.trim_end() {
            let at = out.lines().zip(text.lines()).position(|(a, b)| a != b);
            let line = at.map_or("", |at| out.lines().nth(at).unwrap());
            let want = at.map_or("", |at| text.lines().nth(at).unwrap());
            wrong.push(format!("{name}: wrote {line}, want {want}"));
        }
        let mut conformed = decoded.value.clone();
        assert_eq!(conform(builtin(), ty, &mut conformed), Ok(Vec::new()), "{name}");
        assert_eq!(conformed, decoded.value, "{name}");
        let Ok(yaml) = fs::read(path.with_extension("yaml")) else { continue };
        assert_eq!(decode(builtin(), ty, &yaml, Format::Yaml), Ok(decoded), "{name}");
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
        let expected = decode(builtin(), ty, &text, Format::Json).unwrap().value;
        assert_eq!(protobuf::decode(builtin(), ty, &bytes), Ok(expected), "{name}");
    }
}

#[test]
fn damaged_protobuf_does_no_harm() {
    // Every golden file cut off, and with bytes changed, in a fixed pseudorandom way.
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
            let _ = protobuf::decode(builtin(), ty, &damaged);
        }
    }
}

#[test]
fn protobuf_is_written_byte_for_byte() {
    // GRP-04, MT-10
    let mut wrong = Vec::new();
    for (path, ty) in files() {
        let Ok(expected) = fs::read(path.with_extension("pb")) else { continue };
        let text = fs::read(&path).unwrap();
        let value = decode(builtin(), ty, &text, Format::Json).unwrap().value;
        let mut found = Vec::new();
        protobuf::encode(builtin(), ty, &value, &mut found);
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

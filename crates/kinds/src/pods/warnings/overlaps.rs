//! Warnings about files of one volume whose paths overlap.

use pintle_meta::quote::quote;
use pintle_value::Value;

use super::Warnings;
use crate::field::Field;

/// A file of a volume, and its source in a projected volume.
struct File<'a> {
    path: &'a str,
    source: String,
}

/// The kinds of sources of a projected volume.
const SOURCES: &[&str] = &[
    "configMap",
    "secret",
    "downwardAPI",
    "serviceAccountToken",
    "clusterTrustBundle",
    "podCertificate",
];

/// Volumes with longer names, and files with longer paths, are refused or impossible, so they get
/// no warning.
const NAME_BYTES_MAX: usize = 63;
const PATH_BYTES_MAX: usize = 4096;
const OBJECT_NAME_BYTES_MAX: usize = 253;

/// Warns of paths that occur twice, or that contain one another.
pub(super) fn warn_of_overlaps(spec: &Field<'_>, warnings: &mut Warnings) {
    for volume in spec.items("volumes") {
        if volume.str("name").len() > NAME_BYTES_MAX {
            continue;
        }
        for (member, key) in [("configMap", "name"), ("secret", "secretName"), ("downwardAPI", "")]
        {
            let source = volume.get(member);
            if source.items("items").len() < 2 {
                continue;
            }
            let origin = origin(member, source.str(key));
            let volume = format!("volume {} ({origin})", quote(volume.str("name")));
            let mut seen = Vec::new();
            for file in items(source.some(), "") {
                add_file(&volume, file, &mut seen, warnings);
            }
        }
        let projected = volume.get("projected");
        if !projected.is_set() {
            continue;
        }
        let projected_volume = format!("volume {} (Projected)", quote(volume.str("name")));
        let mut seen = Vec::new();
        for source in projected.items("sources") {
            if !SOURCES.iter().any(|member| source.has(member)) {
                warnings.push(|| format!("{projected_volume} has no sources provided"));
            }
            for file in projected_files(source.value()) {
                add_file(&projected_volume, file, &mut seen, warnings);
            }
        }
    }
}

/// The files of a source of a projected volume. Only the first member that lists files counts.
fn projected_files(source: &Value) -> Vec<File<'_>> {
    let text = |path: &[&str]| source.str_at(path).unwrap_or_default();
    for member in ["configMap", "secret", "downwardAPI"] {
        if source.at(&[member, "items"]).is_some_and(|items| !items.is_null()) {
            return items(source.get(member), &origin(member, text(&[member, "name"])));
        }
    }
    let has = |member: &str| source.get(member).is_some_and(|value| !value.is_null());
    let file = |path, source: &str| File { path, source: source.to_owned() };
    if has("serviceAccountToken") {
        return vec![file(text(&["serviceAccountToken", "path"]), "ServiceAccountToken")];
    }
    if has("clusterTrustBundle") {
        let name = source.str_at(&["clusterTrustBundle", "name"]);
        let name = name.unwrap_or_else(|| text(&["clusterTrustBundle", "signerName"]));
        let source = format!("ClusterTrustBundle {}", quote(name));
        return vec![file(text(&["clusterTrustBundle", "path"]), &source)];
    }
    let parts = [
        ("certificateChainPath", "PodCertificate chain"),
        ("keyPath", "PodCertificate key"),
        ("credentialBundlePath", "PodCertificate credential bundle"),
    ];
    parts.map(|(member, source)| file(text(&["podCertificate", member]), source)).into()
}

/// Upstream's name of a source. A name that is too long is left out, because every warning contains
/// it.
fn origin(member: &str, name: &str) -> String {
    let name = if name.len() > OBJECT_NAME_BYTES_MAX { "" } else { name };
    match member {
        "configMap" => format!("ConfigMap {}", quote(name)),
        "secret" => format!("Secret {}", quote(name)),
        _ => "DownwardAPI".to_owned(),
    }
}

fn items<'a>(source: Option<&'a Value>, origin: &str) -> Vec<File<'a>> {
    let items =
        source.and_then(|source| source.get("items")).and_then(Value::as_array).unwrap_or_default();
    let path = |item: &'a Value| item.str_at(&["path"]).unwrap_or_default();
    items.iter().map(|item| File { path: path(item), source: origin.to_owned() }).collect()
}

/// Adds a file to those of its volume, and warns of overlaps with them.
fn add_file<'a>(
    volume: &str,
    mut file: File<'a>,
    seen: &mut Vec<File<'a>>,
    warnings: &mut Warnings,
) {
    file.path = file.path.trim_end_matches('/');
    if file.path.is_empty() || file.path.len() > PATH_BYTES_MAX {
        return;
    }
    let compared = warnings.pairs(seen.len());
    let meets =
        |other: &&File<'_>| is_within(file.path, other.path) || is_within(other.path, file.path);
    for other in seen[..compared].iter().filter(meets) {
        warnings.push(|| {
            format!("{volume}: overlapping paths: {} with {}", shown(&file), shown(other))
        });
    }
    seen.push(file);
}

/// Whether a path is another, or below it.
fn is_within(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn shown(file: &File<'_>) -> String {
    let path = quote(file.path);
    if file.source.is_empty() { path } else { format!("{path} ({})", file.source) }
}

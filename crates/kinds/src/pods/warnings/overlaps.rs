//! Files of one volume that stand in each other's way.

use pintle_meta::quote::quote;
use pintle_value::Value;

use crate::field::Field;

/// A file of a volume, and what of a projected volume it comes from.
struct File<'a> {
    path: &'a str,
    source: String,
}

/// What a projected volume's source may be.
const SOURCES: &[&str] = &[
    "configMap",
    "secret",
    "downwardAPI",
    "serviceAccountToken",
    "clusterTrustBundle",
    "podCertificate",
];

/// So many pairs of files are compared: their number grows with the square of the files'.
const PAIRS_MAX: usize = 100_000;
/// No overlap is told any more once there are so many warnings: what headers hold is far less.
const WARNINGS_MAX: usize = 100;
/// A volume with a longer name, and a file with a longer path, is refused or cannot be; neither is told of.
const NAME_BYTES_MAX: usize = 63;
const PATH_BYTES_MAX: usize = 4096;
const OBJECT_NAME_BYTES_MAX: usize = 253;

/// Warns of paths that are told twice, or that go through one another.
pub(super) fn warn_of_overlaps(spec: &Field<'_>, warnings: &mut Vec<String>) {
    let mut pairs_left = PAIRS_MAX;
    for volume in spec.items("volumes") {
        if volume.str("name").len() > NAME_BYTES_MAX {
            continue;
        }
        let name = quote(volume.str("name"));
        for (member, said) in [("configMap", "name"), ("secret", "secretName"), ("downwardAPI", "")]
        {
            let source = volume.get(member);
            let origin = origin(member, source.str(said));
            let files = items(source.some(), "");
            let volume = format!("volume {name} ({origin})");
            let mut told = Vec::new();
            for file in files {
                tell(&volume, file, &mut told, &mut pairs_left, warnings);
            }
        }
        let projected_volume = format!("volume {name} (Projected)");
        let mut told = Vec::new();
        for source in volume.get("projected").items("sources") {
            if !SOURCES.iter().any(|member| source.has(member)) {
                warnings.push(format!("{projected_volume} has no sources provided"));
            }
            for file in projected(source.value()) {
                tell(&projected_volume, file, &mut told, &mut pairs_left, warnings);
            }
        }
    }
}

/// The files of a projected volume's source: those of the first that says which it has.
fn projected(source: &Value) -> Vec<File<'_>> {
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

/// What upstream calls a source. It is told with each file, so a name that is longer than any is left out.
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

/// Adds a file to those of its volume, and says which of them it meets.
fn tell<'a>(
    volume: &str,
    mut file: File<'a>,
    told: &mut Vec<File<'a>>,
    pairs_left: &mut usize,
    warnings: &mut Vec<String>,
) {
    file.path = file.path.trim_end_matches('/');
    if file.path.is_empty() || file.path.len() > PATH_BYTES_MAX {
        return;
    }
    let compared = told.len().min(*pairs_left);
    *pairs_left -= compared;
    let met = told[..compared]
        .iter()
        .filter(|other| is_within(file.path, other.path) || is_within(other.path, file.path))
        .take(WARNINGS_MAX.saturating_sub(warnings.len()));
    warnings.extend(met.map(|other| {
        format!("{volume}: overlapping paths: {} with {}", shown(&file), shown(other))
    }));
    told.push(file);
}

/// Whether a path is another, or below it.
fn is_within(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn shown(file: &File<'_>) -> String {
    let path = quote(file.path);
    if file.source.is_empty() { path } else { format!("{path} ({})", file.source) }
}

#[cfg(test)]
mod tests {
    use pintle_value::json;

    use super::*;

    #[test]
    fn many_files_take_a_bounded_time_and_few_warnings() {
        let files = vec![r#"{"path":"a"}"#; 50_000].join(",");
        let spec = format!(r#"{{"volumes":[{{"name":"v","configMap":{{"items":[{files}]}}}}]}}"#);
        let spec = json::parse(spec.as_bytes()).expect("JSON");
        let mut warnings = Vec::new();
        warn_of_overlaps(&Field::root(&spec), &mut warnings);
        assert_eq!(warnings.len(), WARNINGS_MAX);
    }
}

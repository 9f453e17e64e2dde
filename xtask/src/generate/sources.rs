//! A release's description of its API, in its own terms: OpenAPI definitions and paths, Protobuf
//! messages, Go structs. Both front ends produce it; [`super::model`] reads it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// All facts of a release.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// OpenAPI v2 definitions by name (`io.k8s.api.core.v1.Pod`).
    pub(crate) definitions: BTreeMap<String, Definition>,
    /// OpenAPI v2 operations by path.
    pub(crate) paths: BTreeMap<String, Path>,
    /// Protobuf messages by full name (`k8s.io.api.core.v1.Pod`).
    pub(crate) messages: BTreeMap<String, Message>,
    /// Go packages by import path (`k8s.io/api/core/v1`).
    pub(crate) packages: BTreeMap<String, Package>,
    /// Facts of a resource that its paths lack, by group and plural name.
    pub(crate) named: BTreeMap<(String, String), Named>,
}

/// An OpenAPI schema, named or not.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct Definition {
    #[serde(rename = "ref")]
    pub(crate) reference: Option<String>,
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) format: Option<String>,
    pub(crate) items: Option<Box<Definition>>,
    pub(crate) values: Option<Box<Definition>>,
    pub(crate) fields: Option<BTreeMap<String, Definition>>,
    pub(crate) required: Vec<String>,
    pub(crate) list_type: Option<String>,
    pub(crate) list_map_keys: Vec<String>,
    pub(crate) map_type: Option<String>,
    pub(crate) patch_strategy: Option<String>,
    pub(crate) patch_merge_key: Option<String>,
    pub(crate) unions: Option<serde_json::Value>,
    pub(crate) gvk: Vec<Gvk>,
}

/// A group, version and kind as OpenAPI writes it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Gvk {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

/// The operations of one path.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Path {
    pub(crate) ops: BTreeMap<String, Operation>,
}

/// One operation: `x-kubernetes-action` and `-group-version-kind`.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Operation {
    pub(crate) action: String,
    pub(crate) kind: Option<Gvk>,
}

/// The fields of a message by their Protobuf names.
pub(crate) type Message = BTreeMap<String, MessageField>;

/// One field of a message.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct MessageField {
    pub(crate) tag: u32,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) repeated: bool,
}

/// The declarations of a Go package.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(default)]
pub(crate) struct Package {
    /// Structs by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) structs: BTreeMap<String, Vec<Member>>,
    /// The values of the string types that are marked `+enum`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) enums: BTreeMap<String, Vec<String>>,
    /// The string constants that a default refers to.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) constants: BTreeMap<String, String>,
    /// Typed string constants, while the package is being read.
    #[serde(skip)]
    pub(crate) typed: Vec<(String, String)>,
}

/// One member of a Go struct.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(default)]
pub(crate) struct Member {
    /// The JSON name; the Go type's name if the member is inline.
    pub(crate) name: String,
    /// The Go type as written.
    pub(crate) go: String,
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) omit_empty: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) omit_zero: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) inline: bool,
    /// The comment markers, without the plus sign.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tags: Vec<String>,
}

/// Facts of a resource that its operations lack.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Named {
    /// The singular name; empty if it is the kind in lower case.
    pub(crate) singular: String,
    pub(crate) short: Vec<String>,
    pub(crate) categories: Vec<String>,
    /// The group and version of the stored form; `None` for resources that are not stored.
    pub(crate) storage: Option<(String, String)>,
}

impl Named {
    /// The singular name of `kind`.
    pub(crate) fn singular(&self, kind: &str) -> String {
        if self.singular.is_empty() { kind.to_lowercase() } else { self.singular.clone() }
    }
}

fn is_false(b: &bool) -> bool {
    !b
}

impl Member {
    /// The value of the first marker `+name=value`.
    pub(crate) fn tag(&self, name: &str) -> Option<&str> {
        self.tags.iter().find_map(|t| t.strip_prefix(name)?.strip_prefix('='))
    }

    /// The values of all markers `+name=value`.
    pub(crate) fn tag_values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.tags.iter().filter_map(move |t| t.strip_prefix(name)?.strip_prefix('='))
    }
}

impl Sources {
    /// The Protobuf message of an OpenAPI type. Its name begins with the Go import path, with dots
    /// for slashes and underscores for dashes.
    pub(crate) fn message(&self, definition: &str) -> Option<&Message> {
        let name = definition.strip_prefix("io.k8s.")?.replace('-', "_");
        self.messages.get(&format!("k8s.io.{name}"))
    }

    /// The Go package and struct of an OpenAPI type. A type of another version can be an alias of
    /// the type in `v1`; then it has no struct, and the one in `v1` is returned.
    pub(crate) fn go_struct(&self, definition: &str) -> Option<(&str, &[Member])> {
        let (package, name) = go_name(definition)?;
        let stable = package.rsplit_once('/').map(|(group, _)| format!("{group}/v1"));
        [Some(package), stable].into_iter().flatten().find_map(|p| {
            let (path, package) = self.packages.get_key_value(&p)?;
            Some((path.as_str(), package.structs.get(name)?.as_slice()))
        })
    }
}

/// The Go package and type: `io.k8s.api.core.v1.Pod` is `Pod` of `k8s.io/api/core/v1`.
pub(crate) fn go_name(definition: &str) -> Option<(String, &str)> {
    let (package, name) = definition.strip_prefix("io.k8s.")?.rsplit_once('.')?;
    Some((format!("k8s.io/{}", package.replace('.', "/")), name))
}

/// The OpenAPI name: `Pod` of `k8s.io/api/core/v1` is `io.k8s.api.core.v1.Pod`.
pub(crate) fn definition_name(package: &str, name: &str) -> String {
    format!("io.k8s.{}.{name}", package.trim_start_matches("k8s.io/").replace('/', "."))
}

/// The definition that a Protobuf type names in the message of `definition`. A relative name is in
/// the package of that message.
pub(crate) fn definition_of_message(kind: &str, definition: &str) -> String {
    // Older releases write the full name without a leading dot.
    match kind.trim_start_matches('.').strip_prefix("k8s.io.") {
        Some(full) => {
            let name = full
                .replace("apiextensions_apiserver", "apiextensions-apiserver")
                .replace("kube_aggregator", "kube-aggregator");
            format!("io.k8s.{name}")
        }
        None => {
            let package = definition.rsplit_once('.').map_or("", |(p, _)| p);
            format!("{package}.{kind}")
        }
    }
}

/// A type of a package, as Go's reflection prints it: with its package's name, and without a
/// leading pointer.
pub(crate) fn reflected(package: &str, written: &str) -> String {
    let written = written.trim_start_matches('*');
    if let Some(item) = written.strip_prefix("[]") {
        return format!("[]{}", element(package, item));
    }
    if let Some((key, value)) = written.strip_prefix("map[").and_then(|rest| rest.split_once(']')) {
        return format!("map[{}]{}", element(package, key), element(package, value));
    }
    if let Some((alias, name)) = written.split_once('.') {
        return format!("{}.{name}", package_of(alias));
    }
    match written {
        "byte" => "uint8".to_owned(),
        _ if written.starts_with(|c: char| c.is_ascii_uppercase()) => {
            format!("{}.{written}", package.rsplit('/').next().unwrap_or(package))
        }
        _ => written.to_owned(),
    }
}

fn element(package: &str, written: &str) -> String {
    let pointer = if written.starts_with('*') { "*" } else { "" };
    format!("{pointer}{}", reflected(package, written))
}

/// The package of an import's name: `metav1` is `v1`. Extracted facts omit imports.
fn package_of(alias: &str) -> &str {
    if alias.is_empty() {
        return "v1";
    }
    let version = alias.match_indices('v').map(|(at, _)| &alias[at..]);
    let is_version = |text: &&str| text[1..].starts_with(|c: char| c.is_ascii_digit());
    version.into_iter().find(is_version).unwrap_or(alias)
}

#[cfg(test)]
mod tests {
    use super::reflected;

    #[test]
    fn types_are_printed_as_reflection_does() {
        for (written, printed) in [
            ("*PathType", "v1.PathType"),
            ("[]PersistentVolumeAccessMode", "[]v1.PersistentVolumeAccessMode"),
            ("*metav1.LabelSelector", "v1.LabelSelector"),
            ("map[string]ExtraValue", "map[string]v1.ExtraValue"),
            ("[]byte", "[]uint8"),
            ("*int32", "int32"),
            ("types.UID", "types.UID"),
            ("[]*Pod", "[]*v1.Pod"),
        ] {
            assert_eq!(reflected("k8s.io/api/core/v1", written), printed);
        }
    }
}

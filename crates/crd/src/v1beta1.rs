//! `apiextensions.k8s.io/v1beta1`: the version in which upstream stores definitions in etcd,
//! although it is not served any more.
//!
//! Its spec has the parts that all versions of a definition share (upstream:
//! `apiextensions-apiserver/pkg/apis/apiextensions/v1/conversion.go`).

use pintle_registry::UnservedVersion;
use pintle_schema::{builtin, encode};
use pintle_value::{Map, Value, json};

/// The name of a type of v1.
macro_rules! v1 {
    ($name:literal) => {
        concat!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.", $name)
    };
}

/// The version as stored in etcd.
pub static V1BETA1: UnservedVersion =
    UnservedVersion { api_version: "apiextensions.k8s.io/v1beta1", write, read };

/// The members of a version that the spec has if they are the same in all versions: the name in the
/// spec, and the name in the version.
const SHARED: [(&str, &str); 4] = [
    ("subresources", "subresources"),
    ("validation", "schema"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
];

/// The members of a spec that a conversion to v1 leaves there if v1 cannot express them.
pub const UNEXPRESSED: [&str; 4] =
    ["version", "validation", "subresources", "additionalPrinterColumns"];

/// The members of the spec's `conversion`: the name there, and the name in v1's `webhook`.
const WEBHOOK: [(&str, &str); 2] = [
    ("webhookClientConfig", "clientConfig"),
    ("conversionReviewVersions", "conversionReviewVersions"),
];

/// The member for a column's path in v1beta1 and in v1.
const COLUMN_PATH: (&str, &str) = ("JSONPath", "jsonPath");

/// A member of a struct: its name and its shape.
type Member = (&'static str, Shape);

/// The shape of a member. Structs with the same order of members in both versions use the type of
/// v1.
enum Shape {
    Plain,
    Type(&'static str),
    List(&'static str),
    Struct(&'static [Member]),
}

use Shape::{List, Plain, Struct, Type};

/// The members of a definition in declaration order.
const DEFINITION: &[Member] = &[
    ("kind", Plain),
    ("apiVersion", Plain),
    ("metadata", Type("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")),
    ("spec", Struct(SPEC)),
    ("status", Type(v1!("CustomResourceDefinitionStatus"))),
];

const SPEC: &[Member] = &[
    ("group", Plain),
    ("version", Plain),
    ("names", Type(v1!("CustomResourceDefinitionNames"))),
    ("scope", Plain),
    ("validation", Type(v1!("CustomResourceValidation"))),
    ("subresources", Type(v1!("CustomResourceSubresources"))),
    ("versions", List(v1!("CustomResourceDefinitionVersion"))),
    ("additionalPrinterColumns", List(v1!("CustomResourceColumnDefinition"))),
    ("selectableFields", List(v1!("SelectableField"))),
    (
        "conversion",
        Struct(&[
            ("strategy", Plain),
            ("webhookClientConfig", Type(v1!("WebhookClientConfig"))),
            ("conversionReviewVersions", Plain),
        ]),
    ),
    ("preserveUnknownFields", Plain),
];

/// Converts a definition from v1 to v1beta1, `apiVersion` included.
pub fn to_v1beta1(definition: &mut Value) {
    let members = definition.make_object();
    members.insert("apiVersion", V1BETA1.api_version);
    from_v1(members.entry_object("spec"));
}

fn write(mut definition: Value, out: &mut Vec<u8>) {
    to_v1beta1(&mut definition);
    write_struct(&definition, DEFINITION, out);
}

fn write_struct(value: &Value, members: &[Member], out: &mut Vec<u8>) {
    let present = members.iter().filter_map(|(name, shape)| Some((name, value.get(name)?, shape)));
    out.push(b'{');
    for (at, (name, value, shape)) in present.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        json::write_string(name, out);
        out.push(b':');
        match shape {
            Plain => json::write(value, out),
            Struct(members) => write_struct(value, members, out),
            Type(name) => write_typed(value, name, out),
            List(name) => {
                let items = value.as_array().unwrap_or_default();
                json::write_list(items, &mut json::Compact, out, |item, _, out| {
                    write_typed(item, name, out);
                });
            }
        }
    }
    out.push(b'}');
}

fn write_typed(value: &Value, name: &str, out: &mut Vec<u8>) {
    match builtin().find(name) {
        Some(ty) => encode::write(builtin(), ty, value, out),
        None => json::write(value, out),
    }
}

/// Converts a spec from v1 to v1beta1.
fn from_v1(spec: &mut Map) {
    spec.entry_or("preserveUnknownFields", || Value::Bool(false));
    if let Some(conversion) = spec.get_mut("conversion") {
        let conversion = conversion.make_object();
        if let Some(Value::Object(mut webhook)) = conversion.remove("webhook") {
            webhook.retain(|_, value| !value.is_null());
            move_members(&mut webhook, conversion, WEBHOOK.map(|(beta, v1)| (v1, beta)));
        }
    }
    let Some(Value::Array(versions)) = spec.get_mut("versions") else { return };
    let [first, others @ ..] = &mut versions[..] else { return };
    let name = first.get("name").cloned().unwrap_or_default();
    let mut shared = Vec::new();
    for (in_spec, member) in SHARED {
        if others.iter().all(|other| other.get(member) == first.get(member)) {
            others.iter_mut().for_each(|other| _ = other.make_object().remove(member));
            shared.extend(first.make_object().remove(member).map(|value| (in_spec, value)));
        }
    }
    for version in versions {
        rename_paths(version.make_object(), COLUMN_PATH.1, COLUMN_PATH.0);
    }
    if name.as_str().is_some_and(|name| !name.is_empty()) {
        spec.insert("version", name);
    }
    shared.into_iter().for_each(|(name, value)| _ = spec.insert(name, value));
    rename_paths(spec, COLUMN_PATH.1, COLUMN_PATH.0);
}

/// Converts a stored definition from v1beta1 to v1.
fn read(definition: &mut Value) {
    to_v1(definition);
    let spec = definition.object_entry("spec");
    UNEXPRESSED.iter().for_each(|name| _ = spec.remove(name));
}

/// Converts a definition from v1beta1 to v1. Members that v1 cannot express ([`UNEXPRESSED`]) stay
/// in the spec, where validation finds them: `version`, if it does not name the first of
/// `versions`; a setting for all versions, if versions have their own; and null in its place, if
/// all versions have the same setting of their own.
pub fn to_v1(definition: &mut Value) {
    let members = definition.make_object();
    members.insert("apiVersion", "apiextensions.k8s.io/v1");
    let spec = members.entry_object("spec");
    if spec.get("scope").and_then(Value::as_str).is_none_or(str::is_empty) {
        spec.insert("scope", "Namespaced");
    }
    // Unlike in v1 this is the default.
    spec.entry_or("preserveUnknownFields", || Value::Bool(true));
    if let Some(conversion) = spec.get_mut("conversion") {
        let conversion = conversion.make_object();
        let mut webhook = Map::new();
        move_members(conversion, &mut webhook, WEBHOOK);
        if conversion.get("strategy").and_then(Value::as_str) == Some("Webhook") {
            webhook.entry_or("conversionReviewVersions", || vec![Value::from("v1beta1")].into());
        }
        if !webhook.is_empty() {
            conversion.insert("webhook", Value::Object(webhook));
        }
    }
    rename_paths(spec, COLUMN_PATH.0, COLUMN_PATH.1);
    let version = spec.remove("version").filter(|version| version.as_str() != Some(""));
    let mut versions = match spec.remove("versions") {
        Some(Value::Array(versions)) if !versions.is_empty() => versions,
        _ => version.clone().into_iter().map(only_version).collect(),
    };
    let first = versions.first().and_then(|first| first.get("name"));
    if let Some(version) = version.filter(|version| Some(version) != first) {
        spec.insert("version", version);
    }
    for (in_spec, member) in SHARED {
        share(spec, in_spec, &mut versions, member);
    }
    for version in &mut versions {
        rename_paths(version.make_object(), COLUMN_PATH.0, COLUMN_PATH.1);
    }
    spec.insert("versions", Value::Array(versions));
}

/// Moves a setting for all versions to each of them.
fn share(spec: &mut Map, in_spec: &'static str, versions: &mut [Value], member: &'static str) {
    let of = |version: &Value| version.get(member).filter(|value| is_set(value)).cloned();
    let own: Vec<Value> = versions.iter().filter_map(of).collect();
    match spec.remove(in_spec).filter(is_set) {
        Some(value) => {
            for version in versions {
                version.make_object().insert(member, value.clone());
            }
            if !own.is_empty() && member != "selectableFields" {
                spec.insert(in_spec, value);
            }
        }
        None if !own.is_empty()
            && own.len() == versions.len()
            && own.iter().all(|value| *value == own[0])
            && member != "selectableFields" =>
        {
            spec.insert(in_spec, Value::Null);
        }
        None => {}
    }
}

/// Whether a setting is neither null nor an empty list.
fn is_set(value: &Value) -> bool {
    !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty())
}

/// The only item of `versions`, for the former `version`.
fn only_version(name: Value) -> Value {
    Value::from([("name", name), ("served", Value::Bool(true)), ("storage", Value::Bool(true))])
}

/// Renames the paths of the columns in a struct.
fn rename_paths(holder: &mut Map, from: &str, to: &'static str) {
    let columns = holder.get_mut("additionalPrinterColumns").and_then(Value::as_array_mut);
    for column in columns.into_iter().flatten().filter_map(Value::as_object_mut) {
        if let Some(path) = column.remove(from) {
            column.insert(to, path);
        }
    }
}

/// Moves members from one struct to another under other names.
fn move_members(from: &mut Map, to: &mut Map, names: [(&str, &'static str); 2]) {
    for (old, new) in names {
        if let Some(value) = from.remove(old) {
            to.insert(new, value);
        }
    }
}

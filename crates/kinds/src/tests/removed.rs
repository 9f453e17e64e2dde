//! Removed versions that `--runtime-config` enables.

use pintle_registry::ResourceDefinition;
use pintle_schema::{Format, decode, drop_empty, encode};
use pintle_value::{Value, json};

use crate::{RuntimeConfig, definitions, kind::Collection, removed};

fn served(flag: &str) -> Vec<ResourceDefinition> {
    let config = RuntimeConfig::parse([flag]).unwrap_or_else(|error| panic!("{flag}: {error}"));
    definitions(&config)
}

fn names(flag: &str) -> Vec<String> {
    let served = served(flag).into_iter();
    let removed =
        served.filter(|definition| !pintle_schema::is_builtin(&definition.schema, definition.ty));
    removed.map(|d| format!("{}/{}", d.api_version(), d.resource.resource)).collect()
}

fn find<'d>(
    all: &'d [ResourceDefinition],
    api_version: &str,
    kind: &str,
) -> &'d ResourceDefinition {
    let mut all = all.iter();
    let found = all.find(|d| d.api_version() == api_version && d.kind == kind);
    found.unwrap_or_else(|| panic!("no {api_version} {kind}"))
}

#[test]
fn every_row_has_a_definition_in_the_collection_of_the_current_resource() {
    let all = served("api/legacy=true,api/all=true");
    for row in removed::all() {
        let name = format!("{}/{} {}", row.group, row.form.version, row.resource);
        let mut found = all.iter().filter(|d| {
            (&*d.resource.group, &*d.resource.version, &*d.resource.resource)
                == (row.group, row.form.version, row.resource)
        });
        let definition = found.next().unwrap_or_else(|| panic!("no {name}"));
        assert!(found.next().is_none(), "{name} is defined twice");
        let list = definition.schema.find(&format!("{}List", row.type_name));
        assert!(list.is_some() || definition.storage.is_none(), "{name} has no list");
        let (latest, kind) = row.latest().unwrap_or_else(|| panic!("{name}: no current resource"));
        assert_eq!(definition.kind, latest.kind, "{name}");
        let is_stored = kind.collection != Collection::None;
        assert_eq!(definition.storage.is_some(), is_stored, "{name}");
        let converts = definition.storage.as_ref().is_some_and(|s| s.conversion.is_some());
        assert_eq!(converts, is_stored && !row.is_last(), "{name}");
        let is_today = pintle_schema::builtin().find(latest.type_name).is_some();
        let stored = definition.stored_type();
        assert!(
            !converts || pintle_schema::is_builtin(&definition.schema, stored) == is_today,
            "{name}"
        );
        let deprecation = definition.deprecation.as_ref().unwrap_or_else(|| panic!("{name}"));
        assert!(deprecation.removed_release.is_some(), "{name}");
    }
}

#[test]
fn removed_versions_are_served_only_if_named() {
    for flag in ["", "api/all=true", "api/beta=true,api/alpha=true", "api/legacy=false"] {
        assert!(names(flag).is_empty(), "{flag}: {:?}", names(flag));
    }
    assert_eq!(names("extensions/v1beta1=true").len(), 6);
    assert_eq!(names("extensions/v1beta1/ingresses=true").len(), 1);
    assert_eq!(names("api/legacy=true").len(), removed::all().count());
    let but_one = names("api/legacy=true,extensions/v1beta1/ingresses=false").len();
    assert_eq!(but_one, removed::all().count() - 1);
}

#[test]
fn removed_versions_have_deprecation_warnings() {
    let all = served("api/legacy");
    for (api_version, kind, warning, release) in [
        (
            "extensions/v1beta1",
            "Deployment",
            "extensions/v1beta1 Deployment is deprecated in v1.8+, unavailable in v1.16+; use \
             apps/v1 Deployment",
            "1.16",
        ),
        (
            "networking.k8s.io/v1beta1",
            "IngressClass",
            "networking.k8s.io/v1beta1 IngressClass is deprecated in v1.19+, unavailable in \
             v1.22+; use networking.k8s.io/v1 IngressClassList",
            "1.22",
        ),
        (
            "events.k8s.io/v1beta1",
            "Event",
            "events.k8s.io/v1beta1 Event is deprecated in v1.22+, unavailable in v1.25+",
            "1.25",
        ),
    ] {
        let deprecation = find(&all, api_version, kind).deprecation.clone().expect("a deprecation");
        assert_eq!(
            (&*deprecation.warning, deprecation.removed_release.as_deref()),
            (warning, Some(release))
        );
    }
}

/// Conversions by a kube-apiserver's scheme: an object in a removed version, the same object with
/// defaults in the current version, and the latter converted back.
const CONVERTED: &str = include_str!("../../testdata/removed.jsonl");

/// Such conversions of random custom resource definitions of `v1beta1`, by the scheme of
/// `k8s.io/apiextensions-apiserver` v0.36.3.
const DEFINITIONS: &str = include_str!("../../testdata/definitions.jsonl");

/// Such conversions of random autoscalers of `v2beta1` and `v2beta2`, by the scheme of Kubernetes
/// v1.21.14.
const AUTOSCALERS: &str = include_str!("../../testdata/autoscalers.jsonl");

/// Such conversions of objects of `resource.k8s.io/v1alpha3`, by the scheme of Kubernetes v1.33.5;
/// the current version is v1beta2, which has v1's members.
const DEVICES: &str = include_str!("../../testdata/devices.jsonl");

#[test]
fn objects_are_converted_and_defaulted_as_by_upstream() {
    compare(CONVERTED);
}

#[test]
fn definitions_are_converted_as_by_upstream() {
    compare(DEFINITIONS);
}

#[test]
fn autoscalers_are_converted_as_by_upstream() {
    compare(AUTOSCALERS);
}

#[test]
fn devices_are_converted_as_by_upstream() {
    compare(DEVICES);
}

/// More such rows: the file that `PINTLE_CONVERSIONS` names, for example of
/// `differential/definitions`.
#[test]
#[allow(clippy::print_stderr)]
fn objects_of_a_file_are_converted_as_by_upstream() {
    match std::env::var_os("PINTLE_CONVERSIONS") {
        Some(path) => {
            compare(&std::fs::read_to_string(path).expect("PINTLE_CONVERSIONS is a file"))
        }
        None => eprintln!("skipped: PINTLE_CONVERSIONS names no file"),
    }
}

fn compare(rows: &str) {
    let all = served("api/legacy=true,api/all=true");
    let mut wrong = Vec::new();
    for line in rows.lines() {
        let row = json::parse(line.as_bytes()).expect("a row is JSON");
        let of = |member: &str| row.get(member).cloned().unwrap_or_default();
        let (given, today, back) = (of("in"), of("today"), of("back"));
        let name =
            |object: &Value, member: &str| object.str_at(&[member]).unwrap_or_default().to_owned();
        let (version, kind) = (name(&given, "apiVersion"), name(&given, "kind"));
        let definition = find(&all, &version, &kind);
        let stored = definition.stored_type();
        let read = |object: &Value, ty| {
            let text = json::to_string(object);
            let read = decode(&definition.schema, ty, text.as_bytes(), Format::Json);
            read.unwrap_or_else(|error| panic!("{version} {kind}: {error}")).value
        };
        let written = |object: &Value, ty| {
            let mut text = Vec::new();
            encode::write(&definition.schema, ty, object, &mut text);
            json::parse(&text).expect("what is written is JSON")
        };
        let mut object = read(&given, definition.ty);
        definition.set_defaults(&mut object);
        definition.to_stored(&mut object);
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
            && kind == "CustomResourceDefinition"
        {
            pintle_crd::UNEXPRESSED.iter().for_each(|name| _ = spec.remove(name));
        }
        // Upstream stores Protobuf messages, in which an empty list is absent.
        let mut upstreams = read(&today, stored);
        for object in [&mut object, &mut upstreams] {
            drop_empty(&definition.schema, stored, object);
        }
        let (ours, upstream) = (written(&object, stored), written(&upstreams, stored));
        wrong.extend(
            difference(&ours, &upstream)
                .map(|what| format!("{version} {kind} as that of today: {what}")),
        );
        let mut object = read(&today, stored);
        definition.to_served(&mut object);
        wrong.extend(
            difference(&written(&object, definition.ty), &back)
                .map(|what| format!("{version} {kind} from that of today: {what}")),
        );
    }
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The first difference between two trees.
fn difference(ours: &Value, upstream: &Value) -> Option<String> {
    match (ours, upstream) {
        (Value::Object(a), Value::Object(b)) => {
            let names = a.iter().chain(b.iter()).map(|(name, _)| name);
            names.into_iter().find_map(|name| {
                let null = Value::Null;
                let (a, b) = (a.get(name).unwrap_or(&null), b.get(name).unwrap_or(&null));
                difference(a, b).map(|what| format!(".{name}{what}"))
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let mut pairs = a.iter().zip(b);
            pairs.find_map(|(a, b)| difference(a, b).map(|what| format!("[]{what}")))
        }
        _ if ours == upstream => None,
        _ => Some(format!(" is {ours:?}, upstream has {upstream:?}")),
    }
}

//! Validation rules by example: for each kind a valid object, and rows with one change and the
//! exact errors. The rows are facts of upstream's `validation_test.go` and `strategy_test.go`.
//!
//! A test treats an object as the engine does: defaults, the stored form, preparation, validation.

use std::fmt::Write as _;

use pintle_meta::{field, names, validation};
use pintle_registry::ResourceDefinition;
use pintle_schema::{default, validate};
use pintle_value::{Path, Value};

use crate::{RuntimeConfig, definitions, formats};

/// The files, a group of kinds each.
const FILES: &[(&str, &str)] = &[
    ("admission", include_str!("rows/admission.yaml")),
    ("core", include_str!("rows/core.yaml")),
    ("devices", include_str!("rows/devices.yaml")),
    ("groups", include_str!("rows/groups.yaml")),
    ("networking", include_str!("rows/networking.yaml")),
    ("services", include_str!("rows/services.yaml")),
    ("storage", include_str!("rows/storage.yaml")),
    ("volumes", include_str!("rows/volumes.yaml")),
    ("workloads", include_str!("rows/workloads.yaml")),
];

#[test]
fn invalid_objects_get_upstreams_errors() {
    let config = RuntimeConfig::everything();
    let definitions = definitions(&config);
    let (mut count, mut wrong) = (0, String::new());
    for (file, text) in FILES {
        let kinds = pintle_value::yaml::parse(text.as_bytes());
        let kinds = kinds.unwrap_or_else(|error| panic!("{file}: {error}"));
        for kind in kinds.as_array().expect("a list of kinds") {
            let definition = find(&definitions, kind);
            let valid = kind.get("valid").expect("a valid object");
            for row in kind.get("rows").and_then(Value::as_array).expect("rows") {
                count += 1;
                check(definition, valid, row, &mut wrong);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count >= 350, "there are {count} rows");
}

/// DEF-01, DEF-02: the exact defaults of minimal objects.
#[test]
fn minimal_objects_get_their_defaults() {
    let config = RuntimeConfig::everything();
    let definitions = definitions(&config);
    let rows = pintle_value::yaml::parse(include_bytes!("rows/defaults.yaml")).expect("YAML");
    let mut wrong = String::new();
    for row in rows.as_array().expect("a list") {
        let definition = find(&definitions, row);
        let mut object = row.get("sent").expect("an object").clone();
        default::apply(&definition.schema, definition.ty, &mut object);
        definition.strategy.default(&mut object);
        let mut expected = row.get("sent").cloned().unwrap_or_default();
        merge(&mut expected, row.get("gets").unwrap_or(&Value::Null));
        if object != expected {
            let kind = row.str_at(&["kind"]).unwrap_or_default();
            let object = pintle_value::json::to_string(&object);
            let expected = pintle_value::json::to_string(&expected);
            let _ = write!(wrong, "\n{kind}\n  {expected}\n  {object}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Every stored kind has rows. Pods have theirs in `cases`.
#[test]
fn every_kind_has_rows() {
    let mut named = std::collections::BTreeSet::from(["/pods".to_owned(), "/events".to_owned()]);
    for (_, text) in FILES {
        let kinds = text.lines().filter_map(|line| line.strip_prefix("- kind: "));
        let whole = |kind: &str| match kind.contains('/') {
            true => kind.to_owned(),
            false => format!("/{kind}"),
        };
        named.extend(kinds.map(whole));
    }
    let stored_kinds =
        crate::groups::all().filter(|kind| kind.collection != crate::kind::Collection::None);
    let without: Vec<_> = stored_kinds
        .map(|kind| format!("{}/{}", kind.group, kind.resource))
        .filter(|kind| !named.contains(kind))
        .collect();
    assert!(without.is_empty(), "{without:?}");
}

/// BOOT-01: the rules hold for the objects of a new cluster too.
#[test]
fn objects_that_the_server_creates_are_valid() {
    let config = RuntimeConfig::default();
    let definitions = definitions(&config);
    let made = crate::bootstrap::objects(&crate::bootstrap::Settings {
        config: &config,
        service_ranges: &["10.96.0.0/12"],
        advertise_address: Some(std::net::IpAddr::from([127, 0, 0, 1])),
        secure_port: 6443,
        client_ca: Some("PEM"),
        request_header: None,
    });
    for made in made {
        let is = |one: &&ResourceDefinition| one.resource == made.resource;
        let Some(definition) = definitions.iter().find(is) else { continue };
        let mut object = ready(definition, &made.object);
        definition.strategy.prepare_create(&mut object);
        let found = errors(definition, &object, None, "");
        assert!(found.is_empty(), "{}: {found:?}", pintle_value::json::to_string(&object));
    }
}

fn find<'a>(definitions: &'a [ResourceDefinition], kind: &Value) -> &'a ResourceDefinition {
    let named = kind.str_at(&["kind"]).expect("a resource");
    let (group, rest) = named.rsplit_once('/').unwrap_or(("", named));
    let version = kind.str_at(&["version"]).unwrap_or("v1");
    let is = |one: &&ResourceDefinition| {
        let resource = &one.resource;
        (resource.group.as_str(), resource.resource.as_str(), resource.version.as_str())
            == (group, rest, version)
    };
    definitions.iter().find(is).unwrap_or_else(|| panic!("no resource {named}"))
}

/// Runs a row: `set` and `change` make the object from the valid one. With `old` it is an update;
/// `old` makes the stored object from the valid one.
fn check(definition: &ResourceDefinition, valid: &Value, row: &Value, wrong: &mut String) {
    let part = row.str_at(&["part"]).unwrap_or_default();
    let mut stored = valid.clone();
    let old = row.get("old").map(|old| {
        alter(&mut stored, old);
        ready(definition, &stored)
    });
    let mut new = stored;
    alter(&mut new, row);
    let mut new = ready(definition, &new);
    let strategy = &definition.strategy;
    match &old {
        None => strategy.prepare_create(&mut new),
        Some(old) if part.is_empty() => strategy.prepare_update(&mut new, old),
        Some(old) => strategy.prepare_part(&mut new, old, part),
    }
    let found: Vec<String> = errors(definition, &new, old.as_ref(), part);
    let found_warnings = match &old {
        Some(old) if !part.is_empty() => strategy.part_warnings(&new, old, part),
        _ => strategy.warnings(&new, old.as_ref()),
    };
    for (member, found) in [("errors", found), ("warnings", found_warnings)] {
        let expected = texts(row.get(member));
        if found != expected && (member == "errors" || row.get(member).is_some()) {
            let row = pintle_value::json::to_string(row);
            let kind = definition.kind.as_str();
            let _ = write!(wrong, "\n{kind} {row}\n  {member}: {expected:#?}\n  found: {found:#?}");
        }
    }
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let texts = list.and_then(Value::as_array).unwrap_or_default().iter();
    texts.map(|text| spelled_out(text.as_str().expect("a text"))).collect()
}

/// Expands the abbreviations of long messages, whose exact words other tests check.
fn spelled_out(text: &str) -> String {
    let words = |wrong: Vec<String>| wrong.into_iter().next().expect("words");
    let short = [
        ("<label>", names::dns1123_label("-")),
        ("<label 1035>", names::dns1035_label("-")),
        ("<subdomain>", names::dns1123_subdomain("-")),
        ("<qualified name>", names::qualified_name("-")),
        ("<label value>", names::label_value("-")),
        ("<key>", formats::config_key("/")),
    ];
    short.into_iter().fold(text.to_owned(), |text, (short, rule)| text.replace(short, &words(rule)))
}

/// The stored form of an object that a client sent.
fn ready(definition: &ResourceDefinition, object: &Value) -> Value {
    let mut object = object.clone();
    let members = object.make_object();
    members.insert("apiVersion", definition.api_version());
    members.insert("kind", definition.kind.clone());
    default::apply(&definition.schema, definition.ty, &mut object);
    definition.strategy.default(&mut object);
    if let Some(conversion) = definition.storage.as_ref().and_then(|storage| storage.conversion) {
        (conversion.to_stored)(&mut object);
    }
    if definition.kind == "Service" {
        pair_addresses(&mut object);
    }
    object
}

/// Pairs a service's addresses, as the allocator does before the strategy runs.
fn pair_addresses(service: &mut Value) {
    let spec = service.object_entry("spec");
    let has_list = spec.get("clusterIPs").and_then(Value::as_array).is_some_and(|l| !l.is_empty());
    if let Some(ip) = spec.get("clusterIP").filter(|_| !has_list).cloned() {
        spec.insert("clusterIPs", vec![ip]);
    }
}

fn errors(
    definition: &ResourceDefinition,
    new: &Value,
    old: Option<&Value>,
    part: &str,
) -> Vec<String> {
    let strategy = &definition.strategy;
    let rule = |name: &str, prefix: bool| strategy.name_rule().check(new, old, name, prefix);
    let mut errors =
        validation::object_meta(new, definition.namespaced(), &rule, &Path::new("metadata"));
    let own = strategy.validate(new, old, part, &mut Vec::new());
    if strategy.declared_rules() {
        let (schema, ty) = (&definition.schema, definition.stored_type());
        let declared = validate::validate(schema, ty, new, old).into_iter();
        errors.extend(declared.filter(|error| own.iter().all(|own| own.field != error.field)));
    }
    errors.extend(own);
    errors.iter().map(field::Error::to_string).collect()
}

/// Changes an object: `set` names fields by their steps, `change` is a merge patch.
fn alter(object: &mut Value, row: &Value) {
    for (path, value) in
        row.get("set").and_then(Value::as_object).into_iter().flat_map(|m| m.iter())
    {
        let steps: Vec<&str> = path.split('/').collect();
        put(object, &steps, value);
    }
    if let Some(change) = row.get("change") {
        merge(object, change);
    }
}

fn put(object: &mut Value, steps: &[&str], value: &Value) {
    let [step, rest @ ..] = steps else { return };
    if let Value::Array(items) = object {
        let i: usize = step.parse().expect("an index");
        if rest.is_empty() && i >= items.len() {
            return items.push(value.clone());
        }
        if rest.is_empty() {
            items[i] = value.clone();
        } else {
            put(&mut items[i], rest, value);
        }
        return;
    }
    let members = object.make_object();
    match (rest.is_empty(), value.is_null()) {
        (true, true) => _ = members.remove(step),
        (true, false) => _ = members.insert(*step, value.clone()),
        (false, _) => put(members.entry_or(step, Value::object), rest, value),
    }
}

fn merge(object: &mut Value, change: &Value) {
    let Some(change) = change.as_object() else { return *object = change.clone() };
    let members = object.make_object();
    for (key, value) in change.iter() {
        if value.is_null() {
            members.remove(key);
        } else {
            merge(members.entry_or(key, || Value::Null), value);
        }
    }
}

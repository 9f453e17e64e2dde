//! Compares Pintle's OpenAPI documents with extracted facts of upstream's: no path, operation,
//! type, field or extension is missing or added. Runs if the extracted facts are present.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use anyhow::{Context as _, Result, ensure};
use apiscript::Target;
use apiscript::http::{Connection, Request};
use apiscript::kubeconfig::Cluster;
use pintle_testing::TestServer;
use serde_json::{Map, Value, json};

/// The extensions of types and fields, and their names in the facts.
const EXTENSIONS: [(&str, &str); 5] = [
    ("x-kubernetes-list-type", "listType"),
    ("x-kubernetes-list-map-keys", "listMapKeys"),
    ("x-kubernetes-patch-strategy", "patchStrategy"),
    ("x-kubernetes-patch-merge-key", "patchMergeKey"),
    ("x-kubernetes-map-type", "mapType"),
];

/// The extension with the groups, versions and kinds of a type.
const KINDS: &str = "x-kubernetes-group-version-kind";

/// The types that are a kind of every group version. Version 2 lists all of them, and each document
/// of version 3 those of its own group.
const OF_ALL_GROUPS: [&str; 2] = [
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent",
];

/// The number of differences that are printed.
const SHOWN: usize = 40;

#[test]
fn documents_equal_upstreams() -> Result<()> {
    let facts = Path::new(env!("CARGO_MANIFEST_DIR"));
    let facts = facts.join("../../shared/reference/v1.36/openapi-facts.json");
    let Ok(facts) = std::fs::read(facts) else {
        println!("skipped: there are no facts");
        return Ok(());
    };
    let facts: Value = serde_json::from_slice(&facts)?;
    let server = TestServer::start();
    let target = Target::new(Cluster::from_text(server.kubeconfig(), Path::new("."))?)?;
    let mut connection = target.connect(false)?;
    let v2 = get(&mut connection, "/openapi/v2")?;
    let mut differences = Vec::new();
    compare(&served(&facts["paths"]), &paths(&v2["paths"]), "path", &mut differences);
    compare(&served(&facts["types"]), &types(&v2["definitions"]), "type", &mut differences);

    let (mut all_paths, mut all_types) = (Map::new(), Map::new());
    let index = get(&mut connection, "/openapi/v3")?;
    for document in object(&index["paths"]).values() {
        let url = document["serverRelativeURL"].as_str().context("an address")?;
        let mut document = get(&mut connection, url)?;
        all_paths.append(object_mut(&mut document["paths"]));
        let schemas = object_mut(&mut document["components"]["schemas"]);
        for name in OF_ALL_GROUPS {
            let Some(schema) = schemas.get_mut(name) else { continue };
            let all = array(&v2["definitions"][name][KINDS]);
            let own = array(&schema[KINDS]);
            ensure!(!own.is_empty() && own.iter().all(|kind| all.contains(kind)), "{url} {name}");
            schema[KINDS] = all.into();
        }
        all_types.append(schemas);
    }
    // Version 3 has the same facts in another form.
    let (all_paths, all_types) = (Value::Object(all_paths), Value::Object(all_types));
    compare(&operations(&v2["paths"]), &operations(&all_paths), "v3 path", &mut differences);
    compare(&types(&v2["definitions"]), &types(&all_types), "v3 type", &mut differences);
    let shown: Vec<_> = differences.iter().take(SHOWN).map(String::as_str).collect();
    ensure!(shown.is_empty(), "{} differences:\n{}", differences.len(), shown.join("\n"));
    Ok(())
}

#[test]
fn oas_names_are_in_camel_case() -> Result<()> {
    // MT-21. The exceptions are upstream's.
    const OTHERS: [&str; 3] = ["Port", "$ref", "$schema"];
    let server = TestServer::start();
    let target = Target::new(Cluster::from_text(server.kubeconfig(), Path::new("."))?)?;
    let v2 = get(&mut target.connect(false)?, "/openapi/v2")?;
    for (name, ty) in object(&v2["definitions"]) {
        for field in object(&ty["properties"]).keys() {
            let camel = field.starts_with(|c: char| c.is_ascii_lowercase())
                && field.chars().all(|c| c.is_ascii_alphanumeric());
            let known = OTHERS.contains(&&**field) || field.starts_with("x-kubernetes-");
            ensure!(camel || known, "{name}.{field}");
        }
    }
    Ok(())
}

fn get(connection: &mut Connection, path: &str) -> Result<Value> {
    let answer = connection.exchange(&Request {
        method: "GET".to_owned(),
        target: path.to_owned(),
        headers: vec![("Accept".to_owned(), "application/json".to_owned())],
        body: None,
    })?;
    ensure!(answer.head.status == 200, "{path}: {}", answer.head.status);
    Ok(serde_json::from_slice(&answer.body)?)
}

/// The facts without those of versions that are not served: upstream's document has all of them.
fn served(facts: &Value) -> BTreeMap<String, Value> {
    // Only versions that are not served use this type.
    const UNUSED: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.GroupResource";
    let early = |name: &str| {
        let versions = name.split(['/', '.']).filter(|part| part.starts_with('v'));
        let early = |part: &str| {
            let rest = part[1..].trim_start_matches(|c: char| c.is_ascii_digit());
            rest.starts_with("alpha") || rest.starts_with("beta")
        };
        name == UNUSED || versions.into_iter().any(early)
    };
    let remaining = object(facts).iter().filter(|(name, _)| !early(name));
    remaining.map(|(name, fact)| (name.clone(), without(fact, &is_cbor))).collect()
}

/// The facts are of a server with all feature gates on. CBOR's gate is off by default.
fn is_cbor(media_type: &Value) -> bool {
    media_type.as_str().is_some_and(|media_type| media_type.contains("cbor"))
}

/// The facts of all paths except discovery, which the facts lack.
fn paths(paths: &Value) -> BTreeMap<String, Value> {
    let paths = object(paths).iter().filter(|(path, _)| !path.ends_with('/'));
    let facts = paths.map(|(path, item)| {
        let operations = methods(item).map(|(method, operation)| {
            let parameters = [&item["parameters"], &operation["parameters"]];
            let parameters = parameters.into_iter().flat_map(array).map(parameter);
            let fact = json!({
                "action": operation["x-kubernetes-action"],
                "codes": sorted(object(&operation["responses"]).keys().cloned()),
                "consumes": operation["consumes"],
                "kind": operation[KINDS],
                "produces": operation["produces"],
                "query": sorted(parameters),
            });
            (method.clone(), fact)
        });
        let operations: Map<_, _> = operations.collect();
        (path.clone(), without_empty(&json!({ "ops": operations })))
    });
    facts.filter(|(path, _)| path.starts_with("/api")).collect()
}

/// A parameter's name; a shared one has a suffix that makes it unique.
fn parameter(parameter: &Value) -> String {
    let name = parameter["name"].as_str();
    let reference = parameter["$ref"].as_str().map(last);
    name.or(reference).unwrap_or_default().to_owned()
}

fn operations(paths: &Value) -> BTreeMap<String, Value> {
    let operations = object(paths).iter().map(|(path, item)| {
        let operations = methods(item).map(|(method, operation)| {
            let members = ["operationId", "x-kubernetes-action", KINDS];
            (method.clone(), members.iter().map(|key| operation[*key].clone()).collect::<Value>())
        });
        (path.clone(), Value::Object(operations.collect()))
    });
    operations.collect()
}

fn types(definitions: &Value) -> BTreeMap<String, Value> {
    let text = json!("string");
    let facts = object(definitions).iter().map(|(name, definition)| {
        let fields = object(&definition["properties"]).iter();
        let fields: Map<_, _> = fields.map(|(name, field)| (name.clone(), shape(field))).collect();
        let fact = json!({
            "fields": fields,
            // Version 3 has `oneOf` where version 2 has one type for all forms.
            "type": if definition["oneOf"].is_array() { &text } else { &definition["type"] },
            "format": definition["format"],
            "required": definition["required"],
            "mapType": definition["x-kubernetes-map-type"],
            "gvk": definition[KINDS],
            "unions": definition["x-kubernetes-unions"],
        });
        (name.clone(), without_empty(&fact))
    });
    facts.collect()
}

/// The type of a field.
fn shape(field: &Value) -> Value {
    let reference = match &field["allOf"] {
        Value::Array(all) => all.first().map_or(&Value::Null, |first| &first["$ref"]),
        _ => &field["$ref"],
    };
    let mut fact = json!({
        "ref": reference.as_str().map(last),
        "type": field["type"],
        "format": field["format"],
    });
    for (part, name) in [("items", "items"), ("additionalProperties", "values")] {
        if field[part].is_object() {
            fact[name] = shape(&field[part]);
        }
    }
    for (extension, name) in EXTENSIONS {
        fact[name] = field[extension].clone();
    }
    without_empty(&fact)
}

fn compare(
    expected: &BTreeMap<String, Value>,
    found: &BTreeMap<String, Value>,
    what: &str,
    differences: &mut Vec<String>,
) {
    for name in expected.keys().chain(found.keys()).collect::<BTreeSet<_>>() {
        let (expected, found) = (expected.get(name), found.get(name));
        let null = &Value::Null;
        difference(
            expected.unwrap_or(null),
            found.unwrap_or(null),
            &format!("{what} {name}"),
            differences,
        );
    }
}

/// Finds the differences of two trees.
fn difference(expected: &Value, found: &Value, path: &str, differences: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
                let path = format!("{path} {key}");
                difference(&expected[key], &found[key], &path, differences);
            }
        }
        // The suffix that makes a parameter's name unique is upstream's own.
        (Value::String(a), Value::String(b)) if path.contains(" query ") && same_name(a, b) => {}
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                difference(a, b, &format!("{path} {i}"), differences);
            }
        }
        (a, b) if a == b => {}
        (a, b) => differences.push(format!("{path}: expected {a}, found {b}")),
    }
}

fn same_name(a: &str, b: &str) -> bool {
    let bare = |name: &str| name.split('-').next().unwrap_or_default().to_owned();
    bare(a) == bare(b)
}

fn methods(item: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object(item).iter().filter(|(key, _)| *key != "parameters")
}

/// The tree without members that are null or empty.
fn without_empty(tree: &Value) -> Value {
    without(tree, &|_| false)
}

/// The tree without members that are null or empty, and without unwanted items.
fn without(tree: &Value, unwanted: &dyn Fn(&Value) -> bool) -> Value {
    match tree {
        Value::Object(members) => {
            let remaining =
                members.iter().map(|(key, value)| (key.clone(), without(value, unwanted)));
            let empty = [json!(null), json!({}), json!([])];
            Value::Object(remaining.filter(|(_, value)| !empty.contains(value)).collect())
        }
        Value::Array(items) => items.iter().filter(|item| !unwanted(item)).cloned().collect(),
        other => other.clone(),
    }
}

fn sorted(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut texts: Vec<_> = texts.collect();
    texts.sort_unstable();
    texts
}

fn last(reference: &str) -> &str {
    reference.rsplit('/').next().unwrap_or(reference)
}

fn object(value: &Value) -> &Map<String, Value> {
    static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    value.as_object().unwrap_or(&NONE)
}

fn object_mut(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut().expect("it was made one")
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

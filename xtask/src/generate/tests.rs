//! Compares the generated files with the facts, and OpenAPI documents that Pintle writes with the
//! published document. The facts are not in this repository; without them these tests print that
//! they are skipped, and pass.

use std::collections::{BTreeMap, BTreeSet};

use pintle_schema::openapi::{self, NoDescriptions, Source, v2_document, v3_document};
use serde_json::Value;

use super::*;

/// The facts of the release, if they are present.
fn facts() -> Option<Sources> {
    let dir = root().join("../shared/reference/v1.36");
    if !dir.exists() {
        println!("skipped: no facts at {}", dir.display());
        return None;
    }
    Some(facts::read(&dir, &supplement_path()).expect("readable facts"))
}

#[test]
fn generated_files_are_up_to_date() {
    let Some(sources) = facts() else { return };
    for (path, text) in files(&sources).expect("consistent facts") {
        let there = fs::read_to_string(&path).expect("the generated file");
        // Too long to show, so only the first line that differs.
        let differing = text.lines().zip(there.lines()).find(|(a, b)| a != b);
        assert_eq!(differing, None, "{}: run `cargo xtask generate`", path.display());
        assert_eq!(text.len(), there.len(), "{}: run `cargo xtask generate`", path.display());
    }
}

/// The resources as the OpenAPI writer takes them. Upstream's document has all versions, enabled or
/// not.
fn group_versions(sources: &Sources) -> Vec<openapi::GroupVersion> {
    let mut all: BTreeMap<(String, String), openapi::GroupVersion> = BTreeMap::new();
    for r in resources::model(sources).expect("consistent facts") {
        let gv = all.entry((r.group.clone(), r.version.clone())).or_default();
        gv.group = r.group;
        gv.version = r.version;
        let subresource = |(name, s): (String, resources::Subresource)| openapi::Subresource {
            name,
            group: s.kind.group,
            version: s.kind.version,
            kind: s.kind.kind,
            verbs: s.verbs.into_iter().collect(),
        };
        gv.resources.push(openapi::Resource {
            described: None,
            plural: r.plural,
            kind: r.kind.kind,
            type_name: r.type_name,
            namespaced: r.namespaced,
            verbs: r.verbs.into_iter().collect(),
            delete_returns_object: false,
            subresources: r.subresources.into_iter().map(subresource).collect(),
        });
    }
    all.into_values().collect()
}

/// The input for which the document has all types and operations of upstream's published one.
fn source() -> Source<'static> {
    Source {
        schema: pintle_schema::builtin(),
        descriptions: &NoDescriptions,
        cbor: true,
        version: "1.36",
        open_id: true,
    }
}

fn v2(sources: &Sources) -> Vec<u8> {
    let versions = group_versions(sources);
    let mut document = Vec::new();
    let mut write = |piece: &[u8]| document.extend_from_slice(piece);
    v2_document(source(), &versions, [], &mut write);
    document
}

/// A scratch file; dropping the value deletes it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, content: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("xtask-{}-{name}", std::process::id()));
        fs::write(&path, content).expect("a writable temporary directory");
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The facts that the front end for upstream's files reads from Pintle's own document.
fn read_back(document: &[u8], name: &str) -> Sources {
    let file = Scratch::new(name, document);
    let mut sources = Sources::default();
    upstream::read_swagger(&file.0, &mut sources).expect("a readable document");
    sources
}

#[test]
fn oas_03_the_v2_document_has_the_types_that_upstream_publishes() {
    let Some(facts) = facts() else { return };
    let ours = read_back(&v2(&facts), "types");
    let names = |s: &Sources| -> BTreeSet<String> { s.definitions.keys().cloned().collect() };
    let none = Vec::<&String>::new();
    assert_eq!(names(&facts).difference(&names(&ours)).collect::<Vec<_>>(), none, "missing");
    assert_eq!(names(&ours).difference(&names(&facts)).collect::<Vec<_>>(), none, "added");
    for (name, definition) in &ours.definitions {
        assert_eq!(definition, &facts.definitions[name], "{name}");
    }
}

/// The members of an operation that the facts have; parameters without the hashes in their shared
/// names.
fn operations(document: &Value) -> BTreeMap<(String, String), Value> {
    let mut all = BTreeMap::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        let parameters = |of: &Value| -> Vec<String> {
            let list = of["parameters"].as_array().into_iter().flatten();
            let name = |p: &Value| {
                let reference = p["$ref"].as_str().and_then(|r| r.rsplit('/').next());
                let shared = reference.map(|r| r.split('-').next().unwrap_or(r));
                shared.or(p["name"].as_str()).expect("a named parameter").to_owned()
            };
            list.map(name).collect()
        };
        for (method, operation) in item.as_object().expect("a path") {
            let Some(action) = operation["x-kubernetes-action"].as_str() else { continue };
            let query: BTreeSet<String> =
                parameters(operation).into_iter().chain(parameters(item)).collect();
            let codes: BTreeSet<&String> =
                operation["responses"].as_object().expect("responses").keys().collect();
            let own = serde_json::json!({
                "action": action,
                "kind": operation["x-kubernetes-group-version-kind"],
                "query": query,
                "codes": codes,
                "consumes": operation["consumes"],
                "produces": operation["produces"],
            });
            all.insert((path.clone(), method.clone()), own);
        }
    }
    all
}

/// The same from the facts.
fn published_operations() -> BTreeMap<(String, String), Value> {
    let path = root().join("../shared/reference/v1.36/openapi-facts.json");
    let facts: Value =
        serde_json::from_slice(&fs::read(path).expect("the facts")).expect("JSON facts");
    let mut all = BTreeMap::new();
    for (path, item) in facts["paths"].as_object().expect("paths") {
        for (method, operation) in item["ops"].as_object().expect("operations") {
            let mut own = operation.clone();
            let query = operation["query"].as_array().expect("parameters");
            let plain: BTreeSet<&str> =
                query.iter().filter_map(Value::as_str).map(without_hash).collect();
            own["query"] = serde_json::json!(plain);
            all.insert((path.clone(), method.clone()), own);
        }
    }
    all
}

/// `limit-1NfNmdNH` is `limit`; the hash itself can begin or end with a dash.
fn without_hash(name: &str) -> &str {
    let at = name.len().saturating_sub(9);
    if name.as_bytes().get(at) == Some(&b'-') { &name[..at] } else { name }
}

#[test]
fn oas_03_the_v2_document_has_the_operations_that_upstream_publishes() {
    let Some(facts) = facts() else { return };
    let document: Value = serde_json::from_slice(&v2(&facts)).expect("a JSON document");
    let (ours, published) = (operations(&document), published_operations());
    let keys = |m: &BTreeMap<(String, String), Value>| -> BTreeSet<(String, String)> {
        m.keys().cloned().collect()
    };
    let none = Vec::<&(String, String)>::new();
    assert_eq!(keys(&published).difference(&keys(&ours)).collect::<Vec<_>>(), none, "missing");
    assert_eq!(keys(&ours).difference(&keys(&published)).collect::<Vec<_>>(), none, "added");
    for (key, operation) in &ours {
        assert_eq!(operation, &published[key], "{key:?}");
    }
}

#[test]
fn operation_ids_are_unique() {
    let Some(facts) = facts() else { return };
    let document: Value = serde_json::from_slice(&v2(&facts)).expect("a JSON document");
    let mut seen = BTreeSet::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for operation in item.as_object().expect("a path").values() {
            if let Some(id) = operation["operationId"].as_str() {
                assert!(seen.insert(id.to_owned()), "{path}: {id} twice");
            }
        }
    }
    assert!(seen.contains("listCoreV1NamespacedPod"));
}

#[test]
fn v3_documents_have_the_types_of_their_group_and_version() {
    let Some(facts) = facts() else { return };
    let mut seen = BTreeSet::new();
    for gv in group_versions(&facts) {
        let text = v3_document(source(), &gv);
        let document: Value = serde_json::from_slice(&text).expect("a JSON document");
        let schemas = document["components"]["schemas"].as_object().expect("schemas");
        seen.extend(schemas.keys().cloned());
        for (name, schema) in schemas {
            let fields = |v: &Value| -> BTreeSet<String> {
                v.as_object().into_iter().flatten().map(|(k, _)| k.clone()).collect()
            };
            let known = facts.definitions[name].fields.iter().flatten();
            let known: BTreeSet<String> = known.map(|(k, _)| k.clone()).collect();
            assert_eq!(fields(&schema["properties"]), known, "{name}");
        }
    }
    // The remaining types are in the documents of other pages.
    let group = openapi::Page::Group("apps");
    for page in [openapi::Page::Core, openapi::Page::Groups, group, openapi::Page::Version] {
        let text = openapi::v3_page(source(), page);
        let document: Value = serde_json::from_slice(&text).expect("a JSON document");
        seen.extend(
            document["components"]["schemas"].as_object().expect("schemas").keys().cloned(),
        );
    }
    let missing: Vec<&String> = facts.definitions.keys().filter(|n| !seen.contains(*n)).collect();
    assert_eq!(missing, Vec::<&String>::new());
}

/// Runs the front end for upstream's files on the modules in the directory `UPSTREAM` and on the
/// OpenAPI document that Pintle writes; the names that discovery would give are the facts' own.
#[test]
fn upstreams_files_equal_the_facts() {
    let Some(facts) = facts() else { return };
    let Some(dir) = std::env::var_os("UPSTREAM") else {
        println!("skipped: UPSTREAM names no directory");
        return;
    };
    let mut sources = upstream::read_modules(Path::new(&dir)).expect("readable modules");
    let published = read_back(&v2(&facts), "upstream");
    sources.definitions = published.definitions;
    sources.paths = published.paths;
    sources.named = facts.named.clone();
    for ((path, ours), (_, theirs)) in
        files(&sources).expect("consistent sources").iter().zip(files(&facts).expect("consistent"))
    {
        let differing = ours.lines().zip(theirs.lines()).find(|(a, b)| a != b);
        assert_eq!(differing, None, "{}", path.display());
    }
}

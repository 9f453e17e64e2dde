//! Objects with the maximal nesting depth, over HTTPS: committed objects can be read in every
//! encoding by every reader, and an unreadable object never counts as empty.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use apiscript::Target;
use apiscript::http::Request;
use apiscript::kubeconfig::Cluster;
use pintle_store::{At, Change, Durability, Expect, Group, Key, Template, Write};
use pintle_testing::{Config, FeatureGates, TestServer};
use pintle_value::{DEPTH_MAX, OBJECT_DEPTH_MAX, Value, cbor, json, yaml};

const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

struct World {
    server: TestServer,
    target: Target,
}

impl World {
    fn start(config: Config) -> Result<Self> {
        let server = TestServer::start_with(config)?;
        let cluster = Cluster::from_text(server.kubeconfig(), Path::new("."))?;
        Ok(Self { server, target: Target::new(cluster)? })
    }

    fn ask(&self, method: &str, path: &str, kind: &str, body: &[u8]) -> Result<(u16, Vec<u8>)> {
        let header = if method == "GET" { "Accept" } else { "Content-Type" };
        let request = Request {
            method: method.to_owned(),
            target: path.to_owned(),
            headers: vec![(header.to_owned(), kind.to_owned())],
            body: (!body.is_empty()).then(|| body.to_vec()),
        };
        let response = self.target.connect(false)?.exchange(&request)?;
        Ok((response.head.status, response.body))
    }

    fn get(&self, path: &str, accept: &str) -> Result<Vec<u8>> {
        let (code, body) = self.ask("GET", path, accept, b"")?;
        ensure!(code == 200, "{path} as {accept}: {code} {}", text(&body));
        Ok(body)
    }

    /// Reads an object in every encoding, alone and in lists.
    fn read_everywhere(&self, collection: &str, name: &str, is_built_in: bool) -> Result<()> {
        let whole = json::parse(&self.get(&format!("{collection}/{name}"), "application/json")?)?;
        ensure!(whole.str_at(&["metadata", "name"]) == Some(name), "{name} was not read");
        for query in ["", "?labelSelector=depth", "?fieldSelector=metadata.name%3D"] {
            let is_list = !query.is_empty();
            let path = match query {
                "" => format!("{collection}/{name}"),
                "?labelSelector=depth" => format!("{collection}{query}"),
                _ => format!("{collection}{query}{name}"),
            };
            for (accept, parse) in [
                (
                    "application/json",
                    json::parse as fn(&[u8]) -> Result<Value, pintle_value::Error>,
                ),
                ("application/yaml", yaml::parse),
                ("application/cbor", cbor::parse),
            ] {
                let read = parse(&self.get(&path, accept)?).context(accept)?;
                let read = match read.get("items").and_then(Value::as_array) {
                    Some(items) if is_list => items
                        .iter()
                        .find(|item| item.str_at(&["metadata", "name"]) == Some(name))
                        .with_context(|| format!("{name} is not listed as {accept}"))?,
                    _ => &read,
                };
                for member in ["metadata", "data"] {
                    ensure!(read.get(member) == whole.get(member), "{accept}: another {member}");
                }
            }
            let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
            let read = json::parse(&self.get(&path, table)?)?;
            ensure!(
                read.get("rows").and_then(Value::as_array).is_some_and(|rows| !rows.is_empty())
            );
            let metadata = match is_list {
                true => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
                false => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            };
            ensure!(text(&self.get(&path, metadata)?).contains(name));
            if is_built_in {
                let message = self.get(&path, "application/vnd.kubernetes.protobuf")?;
                ensure!(text(&message).contains(name), "the message has no name");
            }
        }
        Ok(())
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Objects in objects, `levels` of them.
fn nested(levels: usize) -> String {
    format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels))
}

/// Requests that make an object of this depth in different ways. A way that needs an object is
/// preceded by the request that creates it.
fn ways(collection: &str, name: &str, kind: &str, levels: usize) -> Result<Vec<[String; 4]>> {
    let object = |name: &str, data: &str| {
        let metadata = format!(r#"{{"name":"{name}","labels":{{"depth":"x"}}}}"#);
        format!(r#"{{{kind},"metadata":{metadata},"revision":1,"data":{data}}}"#)
    };
    let deep = nested(levels - 1);
    let plain = |way: &str| {
        let name = format!("{name}-{way}");
        let asked = ["POST", collection, "application/json", &object(&name, r#"{"b":1}"#)];
        (name, asked.map(str::to_owned))
    };
    let mut ways = Vec::new();
    let json_name = format!("{name}-json");
    let made = object(&json_name, &deep);
    ways.push([String::from("POST"), collection.into(), "application/json".into(), made]);
    let tree = json::parse(object(&format!("{name}-yaml"), &deep).as_bytes())?;
    let mut made = Vec::new();
    yaml::write(&tree, &mut made);
    ways.push(["POST".into(), collection.into(), "application/yaml".into(), text(&made)]);
    for (way, media_type, patch) in [
        ("merge", "application/merge-patch+json", format!(r#"{{"data":{deep}}}"#)),
        (
            "steps",
            "application/json-patch+json",
            format!(r#"[{{"op":"add","path":"/data","value":{deep}}}]"#),
        ),
    ] {
        let (name, made) = plain(way);
        ways.push(made);
        ways.push(["PATCH".into(), format!("{collection}/{name}"), media_type.into(), patch]);
    }
    let name = format!("{name}-apply");
    let applied = object(&name, &deep);
    let path = format!("{collection}/{name}?fieldManager=me");
    ways.push(["PATCH".into(), path, "application/apply-patch+yaml".into(), applied]);
    Ok(ways)
}

/// An object of the maximal depth or more is either refused as a bad request, or can be read in
/// every encoding, changed and deleted.
#[test]
fn deeply_nested_objects_are_refused_or_readable_in_every_encoding() -> Result<()> {
    let gates = FeatureGates::parse(["CBORServingAndStorage=true"])?;
    let server = TestServer::builder()
        .objects(DEFINITION)
        .with(|config| config.feature_gates = gates)
        .start()?;
    let cluster = Cluster::from_text(server.kubeconfig(), Path::new("."))?;
    let world = World { server, target: Target::new(cluster)? };
    let (mut accepted, mut refused) = (0, 0);
    // Managed fields are four levels deeper than their fields, and add a level of their own.
    for levels in (OBJECT_DEPTH_MAX - 7..=OBJECT_DEPTH_MAX + 1).chain([DEPTH_MAX - 1, DEPTH_MAX]) {
        for (collection, kind, is_built_in) in [
            (WIDGETS, r#""apiVersion":"example.com/v1","kind":"Widget""#, false),
            (REVISIONS, r#""apiVersion":"apps/v1","kind":"ControllerRevision""#, true),
        ] {
            // The data of a ControllerRevision is immutable.
            let is_asked = |way: &[String; 4]| {
                !is_built_in || !(way[3].contains(r#""b":1"#) || way[2].contains("-patch+json"))
            };
            let ways = ways(collection, &format!("d{levels}"), kind, levels)?;
            for [method, path, media_type, body] in ways.into_iter().filter(is_asked) {
                let (code, answer) = world.ask(&method, &path, &media_type, body.as_bytes())?;
                let answer = text(&answer);
                if code >= 300 {
                    ensure!(code < 500, "{levels} {method} {path}: {code} {answer}");
                    ensure!(answer.contains("deep") || answer.contains("depth"), "{code} {answer}");
                    refused += 1;
                    continue;
                }
                accepted += 1;
                let answer = json::parse(answer.as_bytes())?;
                let name = answer.str_at(&["metadata", "name"]).context("a name")?;
                world.read_everywhere(collection, name, is_built_in)?;
                // Deletes the object by name, and waits for its finalizers.
                let one = format!("{collection}/{name}");
                let held = br#"{"metadata":{"finalizers":["example.com/x"]}}"#;
                let free = br#"{"metadata":{"finalizers":null}}"#;
                let merge = "application/merge-patch+json";
                if method == "POST" && body.contains(r#""b":1"#) {
                    continue; // it is yet to be patched
                }
                for (method, body, code) in [
                    ("PATCH", &held[..], 200),
                    ("DELETE", b"", 200),
                    ("GET", b"", 200),
                    ("PATCH", free, 200),
                    ("GET", b"", 404),
                ] {
                    let kind = if method == "PATCH" { merge } else { "application/json" };
                    let (found, answer) = world.ask(method, &one, kind, body)?;
                    ensure!(found == code, "{method} {one}: {found} {}", text(&answer));
                }
            }
        }
    }
    ensure!(accepted > 20 && refused > 20, "{accepted} accepted, {refused} refused");
    drop(world.server);
    Ok(())
}

/// An object that a damaged medium or another program made unreadable: each request that needs it
/// gets an error with its name, and all other requests work.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_cannot_be_read_is_an_error_that_names_it() -> Result<()> {
    let directory = std::env::temp_dir().join(format!("pintle-depth-{}", std::process::id()));
    let config = Config { ephemeral: false, data_dir: directory.clone(), ..Config::ephemeral() };
    let world = World::start(config.clone())?;
    for name in ["broken", "sound"] {
        let map = format!(
            r#"{{"metadata":{{"name":"{name}","labels":{{"a":"b"}},"finalizers":["example.com/x"]}}}}"#
        );
        let (code, _) = world.ask("POST", MAPS, "application/json", map.as_bytes())?;
        ensure!(code == 201);
    }
    world.server.stop();

    // The same record with bytes that cannot be decoded.
    let options = pintle_store::Options {
        transformer: None,
        dir: directory.join("store"),
        durability: Durability::System,
        history_bytes_max: u64::MAX,
    };
    let store = pintle_store::open(&options)?.read()?;
    let key = Key { collection: "configmaps".into(), item: "default/broken".into() };
    let record =
        store.get(&key, At::Head).await?.context("the object is accepted under this key")?;
    let sound = String::from_utf8(record.value().to_vec())?;
    let broken = sound.replacen("{", &format!(r#"{{"data":{},"#, nested(DEPTH_MAX)), 1);
    let change = Change::Put(Template::whole(broken.into()));
    let expect = Expect::At(record.revision);
    let first = Write { key, expect, change, note: None };
    let group = Group { first, rest: Vec::new(), unchanged: Vec::new() };
    let since = store.commit(group).await?[0].revision;
    store.close().await;
    drop(store);

    let world = World::start(config.clone())?;
    let broken = format!("{MAPS}/broken");
    let merge = "application/merge-patch+json";
    let label = br#"{"metadata":{"labels":{"c":"d"}}}"#;
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    for (method, path, kind, body) in [
        ("GET", broken.as_str(), "application/json", &b""[..]),
        ("GET", &broken, "application/yaml", b""),
        ("GET", MAPS, "application/json", b""),
        ("GET", MAPS, table, b""),
        ("GET", &format!("{MAPS}?labelSelector=a%3Dc"), "application/json", b""),
        ("PATCH", &broken, merge, label),
        ("DELETE", &broken, "application/json", b""),
    ] {
        let (code, answer) = world.ask(method, path, kind, body)?;
        let answer = text(&answer);
        ensure!(
            code == 500 && answer.contains("default/broken"),
            "{method} {path}: {code} {answer}"
        );
    }
    // A watch ends with the error.
    let watch = format!("{MAPS}?watch=true&timeoutSeconds=5");
    let events = text(&world.get(&watch, "application/json")?);
    ensure!(events.contains("ERROR") && events.contains("default/broken"), "{events}");
    // Other objects, and requests that do not need it, work.
    let sound = format!("{MAPS}/sound");
    for (method, path, kind, body) in [
        ("GET", sound.as_str(), "application/json", &b""[..]),
        ("GET", &format!("{MAPS}?fieldSelector=metadata.name%3Dsound"), table, b""),
        ("PATCH", &sound, merge, label),
        ("GET", "/api/v1/namespaces", "application/json", b""),
        ("GET", "/readyz", "application/json", b""),
    ] {
        let (code, answer) = world.ask(method, path, kind, body)?;
        ensure!(code == 200, "{method} {path}: {code} {}", text(&answer));
    }
    // With the feature on, a permitted user can delete it with the option; watchers receive its
    // name.
    let option = "ignoreStoreReadErrorWithClusterBreakingPotential=true";
    let unsafely = format!("{broken}?{option}");
    ensure!(world.ask("DELETE", &unsafely, "application/json", b"")?.0 == 500);
    world.server.stop();
    let gate = ["AllowUnsafeMalformedObjectDeletion=true"];
    let world =
        World::start(Config { feature_gates: FeatureGates::parse(gate)?, ..config.clone() })?;
    let (code, answer) = world.ask("GET", MAPS, "application/json", b"")?;
    let answer = text(&answer);
    ensure!(code == 500 && answer.contains("StorageReadError"), "{code} {answer}");
    ensure!(answer.contains(r#""field":"configmaps/default/broken""#), "{answer}");
    let exclusive =
        "is exclusively used to delete corrupt object(s), try again by removing this option";
    for (path, why) in [
        (format!("{sound}?{option}"), exclusive),
        (format!("{MAPS}/absent?{option}"), exclusive),
        (
            format!("{unsafely}&gracePeriodSeconds=0"),
            "cannot be set together with .gracePeriodSeconds",
        ),
        (format!("{unsafely}&dryRun=All"), "cannot be set together with .dryRun"),
        (
            format!("{MAPS}?{option}"),
            "is not allowed with DELETECOLLECTION, try again after removing the option",
        ),
    ] {
        let (code, answer) = world.ask("DELETE", &path, "application/json", b"")?;
        ensure!(code == 422 && text(&answer).contains(why), "{path}: {code} {}", text(&answer));
    }
    let (code, answer) = world.ask("DELETE", &unsafely, "application/json", b"")?;
    ensure!(code == 200, "{code} {}", text(&answer));
    ensure!(world.ask("GET", MAPS, "application/json", b"")?.0 == 200);
    let (code, _) = world.ask("GET", &broken, "application/json", b"")?;
    ensure!(code == 404);
    let since = format!("{MAPS}?watch=true&timeoutSeconds=1&resourceVersion={since}");
    let events = text(&world.get(&since, "application/json")?);
    ensure!(events.contains(r#""DELETED","#) && events.contains(r#""name":"broken""#), "{events}");
    world.server.stop(); // its store writes until it is closed
    std::fs::remove_dir_all(directory)?;
    Ok(())
}

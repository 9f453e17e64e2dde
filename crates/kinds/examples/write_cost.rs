//! Measures a write inside the registry, from the body to the response: the time of creates and
//! updates of an object, over a store in memory.
//!
//! `cargo run --release -p pintle-kinds --example write_cost -- FILE…`; a file is JSON or YAML of
//! one object. A small ConfigMap is always measured first.

#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pintle_kinds::{RuntimeConfig, definitions};
use pintle_meta::{GroupVersionResource, Status, User};
use pintle_registry::admission::AdmitAll;
use pintle_registry::request::{
    Body, Context, Encoding, Now, Refusal, Target, Warnings, WriteOptions, granted,
};
use pintle_registry::results::{Outcome, ResponseBody};
use pintle_registry::{Object, Options, Registry};
use pintle_value::{Str, Value, json, yaml};

/// The default number of rounds; an environment variable of that name changes it, because fewer are
/// enough to count instructions.
const ROUNDS: usize = 2_000;

const CONFIG_MAP: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut objects = vec![("ConfigMap".to_owned(), CONFIG_MAP.as_bytes().to_vec())];
    for file in std::env::args().skip(1) {
        let bytes = std::fs::read(&file).expect("the file can be read");
        objects.push((file, bytes));
    }
    let registry = Arc::new(open().await);
    for (name, bytes) in objects {
        let object = yaml::parse(&bytes).expect("the file is YAML or JSON");
        measure(&registry, &name, object).await;
    }
}

fn entropy(bytes: &mut [u8]) {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let mut state = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for byte in bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *byte = (state >> 56) as u8;
    }
}

async fn open() -> Registry {
    let options = Options {
        store: Box::new(pintle_store::memory(u64::MAX).expect("an in-memory store opens")),
        admission: Arc::new(AdmitAll),
        entropy,
        garbage_collection: true,
        history_bytes_max: 1 << 20,
        encodings_bytes_max: 1 << 20,
    };
    let definitions = definitions(&RuntimeConfig::default());
    Registry::open(options, definitions).await.expect("an empty store opens")
}

async fn measure(registry: &Registry, file: &str, mut object: Value) {
    let kind = object.str_at(&["kind"]).unwrap_or_default().to_owned();
    let version = object.str_at(&["apiVersion"]).unwrap_or_default();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let plural = format!("{}s", kind.to_lowercase());
    let resource = registry.resource(&GroupVersionResource::new(group, version, plural.as_str()));
    let Some(resource) = resource else {
        println!("{file}: no resource {plural}");
        return;
    };
    let namespace = if resource.namespaced() { "default" } else { "" };
    let metadata = object.object_entry("metadata");
    for set_by_the_server in ["managedFields", "namespace", "resourceVersion", "uid"] {
        metadata.remove(set_by_the_server);
    }
    let target = |name: &str| Target {
        resource: resource.clone(),
        namespace: namespace.into(),
        name: name.into(),
        subresource: Str::default(),
    };
    let (options, collection) = (WriteOptions::default(), target(""));
    let mut creates = Vec::new();
    let mut updates = Vec::new();
    for round in 0..rounds() {
        let context = Context {
            now: Now { unix_micros: 1_700_000_000_000_000 + round as i64 * 1_000_000 },
            user: Arc::new(User::server("measures")),
            verb: None,
            user_agent: "measure/1".into(),
            warnings: Warnings::default(),
            timing: Arc::default(),
            refusal: Refusal::default(),
            recorder: None,
        };
        let name = format!("{}-{round}", kind.to_lowercase());
        object.object_entry("metadata").insert("name", name.as_str());
        let sent = body(&object);
        let (created, cost) = timed(registry.create(&collection, &sent, &options, &context)).await;
        creates.push(cost);
        let mut changed = json::parse(&made(created).json()).expect("stored objects are JSON");
        changed.object_entry("metadata").entry_object("labels").insert("round", name.as_str());
        let (sent, one) = (body(&changed), target(&name));
        let (updated, cost) =
            timed(registry.update(&one, &sent, &options, &context, &granted)).await;
        updates.push(cost);
        made(updated);
    }
    println!("{file}, {} bytes", body(&object).bytes.len());
    report("create", creates);
    report("update", updates);
}

fn rounds() -> usize {
    std::env::var("ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS)
}

fn body(object: &Value) -> Body {
    let mut bytes = Vec::new();
    json::write(object, &mut bytes);
    Body { bytes: bytes.into(), encoding: Encoding::Json }
}

fn made(done: Result<Outcome, Status>) -> Arc<Object> {
    match done.map(|outcome| outcome.body) {
        Ok(ResponseBody::Object(object)) => object,
        Ok(_) => panic!("a write answers with the object"),
        Err(status) => panic!("{}", status.message),
    }
}

async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let begin = Instant::now();
    let done = work.await;
    (done, begin.elapsed())
}

fn report(what: &str, mut costs: Vec<Duration>) {
    costs.sort_unstable();
    let [best, median] = [costs[0], costs[costs.len() / 2]].map(|took| took.as_secs_f64() * 1e6);
    println!("  {what}: best {best:.1} µs, median {median:.1} µs");
}

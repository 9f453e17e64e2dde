//! Measures ownership tracking and server-side apply: time and allocations of one operation on
//! objects of the built-in kinds.
//!
//! `cargo run --release -p pintle-apply --example ownership_speed -- FILE…`; a file is JSON or YAML
//! of one object. A Deployment is always measured first.

#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use pintle_apply::server_side::{
    CreatedFields, Filter, Ownership, UniformVersions, same_but_for_times,
};
use pintle_schema::{Schema, TypeId, builtin, conform, encode};
use pintle_value::{Value, json, yaml};

/// The path whose raw JSON the registry does not parse in stored objects.
const UNREAD: &[&str] = &["metadata", "managedFields", "fieldsV1"];

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default, labels: {app: web}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: nginx:1.27
        ports: [{containerPort: 80, protocol: TCP}]
        env: [{name: A, value: '1'}, {name: B, value: '2'}]
        resources: {limits: {cpu: 100m, memory: 64Mi}}
";

fn main() {
    let mut objects =
        vec![("Deployment".to_owned(), yaml::parse(DEPLOYMENT.as_bytes()).expect("is YAML"))];
    for file in std::env::args().skip(1) {
        let bytes = std::fs::read(&file).expect("the file can be read");
        objects.push((file, yaml::parse(&bytes).expect("the file is YAML or JSON")));
    }
    for (name, object) in objects {
        let kind = object.str_at(&["kind"]).unwrap_or_default().to_owned();
        let version = object.str_at(&["apiVersion"]).unwrap_or_default().to_owned();
        let suffix = format!(".{}.{kind}", version.rsplit('/').next().unwrap_or_default());
        let schema = builtin();
        match schema.names().iter().find(|(name, _)| name.ends_with(&suffix)) {
            Some((_, ty)) => measure(&name, (schema, *ty), (&version, &kind), object),
            None => println!("{name}: no type {suffix}"),
        }
    }
}

fn measure(
    name: &str,
    (schema, ty): (&Schema, TypeId),
    (api_version, kind): (&str, &str),
    mut object: Value,
) {
    object.object_entry("metadata").remove("managedFields");
    let configuration = object.clone();
    conform(schema, ty, &mut object).expect("is an object of its type");
    let versions = UniformVersions(schema, ty);
    let filter = Filter::except(&[&["status"]]);
    let remembered = CreatedFields::default();
    let ownership = Ownership {
        versions: &versions,
        api_version,
        kind,
        subresource: "",
        filter: &filter,
        created: None,
    };
    let changed = |object: &Value, value: &str| {
        let mut object = object.clone();
        object.object_entry("metadata").entry_object("labels").insert("changed", value);
        object
    };

    let mut created = object.clone();
    ownership.track_update(None, &mut created, "maker", 0);
    let mut updated = changed(&created, "1");
    ownership.track_update(Some(&created), &mut updated, "controller", 1_000_000);
    let merged = ownership.apply(Some(updated.clone()), &configuration, "me", false, 2_000_000);
    let mut applied = merged.expect("applies");
    conform(schema, ty, &mut applied).expect("is an object of its type");

    let (mut bare, mut whole) = (Vec::new(), Vec::new());
    encode::write(schema, ty, &object, &mut bare);
    encode::write(schema, ty, &updated, &mut whole);
    println!("{name}: {} bytes of JSON, {} with two managers", bare.len(), whole.len());
    report(
        "create",
        || object.clone(),
        |mut new| {
            ownership.track_update(None, &mut new, "maker", 0);
            new
        },
    );
    report(
        "create of a known outline",
        || object.clone(),
        |mut new| {
            let ownership = Ownership { created: Some(&remembered), ..ownership };
            ownership.track_update(None, &mut new, "maker", 0);
            new
        },
    );
    let mut turn = 0;
    report(
        "update of a label",
        || {
            turn += 1;
            changed(&updated, if turn % 2 == 0 { "2" } else { "3" })
        },
        |mut new| {
            ownership.track_update(Some(&updated), &mut new, "controller", 3_000_000);
            new
        },
    );
    report(
        "update of nothing",
        || updated.clone(),
        |mut new| {
            ownership.track_update(Some(&updated), &mut new, "controller", 3_000_000);
            new
        },
    );
    let apply = |live, configuration| {
        ownership.apply(Some(live), configuration, "me", true, 4_000_000).expect("applies")
    };
    let other = changed(&configuration, "4");
    report("first apply", || updated.clone(), |live| apply(live, &configuration));
    report("apply of the same", || applied.clone(), |live| apply(live, &configuration));
    report("apply of another label", || applied.clone(), |live| apply(live, &other));
    report("is it the same?", || (), |()| same_but_for_times(&updated, &updated.clone()));
    println!("  beside it:");
    report("parse the stored", || (), |()| json::parse_with_raw(&whole, UNREAD));
    report("parse it without managers", || (), |()| json::parse_with_raw(&bare, UNREAD));
    report("write it", || (), |()| written(schema, ty, &updated));
    report("write it without managers", || (), |()| written(schema, ty, &object));
}

fn written(schema: &Schema, ty: TypeId, object: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 * 1024);
    encode::write(schema, ty, object, &mut out);
    out
}

/// Runs for 400 ms and prints the mean time of an operation in the best round. The creation of
/// inputs and the drop of outputs are not measured.
fn report<I, O>(what: &str, mut before: impl FnMut() -> I, mut run: impl FnMut(I) -> O) {
    const ROUND: usize = 10;
    let mut best = Duration::MAX;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(400) {
        let inputs: Vec<I> = (0..ROUND).map(|_| before()).collect();
        let mut outputs = Vec::with_capacity(ROUND);
        let round = Instant::now();
        outputs.extend(inputs.into_iter().map(|input| black_box(run(input))));
        best = best.min(round.elapsed() / ROUND as u32);
    }
    let input = before();
    let counted = allocation_counter::measure(|| {
        black_box(run(input));
    });
    let micros = best.as_secs_f64() * 1e6;
    println!("  {what:<26} {micros:>9.2} µs {:>7} allocations", counted.count_total);
}

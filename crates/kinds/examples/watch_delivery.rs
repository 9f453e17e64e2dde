//! Measures how many events watches receive inside the registry, without connections: four writers
//! update a ConfigMap of 1 KB each, over a store in memory, while many watches follow.
//!
//! `cargo run --release -p pintle-kinds --example watch_delivery -- [WATCHES [SECONDS]]`

#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pintle_kinds::{RuntimeConfig, definitions};
use pintle_meta::{GroupVersionResource, User};
use pintle_registry::admission::AdmitAll;
use pintle_registry::request::{
    Body, Context, Encoding, ListOptions, Now, Refusal, Target, Warnings, WriteOptions, granted,
};
use pintle_registry::watch::Watch;
use pintle_registry::{Options, Registry};
use pintle_value::Str;

/// The number of concurrent writers, each with its own object.
const WRITERS: usize = 4;

/// What all watches have received.
#[derive(Default)]
struct Received {
    events: AtomicU64,
    bytes: AtomicU64,
}

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse().expect("a number"));
    let watches = arguments.next().unwrap_or(1000);
    let time = Duration::from_secs(arguments.next().unwrap_or(5));
    let registry = Arc::new(open().await);
    let (target, received) = (config_maps(&registry, ""), Arc::new(Received::default()));
    for _ in 0..watches {
        let watch = registry.watch(&target, &ListOptions::default()).await;
        tokio::spawn(receive(
            watch.unwrap_or_else(|status| panic!("{status:?}")),
            received.clone(),
        ));
    }
    let start = Instant::now();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| tokio::spawn(write(registry.clone(), format!("writer-{writer}"), time)))
        .collect();
    let mut writes = 0;
    for writer in writers {
        writes += writer.await.expect("no panic");
    }
    while received.events.load(Ordering::Relaxed) < writes * watches {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let seconds = start.elapsed().as_secs_f64();
    let [events, bytes] = [&received.events, &received.bytes].map(|it| it.load(Ordering::Relaxed));
    println!(
        "{watches} watches, {:.0} writes/s: {:.0} events/s, {:.0} MB/s",
        writes as f64 / seconds,
        events as f64 / seconds,
        bytes as f64 / seconds / 1e6,
    );
}

async fn open() -> Registry {
    let options = Options {
        store: Box::new(pintle_store::memory(64 << 20).expect("an in-memory store opens")),
        admission: Arc::new(AdmitAll),
        entropy: |bytes| bytes.fill(7),
        garbage_collection: true,
        history_bytes_max: 64 << 20,
        encodings_bytes_max: 1 << 20,
    };
    let definitions = definitions(&RuntimeConfig::default());
    Registry::open(options, definitions).await.expect("an empty store opens")
}

fn config_maps(registry: &Registry, name: &str) -> Target {
    let resource = registry.resource(&GroupVersionResource::new("", "v1", "configmaps"));
    Target {
        resource: resource.expect("ConfigMaps are built in"),
        namespace: "default".into(),
        name: name.into(),
        subresource: Str::default(),
    }
}

/// Receives events as a connection does: it takes the bytes that it would send.
async fn receive(mut watch: Watch, received: Arc<Received>) {
    while let Some(events) = watch.next().await {
        let frames = events.iter().filter_map(|event| {
            let object = event.object().expect("the log is long enough for every watch");
            object.frame(object.kind())
        });
        let bytes: usize = frames.map(|frame| frame.len()).sum();
        received.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        received.events.fetch_add(events.len() as u64, Ordering::Relaxed);
    }
}

/// Creates an object and updates it for a time; returns the number of writes.
async fn write(registry: Arc<Registry>, name: String, time: Duration) -> u64 {
    let (collection, one) = (config_maps(&registry, ""), config_maps(&registry, &name));
    let (options, start) = (WriteOptions::default(), Instant::now());
    let body = |round: u64| Body {
        bytes: format!(
            r#"{{"metadata":{{"name":"{name}"}},"data":{{"round":"{round}","more":"{}"}}}}"#,
            "0123456789abcdef".repeat(55)
        )
        .into(),
        encoding: Encoding::Json,
    };
    let created = registry.create(&collection, &body(0), &options, &context()).await;
    created.unwrap_or_else(|status| panic!("{status:?}"));
    for round in 1.. {
        let written = registry.update(&one, &body(round), &options, &context(), &granted).await;
        written.unwrap_or_else(|status| panic!("{status:?}"));
        if start.elapsed() >= time {
            return round + 1;
        }
    }
    unreachable!("rounds do not end")
}

fn context() -> Context {
    Context {
        now: Now { unix_micros: 1_700_000_000_000_000 },
        user: Arc::new(User::server("measures")),
        verb: None,
        user_agent: "measure/1".into(),
        warnings: Warnings::default(),
        timing: Arc::default(),
        refusal: Refusal::default(),
        recorder: None,
    }
}

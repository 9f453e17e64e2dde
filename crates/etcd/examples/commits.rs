//! Measures how fast a store on etcd commits creates of about 1 KB: `cargo run --release -p
//! pintle-etcd --example commits -- ENDPOINT WRITERS SECONDS`.
//!
//! Use a database of its own; it is not cleaned afterwards.

#![expect(clippy::print_stdout, reason = "this is a program")]

use std::env;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use pintle_etcd::Options;
use pintle_store::{
    Change, Expect, Follower, Group, Key, Kind, Layout, Mismatch, Opening as _, Record, Revision,
    Template, Write,
};

/// A layout with the path `collection/item` and plain bytes as values.
struct Plain;

impl Layout for Plain {
    fn path(&self, key: &Key) -> String {
        format!("{}/{}", key.collection, key.item)
    }

    fn key(&self, path: &str) -> Option<Key> {
        let (collection, item) = path.split_once('/')?;
        Some(Key { collection: collection.into(), item: item.into() })
    }

    fn encode(&self, _: &Key, value: &[u8], _: Kind) -> Result<Bytes, Mismatch> {
        Ok(Bytes::copy_from_slice(value))
    }

    fn decode(&self, _: &Key, stored: &[u8], _: Revision) -> Result<Bytes, Mismatch> {
        Ok(Bytes::copy_from_slice(stored))
    }

    fn is_current(&self, _: &Key, _: &[u8]) -> bool {
        true
    }

    fn lifetime(&self, _: &Key) -> Option<Duration> {
        None
    }
}

struct Ignore;

impl Follower for Ignore {
    fn apply(&self, _: &[Record], _: Revision) {}

    fn reset(&self, _: &[Record], _: Revision) {}
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [endpoint, writers, seconds] = arguments.as_slice() else {
        anyhow::bail!("usage: commits ENDPOINT WRITERS SECONDS");
    };
    let (writers, seconds): (usize, u64) = (writers.parse()?, seconds.parse()?);
    let options = Options { endpoints: vec![endpoint.clone()], ..Options::default() };
    let begin = Instant::now();
    let opening = pintle_etcd::open(&options, Arc::new(Plain)).await?;
    let store = Box::new(opening).read_to(Arc::new(Ignore)).await?;
    println!("opened in {:.1?}, head {}", begin.elapsed(), store.head());
    let value = vec![b'x'; 1100];
    let begin = Instant::now();
    let end = begin + Duration::from_secs(seconds);
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let (store, value) = (store.clone(), value.clone());
            let first = store.head();
            tokio::spawn(async move {
                let mut took = Vec::new();
                while Instant::now() < end {
                    let item = format!("{first}-{writer}-{}", took.len());
                    let key = Key { collection: "things".into(), item: item.into() };
                    let change = Change::Put(Template::whole(value.clone()));
                    let write = Write { key, expect: Expect::Absent, change, note: None };
                    let begin = Instant::now();
                    let group = Group { first: write, rest: Vec::new(), unchanged: Vec::new() };
                    store.commit(group).await?;
                    took.push(begin.elapsed());
                }
                anyhow::Ok(took)
            })
        })
        .collect();
    let mut took = Vec::new();
    for task in tasks {
        took.extend(task.await.context("a writer")??);
    }
    took.sort_unstable();
    let rate = took.len() as f64 / begin.elapsed().as_secs_f64();
    let shares = [("p50", 50), ("p99", 99)];
    let shares = shares.into_iter().map(|(name, share)| {
        format!("{name} {:.2?}", took.get(took.len() * share / 100).copied().unwrap_or_default())
    });
    println!("{rate:.0} commits/s, {}", shares.collect::<Vec<_>>().join(", "));
    let begin = Instant::now();
    for _ in 0..1000 {
        store.fresh().await?;
    }
    println!("fresh: {:.2?} each", begin.elapsed() / 1000);
    Ok(())
}

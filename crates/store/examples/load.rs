//! Measures a store by itself, with many writers that each have one write in progress.
//!
//! `cargo run --release -p pintle-store --example load -- create 1024 64 5 /tmp/store`
//!
//! The arguments are the kind of writes (`create`: new keys; `update`: 20,000 keys repeatedly, with
//! a compaction every second), the bytes of a value, the number of writers, the seconds, and a
//! directory that is emptied first; without it the store is in memory. `kill` after the directory
//! ends the process as a crash would. `open` and a directory opens an existing store with a
//! follower.

#![expect(clippy::print_stdout, reason = "it is what the program is for")]

use std::collections::HashMap;
use std::error::Error;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use pintle_store::{
    Change, Durability, Expect, Follower, Group, Key, Opening as _, Options, Record, Revision,
    Store, Template, Write,
};
use tokio::runtime::{Builder, Runtime};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const UPDATED_KEYS: usize = 20_000;

/// The default of a server.
const HISTORY_BYTES_MAX: u64 = 64 << 20;

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match *words {
        ["open", dir] => reopen(Path::new(dir)),
        [what, bytes, writers, seconds, ref rest @ ..] => {
            let dir = rest.first().map(PathBuf::from);
            if let Some(dir) = dir.as_deref().filter(|dir| dir.exists()) {
                fs::remove_dir_all(dir)?;
            }
            let store = open(dir.as_deref())?;
            let load = Load {
                update: what == "update",
                value: Arc::new(value(bytes.parse()?)),
                writers: writers.parse()?,
                time: Duration::from_secs_f64(seconds.parse()?),
            };
            load.run(&store)?;
            println!("on disk: {} MB", dir.map_or(Ok(0), |dir| size(&dir))? >> 20);
            if rest.contains(&"kill") {
                process::abort();
            }
            Ok(())
        }
        _ => Err("unknown arguments; the source's first lines explain them".into()),
    }
}

fn open(dir: Option<&Path>) -> Result<Arc<dyn Store>> {
    let opening = match dir {
        Some(dir) => pintle_store::open(&options(dir))?,
        None => pintle_store::memory(HISTORY_BYTES_MAX)?,
    };
    Ok(opening.read()?)
}

fn options(dir: &Path) -> Options {
    let dir = dir.to_owned();
    Options {
        dir,
        durability: Durability::Disk,
        history_bytes_max: HISTORY_BYTES_MAX,
        transformer: None,
    }
}

/// Measures how long a server takes to read everything.
fn reopen(dir: &Path) -> Result<()> {
    struct Count(AtomicUsize);
    impl Follower for Count {
        fn apply(&self, records: &[Record], _: Revision) {
            self.0.fetch_add(records.len(), Ordering::Relaxed);
        }

        fn reset(&self, state: &[Record], _: Revision) {
            self.0.store(state.len(), Ordering::Relaxed);
        }
    }
    let (before, begin) = (Usage::now()?, Instant::now());
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let opening = pintle_store::open(&options(dir))?;
    let store = runtime()?.block_on(Box::new(opening).read_to(count.clone()))?;
    let (took, after) = (begin.elapsed(), Usage::now()?);
    println!(
        "open: {took:.1?}, {} records, {} revisions, resident {} kB, was {} kB",
        count.0.load(Ordering::Relaxed),
        store.head(),
        after.resident_kib,
        before.resident_kib
    );
    Ok(())
}

struct Load {
    update: bool,
    value: Arc<Vec<u8>>,
    writers: usize,
    time: Duration,
}

impl Load {
    fn run(&self, store: &Arc<dyn Store>) -> Result<()> {
        let runtime = runtime()?;
        let (before, begin) = (Usage::now()?, Instant::now());
        let stop = Arc::new(AtomicBool::new(false));
        let write = |writer| {
            let (value, keys) = (self.value.clone(), UPDATED_KEYS / self.writers);
            let keys = if self.update { keys } else { usize::MAX };
            runtime.spawn(write_until(store.clone(), stop.clone(), writer, keys, value))
        };
        let writers: Vec<_> = (0..self.writers).map(write).collect();
        while begin.elapsed() < self.time {
            thread::sleep(Duration::from_secs(1).min(self.time));
            if self.update {
                runtime.block_on(store.compact(store.head()))?;
            }
        }
        stop.store(true, Ordering::Relaxed);
        let mut latencies = Vec::new();
        for writer in writers {
            latencies.extend(runtime.block_on(writer)??);
        }
        let (took, after) = (begin.elapsed(), Usage::now()?);
        latencies.sort_unstable();
        let at = |part: f64| latencies[((latencies.len() - 1) as f64 * part) as usize];
        println!(
            "{:.0} writes/s, p50 {:.1?}, p99 {:.1?}, max {:.1?}, {:.1?} of CPU a write, resident {} kB",
            latencies.len() as f64 / took.as_secs_f64(),
            at(0.5),
            at(0.99),
            at(1.0),
            (after.cpu - before.cpu) / u32::try_from(latencies.len())?,
            after.resident_kib
        );
        Ok(())
    }
}

/// Runs one writer; returns the latency of each write.
async fn write_until(
    store: Arc<dyn Store>,
    stop: Arc<AtomicBool>,
    writer: usize,
    keys: usize,
    value: Arc<Vec<u8>>,
) -> Result<Vec<Duration>> {
    let (mut latencies, mut revisions) = (Vec::new(), HashMap::new());
    let collection: Arc<str> = "configmaps".into();
    for n in 0usize.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        // With few keys a random one, otherwise a new one.
        let any = (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let item = if keys < usize::MAX { any as usize % keys } else { n };
        let expect = revisions.get(&item).map_or(Expect::Absent, |&at| Expect::At(at));
        let key = Key { collection: collection.clone(), item: format!("{writer}/{item}").into() };
        let template = Template::framed(value.to_vec(), 0..value.len(), Some(value.len() / 2));
        let begin = Instant::now();
        let change = Change::Put(template);
        let first = Write { key, expect, change, note: None };
        let group = Group { first, rest: Vec::new(), unchanged: Vec::new() };
        let records = store.commit(group).await?;
        latencies.push(begin.elapsed());
        if keys < usize::MAX {
            revisions.insert(item, records[0].revision);
        }
    }
    Ok(latencies)
}

/// Returns bytes that compress to about half.
fn value(len: usize) -> Vec<u8> {
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let byte = |n| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        if n % 2 == 0 { b'a' } else { random as u8 }
    };
    (0..len).map(byte).collect()
}

fn runtime() -> Result<Runtime> {
    Ok(Builder::new_multi_thread().worker_threads(2).build()?)
}

struct Usage {
    cpu: Duration,
    resident_kib: u64,
}

impl Usage {
    fn now() -> Result<Self> {
        let stat = fs::read_to_string("/proc/self/stat")?;
        let (_, fields) = stat.rsplit_once(") ").ok_or("no fields in /proc/self/stat")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        // User and system time, in hundredths of a second.
        let ticks = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
        let status = fs::read_to_string("/proc/self/status")?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let resident_kib = resident.ok_or("no VmRSS")?.trim().trim_end_matches(" kB").parse()?;
        Ok(Self { cpu: Duration::from_millis(ticks * 10), resident_kib })
    }
}

/// Returns the size of a directory's files on disk, in bytes.
fn size(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir)? {
        bytes += entry?.metadata()?.blocks() * 512;
    }
    Ok(bytes)
}

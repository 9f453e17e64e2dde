//! A process that is killed repeatedly while 64 threads write to one store. Afterwards every
//! acknowledged write has its value, revisions only grow, no write is partial, and a follower sees
//! everything once and in order.
//!
//! `PINTLE_CRASH_ROUNDS=100` kills it more often than the default.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::thread;

use tokio::runtime::{Builder, Runtime};

use super::storage::Random;
use super::*;
use crate::conformance::CommitOne as _;
use crate::{At, Kind};

/// Tells [`child`] that it is the child process, and where its store is.
const DIRECTORY: &str = "PINTLE_CRASH_DIRECTORY";

const WRITERS: u64 = 64;

/// The number of items of each writer.
const ITEMS: u64 = 8;

/// The effect of a write.
#[derive(Clone, Debug, PartialEq)]
struct Effect {
    item: String,
    /// The number of the writer's write, which is in its value.
    number: u64,
    kind: String,
}

/// Returns the value of a write: it shows its writer and whether it is complete.
fn value(item: &str, number: u64) -> Template {
    let len = Random::new(number).below(if number.is_multiple_of(10) { 15_000 } else { 1500 });
    let head = format!("{item} {number} ");
    let bytes = format!("{head} {}.", "x".repeat(len as usize)).into_bytes();
    Template::framed(bytes.clone(), 0..bytes.len(), Some(head.len()))
}

impl Effect {
    /// Reads the effect in a record, and checks the value against that of the write with its
    /// number.
    fn of(record: &Record) -> Self {
        let text = String::from_utf8(record.value().to_vec()).unwrap();
        let number = text.split(' ').nth(1).and_then(|number| number.parse().ok()).unwrap_or(0);
        let (expected, _) = value(&record.key.item, number).fill(record.revision);
        assert!(record.value() == expected, "revision {} holds {text}", record.revision);
        Self { item: record.key.item.to_string(), number, kind: format!("{:?}", record.kind) }
    }

    /// Parses the revision and the effect in a line of the child's output.
    fn parse(line: &str) -> Option<(u64, Self)> {
        let mut words = line.split("ack ").nth(1)?.split(' ');
        let revision = words.next()?.parse().ok()?;
        let (item, number) = (words.next()?.to_owned(), words.next()?.parse().ok()?);
        Some((revision, Self { item, number, kind: words.next()?.to_owned() }))
    }
}

/// The child process, not a test by itself. It writes until it is killed, and prints acknowledged
/// writes.
#[test]
fn child() {
    let Some(dir) = std::env::var_os(DIRECTORY) else { return };
    let options = options(Path::new(&dir), Durability::Disk);
    let store = crate::open(&options).unwrap().read().unwrap();
    let (floor, begin) = (store.floor().0, store.head().0);
    let write = |writer| {
        let store = store.clone();
        thread::spawn(move || work(&*store, writer, begin))
    };
    let writers: Vec<_> = (0..WRITERS).map(write).collect();
    // The floor stays at or below the head at the start, so that the parent has seen everything
    // compacted.
    let runtime = Builder::new_current_thread().build().unwrap();
    for floor in (floor..begin).step_by(20) {
        runtime.block_on(store.compact(Revision(floor))).unwrap();
    }
    writers.into_iter().for_each(|writer| writer.join().unwrap());
}

/// Creates, updates and deletes the writer's items for ever.
fn work(store: &dyn Store, writer: u64, begin: u64) {
    let runtime = Builder::new_current_thread().build().unwrap();
    let mut random = Random::new(writer + begin * WRITERS);
    for number in begin + 1.. {
        let item = format!("{writer}/{}", random.below(ITEMS));
        let current = runtime.block_on(store.get(&key(&item), At::Head)).unwrap();
        let expect = current.as_ref().map_or(Expect::Absent, |c| Expect::At(c.revision));
        let change = match &current {
            Some(_) if random.below(4) == 0 => Change::Delete(value(&item, number)),
            _ => Change::Put(value(&item, number)),
        };
        let record = runtime.block_on(store.commit_one(write(key(&item), expect, change))).unwrap();
        // One write call to the pipe, so that a line is complete or absent.
        let line = format!("ack {} {item} {number} {:?}\n", record.revision, record.kind);
        std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
    }
}

fn start_child(dir: &TempDir) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::crash::child", "--nocapture"])
        .env(DIRECTORY, dir.path().join("data"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Kills a child after some acknowledgements; returns all of them.
fn killed_after(dir: &TempDir, count: u64) -> BTreeMap<u64, Effect> {
    let mut child = start_child(dir);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut acknowledged = BTreeMap::new();
    while (acknowledged.len() as u64) < count {
        let line = lines.next().expect("the child writes until it is killed");
        acknowledged.extend(Effect::parse(&line));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    acknowledged.extend(lines.filter_map(|line| Effect::parse(&line)));
    acknowledged
}

/// Returns the revisions of the live values after some effects.
fn live<'a>(facts: impl Iterator<Item = (&'a u64, &'a Effect)>) -> Vec<u64> {
    let mut items = BTreeMap::new();
    for (revision, fact) in facts {
        match fact.kind.as_str() {
            "Deleted" => items.remove(&fact.item),
            _ => items.insert(&fact.item, *revision),
        };
    }
    items.into_values().collect()
}

/// Opens the store as another process would and checks it; `known` has the effect of every revision
/// seen so far.
fn check(dir: &TempDir, acknowledged: &BTreeMap<u64, Effect>, known: &mut BTreeMap<u64, Effect>) {
    let runtime: Runtime = Builder::new_current_thread().build().unwrap();
    let (store, from_the_opening) = runtime.block_on(reopened(dir));
    let (floor, head) = (store.floor(), store.head());
    let later = runtime.block_on(followed(&store));
    for seen in [from_the_opening, later] {
        seen.check_complete(floor, head);
        for record in seen.0.lock().iter() {
            let fact = Effect::of(record);
            let before = known.entry(record.revision.0).or_insert_with(|| fact.clone());
            assert_eq!(*before, fact, "revision {} is as it was", record.revision);
        }
    }
    assert!(known.keys().copied().eq(1..=head.0), "nothing that was seen is undone");
    for (revision, fact) in acknowledged {
        assert_eq!(known.get(revision), Some(fact), "revision {revision} was acknowledged");
    }
    for at in [floor, head] {
        let listed = runtime.block_on(store.list("things", "", At::Revision(at))).unwrap();
        let listed = listed.iter().inspect(|record| assert_ne!(record.kind, Kind::Deleted));
        let expected = live(known.range(..=at.0));
        assert!(listed.map(|record| record.revision.0).eq(expected), "the state at {at}");
    }
}

#[test]
fn a_killed_process_loses_no_acknowledged_write() {
    let rounds = std::env::var("PINTLE_CRASH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let dir = tempfile::tempdir().unwrap();
    let mut known = BTreeMap::new();
    let mut random = Random::new(7);
    for _ in 0..rounds.unwrap_or(10) {
        let acknowledged = killed_after(&dir, random.below(2000));
        check(&dir, &acknowledged, &mut known);
    }
    assert!(reopen(&dir).floor() > Revision(0), "it was compacted too");
}

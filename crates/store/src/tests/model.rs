//! Random sequences of operations on a store and on a naive model, which stores every record and
//! scans them all.

use proptest::collection::vec;
use proptest::prelude::*;
use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::conformance::CommitOne as _;
use crate::{At, Kind};

#[derive(Clone, Debug)]
enum Operation {
    /// A write of a key, with the right precondition or with any other.
    Write {
        key: Key,
        put: bool,
        right: bool,
        revision: u64,
    },
    /// Compaction up to this percentage of the revisions.
    Compact(u64),
    /// A read of everything at a revision.
    Read(u64),
    Follow,
    Reopen,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let key = ("[ab]", "[abc]/[12]");
    let key = key.prop_map(|(c, i)| Key { collection: c.into(), item: i.into() });
    let write = (key, prop::bool::weighted(0.7), prop::bool::weighted(0.8), 0..40u64);
    let write = write.prop_map(|(key, put, right, revision)| Operation::Write {
        key,
        put,
        right,
        revision,
    });
    let operation = prop_oneof![
        20 => write,
        2 => (0..110u64).prop_map(Operation::Compact),
        3 => (0..50u64).prop_map(Operation::Read),
        1 => Just(Operation::Follow),
        1 => Just(Operation::Reopen),
    ];
    vec(operation, 1..80)
}

/// The naive store.
#[derive(Default)]
struct Model {
    /// The record of revision `n` is at `n - 1`.
    records: Vec<Record>,
    floor: u64,
}

impl Model {
    fn head(&self) -> u64 {
        self.records.len() as u64
    }

    fn get(&self, key: &Key, at: u64) -> Option<&Record> {
        let newest = self.records[..at as usize].iter().rfind(|record| record.key == *key)?;
        (newest.kind != Kind::Deleted).then_some(newest)
    }

    fn list(&self, at: u64, keep: impl Fn(&Key) -> bool) -> Vec<Record> {
        let mut keys: Vec<_> = self.records.iter().map(|record| &record.key).collect();
        keys.sort();
        keys.dedup();
        keys.retain(|key| keep(key));
        keys.into_iter().filter_map(|key| self.get(key, at).cloned()).collect()
    }

    fn write(&mut self, write: &Write) -> Result<Record, Error> {
        let current = self.get(&write.key, self.head()).cloned();
        let kind = match (&write.expect, &write.change, &current) {
            (Expect::Absent, Change::Put(_), None) => Kind::Created,
            (Expect::At(at), Change::Put(_), Some(c)) if c.revision == *at => Kind::Updated,
            (Expect::At(at), Change::Delete(_), Some(c)) if c.revision == *at => Kind::Deleted,
            _ => return Err(Error::Conflict { current: current.map(Box::new) }),
        };
        let revision = Revision(self.head() + 1);
        let (bytes, body) = write.change.template().fill(revision);
        let record = Record { revision, key: write.key.clone(), kind, bytes, body, note: None };
        self.records.push(record.clone());
        Ok(record)
    }

    fn compact(&mut self, floor: u64) -> Result<(), Error> {
        if floor > self.head() {
            return Err(Error::Future { requested: Revision(floor), head: Revision(self.head()) });
        }
        self.floor = self.floor.max(floor);
        Ok(())
    }

    fn readable(&self, at: u64) -> Result<(), Error> {
        let (requested, floor, head) = (Revision(at), Revision(self.floor), Revision(self.head()));
        if requested < floor {
            Err(Error::Compacted { requested, floor })
        } else if requested > head {
            Err(Error::Future { requested, head })
        } else {
            Ok(())
        }
    }

    /// Returns what a new follower gets.
    fn followed(&self) -> Vec<Record> {
        let mut records = self.list(self.floor, |_| true);
        records.sort_by_key(|record| record.revision);
        records.extend_from_slice(&self.records[self.floor as usize..]);
        records
    }
}

/// The store under test and its model.
struct Pair {
    runtime: Runtime,
    model: Model,
    store: Arc<dyn Store>,
    /// The store's directory, if it is on disk.
    dir: Option<TempDir>,
    followers: Vec<(Arc<Seen>, Vec<Record>)>,
}

impl Pair {
    fn new(store: Arc<dyn Store>, dir: Option<TempDir>) -> Self {
        let runtime = Builder::new_current_thread().build().unwrap();
        Self { runtime, model: Model::default(), store, dir, followers: Vec::new() }
    }

    fn step(&mut self, operation: &Operation) {
        match operation {
            Operation::Write { key, put, right, revision } => {
                let current = self.model.get(key, self.model.head()).map(|r| r.revision);
                let right_one = current.map_or(Expect::Absent, Expect::At);
                let any =
                    if *revision == 0 { Expect::Absent } else { Expect::At(Revision(*revision)) };
                let expect = if *right { right_one } else { any };
                let template = Template::framed(b"(v)".to_vec(), 1..2, Some(2));
                let change = if *put { Change::Put(template) } else { Change::Delete(template) };
                let write = write(key.clone(), expect, change);
                let expected = self.model.write(&write);
                if let Ok(record) = &expected {
                    self.followers.iter_mut().for_each(|(_, due)| due.push(record.clone()));
                }
                assert_eq!(self.runtime.block_on(self.store.commit_one(write)), expected);
            }
            Operation::Compact(percent) => {
                let floor = self.model.head() * percent / 100;
                let expected = self.model.compact(floor);
                assert_eq!(self.runtime.block_on(self.store.compact(Revision(floor))), expected);
            }
            Operation::Read(at) => self.read(*at),
            Operation::Follow => {
                let seen = self.runtime.block_on(followed(&self.store));
                self.followers.push((seen, self.model.followed()));
            }
            Operation::Reopen => self.reopen(),
        }
        assert_eq!(self.store.head().0, self.model.head());
        assert_eq!(self.store.floor().0, self.model.floor);
    }

    fn read(&self, revision: u64) {
        let at = At::Revision(Revision(revision));
        for (collection, prefix) in [("a", ""), ("b", ""), ("a", "b"), ("a", "c/2"), ("c", "")] {
            let keep = |key: &Key| *key.collection == *collection && key.item.starts_with(prefix);
            let expected = self.model.readable(revision).map(|()| self.model.list(revision, keep));
            let listed = self.runtime.block_on(self.store.list(collection, prefix, at));
            assert_eq!(listed, expected, "{collection} {prefix} at {revision}");
        }
        for item in ["a/1", "c/2"] {
            let key = Key { collection: "a".into(), item: item.into() };
            let expected = self.model.readable(revision);
            let expected = expected.map(|()| self.model.get(&key, revision).cloned());
            assert_eq!(self.runtime.block_on(self.store.get(&key, at)), expected);
        }
    }

    /// Closes and reopens the store, if it is on disk.
    fn reopen(&mut self) {
        let Some(dir) = &self.dir else { return };
        self.store = in_memory();
        self.check_followers();
        let (store, seen) = self.runtime.block_on(reopened(dir));
        self.store = store;
        self.followers = vec![(seen, self.model.followed())];
    }

    fn check_followers(&self) {
        for (seen, due) in &self.followers {
            assert_eq!(*seen.0.lock(), *due);
        }
    }

    fn run(mut self, operations: &[Operation]) {
        operations.iter().for_each(|operation| self.step(operation));
        (0..=self.model.head() + 1).for_each(|at| self.read(at));
        self.step(&Operation::Follow);
        self.check_followers();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn memory_agrees_with_the_model(operations in operations()) {
        Pair::new(in_memory(), None).run(&operations);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 50, ..ProptestConfig::default() })]
    #[test]
    fn disk_agrees_with_the_model(operations in operations()) {
        let (store, dir) = on_disk();
        Pair::new(store, Some(dir)).run(&operations);
    }
}

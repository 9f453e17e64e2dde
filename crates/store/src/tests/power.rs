//! Failing disks and power failures, by seed. Afterwards any part of the unsynchronised writes is
//! on disk: whole, torn or not at all. The medium must hold the state of its last commit or of the
//! one in progress. A state that was read from it once must stay, even after a failed
//! synchronisation and a later power failure.
//!
//! `PINTLE_POWER_SEEDS=20000` runs more seeds than the default.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::storage::{Fault, Random, Storage};
use super::*;
use crate::Kind;
use crate::engine::{Batch, DiskEngine, Engine, Failure};

/// The state that a medium must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Model {
    pub(super) records: BTreeMap<Revision, Record>,
    floor: Revision,
    pub(super) newest: Revision,
}

/// A part of every value that is not empty.
pub(super) const PLAIN: &[u8] = b"-plain-";

impl Model {
    fn after(&self, batch: &Batch) -> Self {
        let mut next = self.clone();
        for record in &batch.records {
            next.newest = record.revision;
            next.records.insert(record.revision, record.clone());
        }
        for revision in &batch.garbage {
            next.records.remove(revision);
        }
        next.floor = batch.floor.unwrap_or(next.floor);
        next
    }

    fn batch(&self, random: &mut Random) -> Batch {
        let count = random.below(12);
        let records = (1..=count).map(|n| record(Revision(self.newest.0 + n), random)).collect();
        let garbage = self.records.keys().copied().filter(|_| random.below(4) == 0).collect();
        let floor = (random.below(3) == 0).then_some(self.newest);
        Batch { records, garbage, floor }
    }

    /// Reads the state of a medium.
    pub(super) fn read(engine: &DiskEngine, newest: Revision) -> Result<Self, Failure> {
        let mut records = BTreeMap::new();
        engine.scan(Revision(0), &mut |record| {
            records.insert(record.revision, record);
            Ok(true)
        })?;
        Ok(Self { records, floor: engine.floor()?, newest })
    }
}

fn record(revision: Revision, random: &mut Random) -> Record {
    let len = [0, 10, 700, 700, 700, 3000, 3000, 20_000][random.below(8) as usize];
    let text = [PLAIN, &[revision.0 as u8]].concat();
    let bytes: Bytes = text.into_iter().cycle().take(len).collect();
    let key = key(&random.below(10).to_string());
    Record { revision, key, kind: Kind::Updated, body: 0..len, bytes, note: None }
}

/// Commits batches until one fails or there are enough; returns every state that may be on disk
/// then.
pub(super) fn work(
    engine: &DiskEngine,
    storage: &Storage,
    model: Model,
    random: &mut Random,
) -> Vec<Model> {
    let mut model = model;
    for _ in 0..12 {
        if random.below(20) == 0 && engine.shrink().is_err() {
            return vec![model];
        }
        let batch = model.batch(random);
        let next = model.after(&batch);
        if engine.commit(&batch).is_ok() {
            model = next;
            continue;
        }
        let possible = vec![model, next];
        // The store reopens the medium, or a supervisor restarts the process.
        if random.below(2) == 0 || engine.reopen().is_err() {
            return possible;
        }
        assert!(storage.is_consistent(), "what is read after a failure is on disk");
        let Ok(found) = found(engine, &possible) else { return possible };
        model = found;
    }
    vec![model]
}

/// Returns which of the possible states is on disk.
pub(super) fn found(engine: &DiskEngine, possible: &[Model]) -> Result<Model, Failure> {
    for model in possible {
        if *model == Model::read(engine, model.newest)? {
            return Ok(model.clone());
        }
    }
    panic!("none of the possible states is there");
}

/// Returns the storage that the next round finds.
pub(super) fn next_storage(storage: &Storage, power_fails: bool, random: &mut Random) -> Storage {
    if power_fails { storage.after_power_failure(random) } else { storage.after_exit() }
}

/// Makes something fail; returns whether that is the power.
pub(super) fn fail(storage: &Storage, at: u64, random: &mut Random) -> bool {
    let power_fails = random.below(2) == 0;
    let error = if random.below(2) == 0 { Fault::Error { at } } else { Fault::Broken { at } };
    storage.fail(if power_fails { Fault::PowerFailure { at } } else { error });
    power_fails
}

/// How many seeds are tried.
pub(super) fn seeds() -> u64 {
    let seeds = std::env::var("PINTLE_POWER_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    seeds.unwrap_or(60)
}

fn check_seed(seed: u64) {
    let mut random = Random::new(seed);
    let mut storage = Storage::with_random_faults(seed);
    let mut possible = vec![Model::default()];
    drop(DiskEngine::at(storage.clone(), None).unwrap());
    for round in 0..8 {
        // A failure can occur while the previous one is being repaired.
        let at = 1 + random.below(if round % 2 == 0 { 150 } else { 12 });
        let power_fails = fail(&storage, at, &mut random);
        match DiskEngine::at(storage.clone(), None) {
            Err(error) => assert!(storage.has_failed(), "seed {seed}, round {round}: {error:?}"),
            Ok(engine) => match found(&engine, &possible) {
                Err(error) => assert!(storage.has_failed(), "seed {seed}, {round}: {error:?}"),
                Ok(model) => possible = work(&engine, &storage, model, &mut random),
            },
        }
        storage = next_storage(&storage, power_fails, &mut random);
    }
    let engine = DiskEngine::at(storage.clone(), None);
    let engine = engine.unwrap_or_else(|e| panic!("seed {seed}, at the end: {e:?}"));
    found(&engine, &possible).unwrap();
    assert!(storage.is_consistent(), "seed {seed}");
}

#[test]
fn every_failure_leaves_a_possible_state() {
    (0..seeds()).for_each(check_seed);
}

/// A test of the test: storage that loses synchronised data is detected.
#[test]
fn lost_synchronisations_are_detected() {
    let storage = Storage::default();
    let mut random = Random::new(1);
    let states = |storage: &Storage, model, random: &mut Random| {
        work(&DiskEngine::at(storage.clone(), None).unwrap(), storage, model, random)
    };
    let before = states(&storage, Model::default(), &mut random).remove(0);
    let old = storage.after_exit();
    let after = states(&storage, before.clone(), &mut random).remove(0);
    let engine = DiskEngine::at(old, None).unwrap();
    assert_eq!(Model::read(&engine, before.newest).unwrap(), before);
    assert_ne!(Model::read(&engine, after.newest).unwrap(), after);
}

/// A test of the test: without a rewrite, data from a failed synchronisation is readable, and lost
/// after a power failure.
#[test]
fn failed_synchronisations_leave_inconsistent_storage() {
    let inconsistent = (0..50).filter(|seed| {
        let storage = Storage::with_random_faults(*seed);
        drop(DiskEngine::at(storage.clone(), None).unwrap());
        let mut random = Random::new(*seed);
        let engine = DiskEngine::at(storage.clone(), None).unwrap();
        storage.fail(Fault::Error { at: 1 + random.below(60) });
        let left = work_until_it_fails(&engine, &mut random);
        drop(engine);
        left && !storage.is_consistent()
    });
    assert!(inconsistent.count() > 0, "failed synchronisations are among the failures");
}

/// Commits batches until one fails; returns false if none does.
fn work_until_it_fails(engine: &DiskEngine, random: &mut Random) -> bool {
    let mut model = Model::default();
    (0..12).any(|_| {
        let batch = model.batch(random);
        model = model.after(&batch);
        engine.commit(&batch).is_err()
    })
}

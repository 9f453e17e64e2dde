//! Failing disks and power failures, by seed. Whatever of the unsynchronised writes is on the disk
//! afterwards, whole, torn or not at all, the medium holds the state of its last commit, or of the one
//! that was under way; and what it was once found to hold it holds for ever, also where a
//! synchronisation failed before and the power does later.
//!
//! `PINTLE_POWER_SEEDS=20000` runs more of them than the default.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::storage::{Chance, Fault, Storage};
use super::*;
use crate::Kind;
use crate::engine::{Batch, DiskEngine, Engine, Failure};

/// What a medium must hold.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    records: BTreeMap<Revision, Record>,
    floor: Revision,
    newest: Revision,
}

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

    fn batch(&self, chance: &mut Chance) -> Batch {
        let count = chance.below(12);
        let records = (1..=count).map(|n| record(Revision(self.newest.0 + n), chance)).collect();
        let garbage = self.records.keys().copied().filter(|_| chance.below(4) == 0).collect();
        let floor = (chance.below(3) == 0).then_some(self.newest);
        Batch { records, garbage, floor }
    }

    /// What a medium holds, as a model.
    fn read(engine: &DiskEngine, newest: Revision) -> Result<Self, Failure> {
        let mut records = BTreeMap::new();
        engine.scan(Revision(0), &mut |record| {
            records.insert(record.revision, record);
            Ok(true)
        })?;
        Ok(Self { records, floor: engine.floor()?, newest })
    }
}

fn record(revision: Revision, chance: &mut Chance) -> Record {
    let len = [0, 10, 700, 700, 700, 3000, 3000, 20_000][chance.below(8) as usize];
    let bytes = Bytes::from(vec![revision.0 as u8; len]);
    let key = key(&chance.below(10).to_string());
    Record { revision, key, kind: Kind::Updated, body: 0..len, bytes, note: None }
}

/// Commits batches until something fails or there are enough; returns every state that may be there
/// then, whatever is lost.
fn work(engine: &DiskEngine, storage: &Storage, model: Model, chance: &mut Chance) -> Vec<Model> {
    let mut model = model;
    for _ in 0..12 {
        if chance.below(20) == 0 && engine.shrink().is_err() {
            return vec![model];
        }
        let batch = model.batch(chance);
        let next = model.after(&batch);
        if engine.commit(&batch).is_ok() {
            model = next;
            continue;
        }
        let possible = vec![model, next];
        // As the store does that stays open; or else a supervisor starts the process again.
        if chance.below(2) == 0 || engine.reopen().is_err() {
            return possible;
        }
        assert!(storage.is_honest(), "what is read after a failure is on disk");
        let Ok(found) = found(engine, &possible) else { return possible };
        model = found;
    }
    vec![model]
}

/// Which of the states that are possible is there.
fn found(engine: &DiskEngine, possible: &[Model]) -> Result<Model, Failure> {
    for model in possible {
        if *model == Model::read(engine, model.newest)? {
            return Ok(model.clone());
        }
    }
    panic!("none of the possible states is there");
}

/// What comes between two rounds.
fn next_storage(storage: &Storage, power_fails: bool, chance: &mut Chance) -> Storage {
    if power_fails { storage.after_power_failure(chance) } else { storage.after_exit() }
}

fn check_seed(seed: u64) {
    let mut chance = Chance::new(seed);
    let mut storage = Storage::with_chance(seed);
    let mut possible = vec![Model::default()];
    drop(DiskEngine::at(storage.clone(), None).unwrap());
    for round in 0..8 {
        // A failure can come while the one before is repaired.
        let at = 1 + chance.below(if round % 2 == 0 { 150 } else { 12 });
        let power_fails = chance.below(2) == 0;
        let error = if chance.below(2) == 0 { Fault::Error { at } } else { Fault::Broken { at } };
        storage.fail(if power_fails { Fault::PowerFailure { at } } else { error });
        match DiskEngine::at(storage.clone(), None) {
            Err(error) => assert!(storage.has_failed(), "seed {seed}, round {round}: {error:?}"),
            Ok(engine) => match found(&engine, &possible) {
                Err(error) => assert!(storage.has_failed(), "seed {seed}, {round}: {error:?}"),
                Ok(model) => possible = work(&engine, &storage, model, &mut chance),
            },
        }
        storage = next_storage(&storage, power_fails, &mut chance);
    }
    let engine = DiskEngine::at(storage.clone(), None);
    let engine = engine.unwrap_or_else(|e| panic!("seed {seed}, at the end: {e:?}"));
    found(&engine, &possible).unwrap();
    assert!(storage.is_honest(), "seed {seed}");
}

#[test]
fn whatever_a_failure_leaves() {
    let seeds = std::env::var("PINTLE_POWER_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    (0..seeds.unwrap_or(60)).for_each(check_seed);
}

/// The test can fail: storage that loses what it synchronised is found out.
#[test]
fn lost_synchronisations_are_found() {
    let storage = Storage::default();
    let mut chance = Chance::new(1);
    let states = |storage: &Storage, model, chance: &mut Chance| {
        work(&DiskEngine::at(storage.clone(), None).unwrap(), storage, model, chance)
    };
    let before = states(&storage, Model::default(), &mut chance).remove(0);
    let old = storage.after_exit();
    let after = states(&storage, before.clone(), &mut chance).remove(0);
    let engine = DiskEngine::at(old, None).unwrap();
    assert_eq!(Model::read(&engine, before.newest).unwrap(), before);
    assert_ne!(Model::read(&engine, after.newest).unwrap(), after);
}

/// The test can fail: without being written again, what a failed synchronisation left is read, and gone
/// after a power failure.
#[test]
fn failed_synchronisations_lie() {
    let lies = (0..50).filter(|seed| {
        let storage = Storage::with_chance(*seed);
        drop(DiskEngine::at(storage.clone(), None).unwrap());
        let mut chance = Chance::new(*seed);
        let engine = DiskEngine::at(storage.clone(), None).unwrap();
        storage.fail(Fault::Error { at: 1 + chance.below(60) });
        let left = work_until_it_fails(&engine, &mut chance);
        drop(engine);
        left && !storage.is_honest()
    });
    assert!(lies.count() > 0, "failed synchronisations are among the failures");
}

/// Commits batches until one fails; false if none does.
fn work_until_it_fails(engine: &DiskEngine, chance: &mut Chance) -> bool {
    let mut model = Model::default();
    (0..12).any(|_| {
        let batch = model.batch(chance);
        model = model.after(&batch);
        engine.commit(&batch).is_err()
    })
}

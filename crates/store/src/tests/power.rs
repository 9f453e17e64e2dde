//! Power failures, by seed: whatever of the unsynchronised writes is on the disk afterwards, whole,
//! torn or not at all, the medium holds the state of its last commit, or of the one that was under way.
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

/// Commits batches until the power fails or there are enough; returns what must be there then, and
/// what may be instead.
fn work(storage: &Storage, model: &mut Model, chance: &mut Chance) -> Option<Model> {
    let Ok(mut engine) = DiskEngine::over(storage.clone()) else { return Some(model.clone()) };
    for _ in 0..12 {
        if chance.below(20) == 0 && engine.shrink().is_err() {
            return Some(model.clone());
        }
        let batch = model.batch(chance);
        let next = model.after(&batch);
        if engine.commit(&batch).is_err() {
            return Some(next);
        }
        *model = next;
    }
    None
}

fn check_seed(seed: u64) {
    let mut chance = Chance::new(seed);
    let mut model = Model::default();
    let mut storage = Storage::default();
    drop(DiskEngine::over(storage.clone()).unwrap());
    // The second failure can come while the first is repaired.
    for round in 0..4 {
        let at = 1 + chance.below(if round % 2 == 0 { 150 } else { 12 });
        storage.fail(Fault::PowerFailure { at });
        let other = work(&storage, &mut model, &mut chance);
        storage = storage.after_power_failure(&mut chance);
        let engine = DiskEngine::over(storage.after_exit());
        let engine = engine.unwrap_or_else(|e| panic!("seed {seed}, round {round}: {e:?}"));
        let found = |newest| Model::read(&engine, newest).unwrap();
        if let Some(other) = other.filter(|other| *other == found(other.newest)) {
            model = other;
        }
        assert!(model == found(model.newest), "seed {seed}, round {round}");
    }
}

#[test]
fn whatever_the_power_failure_leaves() {
    let seeds = std::env::var("PINTLE_POWER_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    (0..seeds.unwrap_or(60)).for_each(check_seed);
}

/// The test can fail: storage that loses what it synchronised is found out.
#[test]
fn lost_synchronisations_are_found() {
    let storage = Storage::default();
    let mut model = Model::default();
    let mut chance = Chance::new(1);
    let before = {
        work(&storage, &mut model, &mut chance);
        storage.after_exit()
    };
    work(&storage, &mut model, &mut chance);
    let engine = DiskEngine::over(before).unwrap();
    assert_ne!(model, Model::read(&engine, model.newest).unwrap());
}

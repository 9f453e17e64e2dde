//! Failing disks and power failures, by seed, while a store is encrypted in place, changes its key,
//! and is decrypted. No committed write is lost. After the encryption no plain value is in any
//! image of a file: the one that is read, the one on disk, the writes that are not on disk yet, and
//! the replacement that a crash leaves during a conversion.
//!
//! `PINTLE_POWER_SEEDS=20000` runs more seeds than the default.

use bytes::Bytes;

use super::power::{Model, PLAIN, fail, found, next_storage, seeds, work};
use super::storage::{Random, Storage};
use super::*;
use crate::engine::{DiskEngine, Engine};
use crate::{TransformError, Transformed, Transformer};

/// Writes with one key and reads with several. Key 0 leaves values plain.
#[derive(Debug)]
pub(super) struct Keyed {
    writes: u8,
    reads: &'static [u8],
}

const PREFIX: &[u8] = b"k8s:enc:";

impl Keyed {
    /// Returns a transformer with these keys, as the engine takes it.
    pub(super) fn transformer(writes: u8, reads: &'static [u8]) -> Option<Arc<dyn Transformer>> {
        Some(Arc::new(Self { writes, reads }))
    }
}

/// Encrypts a value, or decrypts it: a stream of bytes for the key and the path is added to it.
fn mix(key: u8, path: &[u8], value: &[u8]) -> Vec<u8> {
    let mut stream = Random::new(u64::from(crc32fast::hash(path)) << 8 | u64::from(key));
    value.iter().map(|byte| byte ^ stream.below(256) as u8).collect()
}

impl Transformer for Keyed {
    fn to_storage(&self, _: &Key, path: &[u8], value: Bytes) -> Result<Bytes, TransformError> {
        if self.writes == 0 {
            return Ok(value);
        }
        let sum = crc32fast::hash(&value).to_be_bytes();
        Ok([PREFIX, &[self.writes], &sum, &mix(self.writes, path, &value)].concat().into())
    }

    fn to_value(&self, _: &Key, path: &[u8], stored: Bytes) -> Result<Transformed, TransformError> {
        let refuse = |why: &str| Err(TransformError(why.to_owned()));
        let (key, value) = match stored.strip_prefix(PREFIX) {
            None => (0, stored),
            Some([key, s0, s1, s2, s3, mixed @ ..]) => {
                let value = Bytes::from(mix(*key, path, mixed));
                if crc32fast::hash(&value).to_be_bytes() != [*s0, *s1, *s2, *s3] {
                    return refuse("message authentication failed");
                }
                (*key, value)
            }
            Some(_) => return refuse("too short"),
        };
        if !self.reads.contains(&key) {
            return refuse("no matching prefix found");
        }
        Ok(Transformed { value, is_stale: key != self.writes })
    }

    fn fingerprint(&self) -> u64 {
        100 + u64::from(self.writes)
    }
}

/// A process with another key opens the file, reads nothing and changes nothing.
fn check_wrong_key(storage: &Storage, possible: &[Model]) {
    let is_empty = possible.iter().any(|model| model.records.is_empty());
    let engine = DiskEngine::at(storage.clone(), Keyed::transformer(9, &[9])).unwrap();
    let read = Model::read(&engine, possible[0].newest);
    assert!(is_empty || read.is_err(), "a process with another key reads nothing");
}

fn check_seed(seed: u64) {
    let mut random = Random::new(seed);
    let mut storage = Storage::with_random_faults(seed);
    let mut possible = vec![Model::default()];
    let mut is_plain = true;
    drop(DiskEngine::at(storage.clone(), None).unwrap());
    for round in 0..8 {
        if random.below(3) == 0 {
            check_wrong_key(&storage, &possible);
        }
        let key = random.below(3) as u8;
        // A failure can occur during a conversion, and during the conversion that is made after it.
        let limit = [400, 40, 12][random.below(3) as usize];
        let at = 1 + random.below(limit);
        let power_fails = fail(&storage, at, &mut random);
        let failed = |error: &dyn std::fmt::Debug| {
            assert!(storage.has_failed(), "seed {seed}, round {round}: {error:?}");
        };
        is_plain |= key == 0;
        match DiskEngine::at(storage.clone(), Keyed::transformer(key, &[0, 1, 2])) {
            Err(error) => failed(&error),
            Ok(engine) => match found(&engine, &possible) {
                Err(error) => failed(&error),
                Ok(model) => match engine.convert() {
                    Err(error) => failed(&error),
                    Ok(()) => {
                        is_plain = key == 0;
                        assert!(is_plain || !storage.holds(PLAIN), "seed {seed}, round {round}");
                        possible = work(&engine, &storage, model, &mut random);
                    }
                },
            },
        }
        assert!(is_plain || !storage.holds(PLAIN), "seed {seed}, after round {round}");
        storage = next_storage(&storage, power_fails, &mut random);
    }
    let engine = DiskEngine::at(storage.clone(), Keyed::transformer(1, &[0, 1, 2]));
    let engine = engine.unwrap_or_else(|e| panic!("seed {seed}, at the end: {e:?}"));
    let model = found(&engine, &possible).unwrap();
    engine.convert().unwrap();
    assert_eq!(Model::read(&engine, model.newest).unwrap(), model, "seed {seed}");
    assert!(!storage.holds(PLAIN), "seed {seed}, at the end");
    assert!(storage.is_consistent(), "seed {seed}");
}

#[test]
fn every_failure_leaves_a_possible_encrypted_state() {
    (0..seeds()).for_each(check_seed);
}

/// A test of the test: without a conversion plain values stay in the file, also of removed records.
#[test]
fn plain_values_are_detected() {
    let storage = Storage::default();
    let mut random = Random::new(1);
    let engine = DiskEngine::at(storage.clone(), None).unwrap();
    let model = work(&engine, &storage, Model::default(), &mut random).remove(0);
    drop(engine);
    let engine = DiskEngine::at(storage.clone(), Keyed::transformer(1, &[0, 1])).unwrap();
    let garbage = model.records.keys().copied().collect();
    let batch = crate::engine::Batch { garbage, ..crate::engine::Batch::default() };
    engine.commit(&batch).unwrap();
    assert!(storage.holds(PLAIN));
    engine.convert().unwrap();
    assert!(!storage.holds(PLAIN));
}

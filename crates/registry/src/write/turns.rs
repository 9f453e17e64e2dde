//! Turns: who loses a race for an object waits for those who lost before. So each of many writers gets to
//! write, and a fight of many costs no more than as many writes.
//!
//! Invariants: a first attempt waits for nobody; nobody waits longer than [`PATIENCE`], for who has the
//! turn may be waiting for a webhook that writes the same object.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::time::Duration;

use pintle_meta::Status;
use tokio::sync::{Mutex, MutexGuard};

use crate::Registry;
use crate::request::Target;

/// Objects share this many queues; those that share one only wait a little longer.
const QUEUES: usize = 64;
/// Longer than many commits take, shorter than webhooks are waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// The queues of a registry.
pub(crate) struct Turns([Mutex<()>; QUEUES]);

/// The right to the next attempt, given back when dropped.
pub(crate) type Turn<'a> = MutexGuard<'a, ()>;

impl Turns {
    pub(crate) fn new() -> Self {
        Self([const { Mutex::const_new(()) }; QUEUES])
    }

    fn queue(&self, target: &Target) -> &Mutex<()> {
        let Target { resource, namespace, name, .. } = target;
        let object = (resource.resource.resource.as_str(), namespace.as_str(), name.as_str());
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(object);
        let number = usize::try_from(hash % QUEUES as u64).unwrap_or_default();
        &self.0[number]
    }
}

impl Registry {
    /// A turn at an object after a lost race: the next attempt sees who won. Who has one keeps it.
    pub(super) async fn turn<'a>(
        &'a self,
        target: &Target,
        held: Option<Turn<'a>>,
    ) -> Result<Option<Turn<'a>>, Status> {
        let turn = match held {
            Some(turn) => Some(turn),
            None => tokio::time::timeout(PATIENCE, self.turns.queue(target).lock()).await.ok(),
        };
        self.catch_up().await?;
        Ok(turn)
    }
}

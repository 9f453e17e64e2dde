//! The queues of writes with postings.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use parking_lot::Mutex;

use super::QueuedWrite;
use crate::write::holding::HoldRequest;

/// Namespaces share this many queues. Sharing a queue means only that the writes of both namespaces
/// are committed in the same groups.
const QUEUES: usize = 64;

/// The queues of a registry.
pub(crate) struct PostingQueues([Arc<Mutex<PostingQueue>>; QUEUES]);

#[derive(Default)]
pub(crate) struct PostingQueue {
    pub(super) waiting: Vec<QueuedWrite>,
    /// Who wants to hold the queue.
    pub(in crate::write) holds: Vec<HoldRequest>,
    /// Whether a worker runs.
    pub(super) has_worker: bool,
}

impl PostingQueues {
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| Arc::default()))
    }

    pub(super) fn of(&self, namespace: &str) -> &Arc<Mutex<PostingQueue>> {
        &self.0[number(namespace)]
    }

    /// The queues of several namespaces, each once and in order.
    pub(crate) fn of_all(
        &self,
        namespaces: &[&str],
    ) -> impl Iterator<Item = &Arc<Mutex<PostingQueue>>> {
        let numbers: BTreeSet<usize> = namespaces.iter().map(|one| number(one)).collect();
        numbers.into_iter().map(|number| &self.0[number])
    }
}

/// The number of a namespace's queue.
fn number(namespace: &str) -> usize {
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(namespace);
    usize::try_from(hash % QUEUES as u64).unwrap_or_default()
}

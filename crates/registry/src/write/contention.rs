//! First-in-first-out queues of writers that retry after a conflict. Writers of one object retry
//! one after the other, so each of them makes progress and few attempts fail.
//!
//! Invariants: a first attempt never queues; no writer queues longer than [`QUEUE_TIMEOUT`],
//! because the writer ahead may be waiting for a webhook that itself writes the object.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::time::Duration;

use pintle_meta::Status;
use tokio::sync::{Mutex, MutexGuard};

use crate::Registry;
use crate::request::Target;

/// How often an unconditional write is tried while it conflicts. Each conflict means that another
/// write was committed, so there is progress; this is only a safety limit.
pub(super) const ATTEMPTS_MAX: usize = 100;
/// All objects share this many queues. If two objects share a queue, their writers only wait a
/// little longer.
const QUEUES: usize = 64;
/// Longer than many commits take, shorter than the default timeout of webhooks.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(5);

/// The queues of a registry.
pub(crate) struct RetryQueues([Mutex<()>; QUEUES]);

/// The head of a queue: its holder may retry. Dropping it lets the next writer retry.
pub(crate) type QueueHead<'a> = MutexGuard<'a, ()>;

impl RetryQueues {
    pub(crate) fn new() -> Self {
        Self([const { Mutex::const_new(()) }; QUEUES])
    }

    fn of(&self, target: &Target) -> &Mutex<()> {
        let Target { resource, namespace, name, .. } = target;
        let object = (resource.resource.resource.as_str(), namespace.as_str(), name.as_str());
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(object);
        let number = usize::try_from(hash % QUEUES as u64).unwrap_or_default();
        &self.0[number]
    }
}

impl Registry {
    /// Queues a writer after a conflict, then waits for the state that it conflicted with. A writer
    /// at the head of its queue stays there.
    pub(super) async fn queue_retry<'a>(
        &'a self,
        target: &Target,
        held: Option<QueueHead<'a>>,
    ) -> Result<Option<QueueHead<'a>>, Status> {
        let head = match held {
            Some(head) => Some(head),
            None => {
                tokio::time::timeout(QUEUE_TIMEOUT, self.retry_queues.of(target).lock()).await.ok()
            }
        };
        self.catch_up().await?;
        Ok(head)
    }
}

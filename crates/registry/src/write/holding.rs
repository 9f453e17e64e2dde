//! Holding back writes with postings, for a change that depends on the state after all of them.
//!
//! The writes of a busy namespace follow each other without a pause, and each may change the shared
//! object. So a writer that computes its change from all of the namespace, such as a count for a
//! quota, would conflict with one of them again and again.

use std::time::Duration;

use pintle_meta::Status;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::Registry;

/// The longest hold. The holder's write may wait for a webhook that itself writes to the namespace.
pub const HOLD_MAX: Duration = Duration::from_secs(5);

/// The namespace of postings to objects of the cluster, whose queue can get writes of any namespace.
const CLUSTER: &str = "";

/// A request to hold a queue.
pub(super) struct HoldRequest(oneshot::Sender<QueueHold>);

/// A queue is held until this is dropped.
struct QueueHold(#[expect(dead_code, reason = "dropping it ends the hold")] oneshot::Sender<()>);

/// Writes with postings in a namespace are held back until this is dropped, or for [`HOLD_MAX`].
/// All of them that were begun before are committed or have failed, and reads see them.
pub struct PostingHold(#[expect(dead_code, reason = "dropping them ends the hold")] Vec<QueueHold>);

impl HoldRequest {
    /// Holds the queue: its worker waits.
    pub(super) async fn hold(self) {
        let (holder, ended) = oneshot::channel();
        if self.0.send(QueueHold(holder)).is_ok() && timeout(HOLD_MAX, ended).await.is_err() {
            tracing::warn!("a count for a quota takes long; writes of its namespace continue");
        }
    }
}

impl Registry {
    /// Holds back the writes with postings in a namespace.
    ///
    /// # Errors
    /// If the server is stopping.
    pub async fn hold_postings(&self, namespace: &str) -> Result<PostingHold, Status> {
        // In the order of the queues, so that two holders do not wait for each other.
        let mut holds = Vec::new();
        for queue in self.posting_queues.of_all(&[namespace, CLUSTER]) {
            let (request, held) = oneshot::channel();
            self.queue_posting(queue, |waiting| waiting.holds.push(HoldRequest(request)));
            holds.push(held.await.map_err(|_| Status::internal("the server is stopping"))?);
        }
        Ok(PostingHold(holds))
    }
}

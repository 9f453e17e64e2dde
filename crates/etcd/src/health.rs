//! Whether etcd is well, and how far it is for certain: the one linearizable read that all share.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pintle_store::{Error as StoreError, Revision};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::timeout;

use crate::error::Error;
use crate::horizon::Horizon;
use crate::reading::Reading;
use crate::translation::revision;

/// How many wait for a read at most before others wait to wait.
const WAITERS_MAX: usize = 1024;

/// How often etcd is asked whether it is well, where nobody asks for something else.
const IDLE: Duration = Duration::from_secs(2);

/// How often the size of the database is asked for; upstream's --etcd-db-metric-poll-interval.
const SIZE_INTERVAL: Duration = Duration::from_secs(30);

/// How long the answer may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is known of etcd.
#[derive(Debug, Default)]
pub(crate) struct Health {
    state: Mutex<State>,
    history_lost: Notify,
}

#[derive(Debug, Default)]
struct State {
    is_closed: bool,
    failure: Option<String>,
    disk_bytes: Option<u64>,
}

impl Health {
    /// Whether writes are taken; the error is the reason why not.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.open()?;
        match &self.state.lock().failure {
            Some(reason) => Err(StoreError::Failed { reason: reason.clone() }),
            None => Ok(()),
        }
    }

    /// Whether the store is open, whatever etcd does.
    pub(crate) fn open(&self) -> Result<(), StoreError> {
        if self.state.lock().is_closed { Err(StoreError::Closed) } else { Ok(()) }
    }

    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
    }

    pub(crate) fn failed(&self, error: &Error) {
        self.state.lock().failure = Some(error.to_string());
    }

    fn is_well(&self) {
        self.state.lock().failure = None;
    }

    pub(crate) fn disk_bytes(&self) -> Option<u64> {
        self.state.lock().disk_bytes
    }

    /// Resolves when a read was older than what followers have.
    pub(crate) async fn history_lost(&self) {
        self.history_lost.notified().await;
    }
}

/// Those who wait for a read that begins after they came.
pub(crate) type Waiter = oneshot::Sender<Result<Revision, Error>>;

/// The way to who reads.
pub(crate) fn waiters() -> (mpsc::Sender<Waiter>, mpsc::Receiver<Waiter>) {
    mpsc::channel(WAITERS_MAX)
}

/// Reads linearizably whenever somebody waits for it, one read for all who came before it began; and now
/// and then by itself, to know whether etcd is well. Runs until nobody can ask any more.
pub(crate) async fn run(
    reading: Reading,
    horizon: Arc<Horizon>,
    health: Arc<Health>,
    mut waiters: mpsc::Receiver<Waiter>,
) {
    loop {
        let mut waiting = Vec::new();
        match timeout(IDLE, waiters.recv()).await {
            Ok(None) => return,
            Ok(Some(waiter)) => waiting.push(waiter),
            Err(_) => {}
        }
        while let Ok(waiter) = waiters.try_recv() {
            waiting.push(waiter);
        }
        let before = horizon.head();
        let read = timeout(PATIENCE, reading.header()).await;
        let expired = || Err(Error::Lost(format!("etcd does not answer in {PATIENCE:?}")));
        let fresh = read.unwrap_or_else(|_| expired()).map(|header| revision(header.revision));
        match &fresh {
            Ok(fresh) => {
                health.is_well();
                if !waiting.is_empty() {
                    horizon.want(*fresh);
                }
                if *fresh < before {
                    health.history_lost.notify_one();
                }
            }
            Err(error) => health.failed(error),
        }
        for waiter in waiting {
            let _ = waiter.send(fresh.clone());
        }
    }
}

/// Asks for the size of the database now and then, for ever.
pub(crate) async fn measure(reading: Reading, health: Arc<Health>) {
    loop {
        if let Ok(status) = reading.etcd.status().await {
            health.state.lock().disk_bytes = u64::try_from(status.db_size).ok();
        }
        tokio::time::sleep(SIZE_INTERVAL).await;
    }
}

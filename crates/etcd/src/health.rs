//! Whether etcd is well, and how far it is for certain: the one linearizable read that all share.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pintle_store::{Error as StoreError, Revision};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};

use crate::error::Error;
use crate::horizon::Horizon;
use crate::reading::Reading;
use crate::translation::revision;

/// How many wait for a read at most before others wait to wait.
const WAITERS_MAX: usize = 1024;

/// How often etcd is asked whether it is well, where nobody asks for something else.
const IDLE: Duration = Duration::from_secs(2);

/// How long a read may take at least until it is tried again.
const READ_PATIENCE: Duration = Duration::from_secs(2);

/// How long a reader waits while reads fail, and how soon they are tried again.
const WAIT_MAX: Duration = Duration::from_secs(10);
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// What is known of etcd.
#[derive(Debug)]
pub(crate) struct Health {
    /// How long a read may take until etcd is not well, and until the store is not ready.
    well_patience: Duration,
    ready_patience: Duration,
    state: Mutex<State>,
    history_lost: Notify,
}

#[derive(Debug, Default)]
struct State {
    is_closed: bool,
    /// Since when a read is under way.
    asked: Option<Instant>,
    failure: Option<String>,
    disk_bytes: Option<u64>,
}

impl Health {
    pub(crate) fn new(well_patience: Duration, ready_patience: Duration) -> Self {
        let (state, history_lost) = (Mutex::default(), Notify::new());
        Self { well_patience, ready_patience, state, history_lost }
    }

    /// Whether writes are taken; the error is the reason why not.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.answers_in(self.well_patience)
    }

    /// Whether they are taken so soon that the store is ready.
    pub(crate) fn ready(&self) -> Result<(), StoreError> {
        self.answers_in(self.ready_patience)
    }

    fn answers_in(&self, patience: Duration) -> Result<(), StoreError> {
        self.open()?;
        let state = self.state.lock();
        let is_late = state.asked.is_some_and(|since| since.elapsed() > patience);
        let late = is_late.then(|| format!("etcd does not answer in {patience:?}"));
        match state.failure.clone().or(late) {
            Some(reason) => Err(StoreError::Failed { reason }),
            None => Ok(()),
        }
    }

    /// How long a read may take.
    fn read_patience(&self) -> Duration {
        READ_PATIENCE.max(self.well_patience).max(self.ready_patience)
    }

    fn asks(&self) {
        self.state.lock().asked = Some(Instant::now());
    }

    /// Whether the store is open, whatever etcd does.
    pub(crate) fn open(&self) -> Result<(), StoreError> {
        if self.state.lock().is_closed { Err(StoreError::Closed) } else { Ok(()) }
    }

    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
    }

    pub(crate) fn failed(&self, error: &Error) {
        let mut state = self.state.lock();
        (state.asked, state.failure) = (None, Some(error.to_string()));
    }

    fn is_well(&self) {
        let mut state = self.state.lock();
        (state.asked, state.failure) = (None, None);
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
    let mut waiting: Vec<(Waiter, Instant)> = Vec::new();
    loop {
        if waiting.is_empty() {
            match timeout(IDLE, waiters.recv()).await {
                Ok(None) => return,
                Ok(Some(waiter)) => waiting.push((waiter, Instant::now())),
                Err(_) => {}
            }
        }
        while let Ok(waiter) = waiters.try_recv() {
            waiting.push((waiter, Instant::now()));
        }
        let before = horizon.head();
        let patience = health.read_patience();
        health.asks();
        let read = timeout(patience, reading.header()).await;
        let expired = || Err(Error::Lost(format!("etcd does not answer in {patience:?}")));
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
        waiting = answer(waiting, &fresh);
        if !waiting.is_empty() {
            sleep(RETRY_PAUSE).await;
        }
    }
}

/// Answers those who wait; gives those who wait on, for a read that failed is tried again: while a leader
/// is elected, say.
fn answer(
    waiting: Vec<(Waiter, Instant)>,
    fresh: &Result<Revision, Error>,
) -> Vec<(Waiter, Instant)> {
    let mut left = Vec::new();
    for (waiter, since) in waiting {
        if fresh.is_ok() || since.elapsed() >= WAIT_MAX {
            let _ = waiter.send(fresh.clone()); // who has gone away need not know
        } else if !waiter.is_closed() {
            left.push((waiter, since));
        }
    }
    left
}

/// Asks for the size of the database at every interval, for ever.
pub(crate) async fn measure(reading: Reading, health: Arc<Health>, interval: Duration) {
    loop {
        if let Ok(status) = reading.etcd.status().await {
            health.state.lock().disk_bytes = u64::try_from(status.db_size).ok();
        }
        sleep(interval).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_late_answer_is_no_sign_of_health() {
        let health = Health::new(Duration::from_secs(4), Duration::from_secs(1));
        let is_well = || (health.check().is_ok(), health.ready().is_ok());
        assert_eq!(is_well(), (true, true), "nothing speaks against it");
        health.asks();
        sleep(Duration::from_secs(2)).await;
        assert_eq!(is_well(), (true, false));
        sleep(Duration::from_secs(3)).await;
        assert_eq!(is_well(), (false, false));
        health.is_well();
        assert_eq!(is_well(), (true, true));
        health.failed(&Error::Lost("no leader".to_owned()));
        assert_eq!(is_well(), (false, false));
        health.close();
        assert_eq!(health.ready(), Err(StoreError::Closed));
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_not_failed_by_one_read() {
        let failure = || Err(Error::Lost("no leader".to_owned()));
        let (early, mut answered_early) = oneshot::channel();
        let waiting = answer(vec![(early, Instant::now())], &failure());
        assert_eq!(waiting.len(), 1, "it waits on");
        sleep(WAIT_MAX).await;
        let (late, mut answered_late) = oneshot::channel();
        let (gone, _) = oneshot::channel();
        let further = [(late, Instant::now()), (gone, Instant::now())];
        let waiting = answer(waiting.into_iter().chain(further).collect(), &failure());
        assert_eq!(answered_early.try_recv(), Ok(failure()), "it has waited long enough");
        assert_eq!(waiting.len(), 1, "who has gone away is forgotten");
        assert!(answer(waiting, &Ok(Revision(7))).is_empty());
        assert_eq!(answered_late.try_recv(), Ok(Ok(Revision(7))));
    }
}

//! The health of etcd and of the store's tasks, and the linearizable read of etcd's newest revision
//! that all fresh reads share.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pintle_store::{Error as StoreError, Revision};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep, timeout};

use crate::error::Error;
use crate::horizon::Horizon;
use crate::reading::Reading;
use crate::translation::revision;

/// The most waiters for a read; further ones wait to register.
const WAITERS_MAX: usize = 1024;

/// How often etcd's health is checked while there are no fresh reads.
const IDLE: Duration = Duration::from_secs(2);

/// The shortest timeout of a read, after which the read is repeated.
const READ_TIMEOUT_MIN: Duration = Duration::from_secs(2);

/// How long a fresh read waits while reads fail, and the pause between them.
const WAIT_MAX: Duration = Duration::from_secs(10);
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// The health of etcd and of the store's tasks.
#[derive(Debug)]
pub(crate) struct Health {
    /// How long a read may take before `check` fails, and before `ready` fails.
    check_timeout: Duration,
    ready_timeout: Duration,
    state: Mutex<State>,
    history_lost: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Why the store takes no writes any more: it is closed, or one of its tasks panicked.
    ended: Option<StoreError>,
    /// The start of the read in progress.
    read_since: Option<Instant>,
    failure: Option<String>,
    disk_bytes: Option<u64>,
}

impl Health {
    pub(crate) fn new(check_timeout: Duration, ready_timeout: Duration) -> Self {
        let (state, history_lost) = (Mutex::default(), Notify::new());
        Self { check_timeout, ready_timeout, state, history_lost }
    }

    /// Returns an error with the reason if the store has ended, if the last read of etcd failed, or
    /// if the current read takes too long.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        self.answers_in(self.check_timeout)
    }

    /// As [`check`](Self::check), with the timeout of readiness.
    pub(crate) fn ready(&self) -> Result<(), StoreError> {
        self.answers_in(self.ready_timeout)
    }

    fn answers_in(&self, limit: Duration) -> Result<(), StoreError> {
        self.open()?;
        let state = self.state.lock();
        let is_late = state.read_since.is_some_and(|since| since.elapsed() > limit);
        let late = is_late.then(|| format!("etcd does not answer in {limit:?}"));
        match state.failure.clone().or(late) {
            Some(reason) => Err(StoreError::Failed { reason }),
            None => Ok(()),
        }
    }

    /// Returns how long a read may take.
    fn read_timeout(&self) -> Duration {
        READ_TIMEOUT_MIN.max(self.check_timeout).max(self.ready_timeout)
    }

    fn read_started(&self) {
        self.state.lock().read_since = Some(Instant::now());
    }

    /// Returns an error with the reason if the store has ended.
    pub(crate) fn open(&self) -> Result<(), StoreError> {
        self.state.lock().ended.clone().map_or(Ok(()), Err)
    }

    pub(crate) fn close(&self) {
        self.end(StoreError::Closed);
    }

    fn end(&self, why: StoreError) {
        self.state.lock().ended.get_or_insert(why);
    }

    fn panicked(&self, panic: &JoinError) {
        let reason = "a task of the store on etcd panicked; the server must be started again";
        tracing::error!(%panic, "{reason}");
        self.end(StoreError::Failed { reason: reason.to_owned() });
    }

    pub(crate) fn read_failed(&self, error: &Error) {
        let mut state = self.state.lock();
        (state.read_since, state.failure) = (None, Some(error.to_string()));
    }

    fn read_succeeded(&self) {
        let mut state = self.state.lock();
        (state.read_since, state.failure) = (None, None);
    }

    pub(crate) fn disk_bytes(&self) -> Option<u64> {
        self.state.lock().disk_bytes
    }

    /// Waits until a read returns an older revision than followers have.
    pub(crate) async fn history_lost(&self) {
        self.history_lost.notified().await;
    }
}

/// Waits for the store's tasks, which end when this future is dropped. After one of them panicked,
/// followers may get nothing more, so the store is unhealthy for good.
pub(crate) async fn supervise(mut tasks: JoinSet<()>, health: Arc<Health>) {
    while let Some(ended) = tasks.join_next().await {
        if let Err(panic) = ended.as_ref()
            && panic.is_panic()
        {
            health.panicked(panic);
        }
    }
}

/// A waiter for a read that starts after the waiter registered.
pub(crate) type Waiter = oneshot::Sender<Result<Revision, Error>>;

/// Makes the channel for waiters.
pub(crate) fn waiters() -> (mpsc::Sender<Waiter>, mpsc::Receiver<Waiter>) {
    mpsc::channel(WAITERS_MAX)
}

/// Makes a linearizable read whenever there are waiters, one for all that registered before it
/// starts, and otherwise regularly, to check etcd's health. Runs until the store is dropped.
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
        let limit = health.read_timeout();
        health.read_started();
        let read = timeout(limit, reading.header()).await;
        let expired = || Err(Error::Lost(format!("etcd does not answer in {limit:?}")));
        let fresh = read.unwrap_or_else(|_| expired()).map(|header| revision(header.revision));
        match &fresh {
            Ok(fresh) => {
                health.read_succeeded();
                if !waiting.is_empty() {
                    horizon.want(*fresh);
                }
                if *fresh < before {
                    health.history_lost.notify_one();
                }
            }
            Err(error) => health.read_failed(error),
        }
        waiting = answer(waiting, &fresh);
        if !waiting.is_empty() {
            sleep(RETRY_PAUSE).await;
        }
    }
}

/// Answers the waiters; returns those that wait for another read after a failed one, for instance
/// while a leader is elected.
fn answer(
    waiting: Vec<(Waiter, Instant)>,
    fresh: &Result<Revision, Error>,
) -> Vec<(Waiter, Instant)> {
    let mut left = Vec::new();
    for (waiter, since) in waiting {
        if fresh.is_ok() || since.elapsed() >= WAIT_MAX {
            let _ = waiter.send(fresh.clone()); // a cancelled waiter does not matter
        } else if !waiter.is_closed() {
            left.push((waiter, since));
        }
    }
    left
}

/// Reads the size of the database at every interval, until the task is aborted.
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
    async fn a_slow_read_fails_the_checks() {
        let health = Health::new(Duration::from_secs(4), Duration::from_secs(1));
        let checks = || (health.check().is_ok(), health.ready().is_ok());
        assert_eq!(checks(), (true, true), "no read has failed");
        health.read_started();
        sleep(Duration::from_secs(2)).await;
        assert_eq!(checks(), (true, false));
        sleep(Duration::from_secs(3)).await;
        assert_eq!(checks(), (false, false));
        health.read_succeeded();
        assert_eq!(checks(), (true, true));
        health.read_failed(&Error::Lost("no leader".to_owned()));
        assert_eq!(checks(), (false, false));
        health.close();
        assert_eq!(health.ready(), Err(StoreError::Closed));
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiter_survives_a_failed_read() {
        let failure = || Err(Error::Lost("no leader".to_owned()));
        let (early, mut answered_early) = oneshot::channel();
        let waiting = answer(vec![(early, Instant::now())], &failure());
        assert_eq!(waiting.len(), 1, "it waits for the next read");
        sleep(WAIT_MAX).await;
        let (late, mut answered_late) = oneshot::channel();
        let (gone, _) = oneshot::channel();
        let further = [(late, Instant::now()), (gone, Instant::now())];
        let waiting = answer(waiting.into_iter().chain(further).collect(), &failure());
        assert_eq!(answered_early.try_recv(), Ok(failure()), "it has waited long enough");
        assert_eq!(waiting.len(), 1, "a cancelled waiter is dropped");
        assert!(answer(waiting, &Ok(Revision(7))).is_empty());
        assert_eq!(answered_late.try_recv(), Ok(Ok(Revision(7))));
    }
}

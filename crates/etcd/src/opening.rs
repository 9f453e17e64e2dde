//! [`EtcdOpening`]: a store on etcd before its state is read. It waits for an etcd that starts at
//! the same time as the server.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pintle_grpc::Code;
use pintle_store::{
    BoxFuture, Error as StoreError, Follower, Layout, Opening, Revision, Store, StoredState,
};
use tokio::time::{Instant, sleep, timeout};

use crate::assembly::{Progress, progress_of};
use crate::backup::EtcdState;
use crate::client::{Client, Etcd};
use crate::error::Error;
use crate::horizon::Horizon;
use crate::reading::Reading;
use crate::store::{Begin, EtcdStore, Options};
use crate::translation::{Translation, revision};

/// How long opening may take before the state is read: as long as a kube-apiserver waits (the
/// `dialTimeout` of upstream's `storagebackend/factory/etcd3.go`).
const OPEN_TIMEOUT: Duration = Duration::from_secs(20);

/// The pause before another attempt.
const PAUSE: Duration = Duration::from_millis(200);

/// After how long a wait is logged, first and then again.
const FIRST_REPORT: Duration = Duration::from_secs(1);
const REPORT_INTERVAL: Duration = Duration::from_secs(5);

/// A store on etcd whose state is not read yet.
pub struct EtcdOpening {
    reading: Reading,
    options: Options,
    begin: Begin,
}

/// Connects to etcd and reads its oldest and newest revisions.
pub async fn open(options: &Options, layout: Arc<dyn Layout>) -> Result<EtcdOpening, Error> {
    let etcd = Arc::new(Client::new(&options.endpoints, &options.tls, &options.measures)?);
    EtcdOpening::new(etcd, options.clone(), layout).await
}

impl EtcdOpening {
    pub(crate) async fn new(
        etcd: Arc<dyn Etcd>,
        options: Options,
        layout: Arc<dyn Layout>,
    ) -> Result<Self, Error> {
        let translation = Translation::new(layout, options.transformer.clone(), &options.prefix);
        let reading = Reading { etcd, translation, measures: options.measures.clone() };
        let begin = begin(&reading, options.waits).await?;
        Ok(Self { reading, options, begin })
    }

    /// Starts the tasks of the store, which needs a runtime.
    pub(crate) fn start(self) -> EtcdStore {
        EtcdStore::start(self.reading, self.options, self.begin)
    }

    /// Returns the newest state for a backup, without a store. If another server compacts the state
    /// away while it is read, reading fails.
    pub fn stored_state(self) -> Box<dyn StoredState> {
        let Begin { floor, header, .. } = self.begin;
        let horizon = Arc::new(Horizon::new(floor, revision(header.revision)));
        Box::new(EtcdState::new(self.reading, self.options.transformer, horizon.pin_head()))
    }
}

impl Opening for EtcdOpening {
    fn floor(&self) -> Revision {
        self.begin.floor
    }

    fn read_to(
        self: Box<Self>,
        follower: Arc<dyn Follower>,
    ) -> BoxFuture<'static, Result<Arc<dyn Store>, StoreError>> {
        Box::pin(async move {
            let store = self.start();
            store.follow(follower).await?;
            Ok(Arc::new(store) as Arc<dyn Store>)
        })
    }
}

/// Finds where to begin. If it `waits`, it tries again and logs why, until the time is over or an
/// error is permanent.
async fn begin(reading: &Reading, waits: bool) -> Result<Begin, Error> {
    let deadline = Instant::now() + OPEN_TIMEOUT;
    let failure = Mutex::new(Error::Unreachable("no answer yet".to_owned()));
    let mut attempts = pin!(attempts(reading, waits, &failure));
    let mut report_after = FIRST_REPORT;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(failure.lock().clone());
        }
        if let Ok(begun) = timeout(report_after.min(left), &mut attempts).await {
            return begun;
        }
        let left = deadline.saturating_duration_since(Instant::now()).as_secs_f32().round();
        if left > 0.0 {
            let error = failure.lock().clone();
            tracing::warn!(%error, "waiting for etcd, for another {left} s");
        }
        report_after = REPORT_INTERVAL;
    }
}

/// Tries to begin until it succeeds or fails for good, and tells the newest failure meanwhile.
async fn attempts(reading: &Reading, waits: bool, failure: &Mutex<Error>) -> Result<Begin, Error> {
    loop {
        match attempt(reading, failure).await {
            Err(error) if waits && !error.is_permanent() => *failure.lock() = error,
            ended => return ended,
        }
        sleep(PAUSE).await;
    }
}

async fn attempt(reading: &Reading, failure: &Mutex<Error>) -> Result<Begin, Error> {
    let progress = match reading.etcd.status().await {
        Ok(status) => {
            if let Some(why) = status.errors.into_iter().next() {
                // A member without a leader may get one while it is asked.
                *failure.lock() = Error::Lost(why);
            }
            progress_of(&status.version)
        }
        // etcd 3.6 tells its version only to users with the role root. Its older releases, which
        // tell everyone, are those whose progress is not reliable.
        Err(Error::Refused { code: Code::PERMISSION_DENIED, .. }) => Progress::Requested,
        Err(error) => return Err(error),
    };
    let floor = reading.floor().await?;
    let header = reading.header().await?;
    // A backup that is restored between the two reads may be older than the floor.
    let floor = floor.min(revision(header.revision));
    Ok(Begin { progress, floor, header })
}

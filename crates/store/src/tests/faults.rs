//! Media that fail. After the failure no write is acknowledged or becomes visible, and nothing is
//! written until the medium works again. Writes that were acknowledged before are readable at once,
//! after the medium recovered, and after a restart.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::storage::{Fault, Storage};
use super::*;
use crate::At;
use crate::conformance::CommitOne as _;
use crate::engine::{Batch, DiskEngine, Engine, Failure, MemoryEngine, Moved, Visitor};

/// How a medium behaves at the commit that fails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum End {
    /// It does nothing and reports the failure.
    Refuse,
    /// It commits everything and reports a failure.
    CommitAndFail,
    /// It panics.
    Panic,
}

/// A medium that fails at one commit, and whose commits take some time.
pub(super) struct Faulty {
    medium: Arc<MemoryEngine>,
    commits_left: AtomicU64,
    end: End,
    /// Whether it can be reopened.
    is_well: Arc<AtomicBool>,
    pub(super) time: Duration,
}

impl Faulty {
    pub(super) fn new(medium: &Arc<MemoryEngine>, commits_left: u64, end: End) -> Self {
        let (medium, commits_left) = (medium.clone(), AtomicU64::new(commits_left));
        Self { medium, commits_left, end, is_well: Arc::default(), time: Duration::ZERO }
    }
}

impl Engine for Faulty {
    fn commit(&self, batch: &Batch) -> Result<Moved, Failure> {
        let end = Instant::now() + self.time;
        while Instant::now() < end {
            std::hint::spin_loop();
        }
        match self.commits_left.fetch_sub(1, Ordering::Relaxed) {
            0 => panic!("no commit follows a failed one before the medium is reopened"),
            1 => match self.end {
                End::Refuse => Err(Failure("no".to_owned())),
                End::CommitAndFail => self.medium.commit(batch).and(Err(Failure("no".to_owned()))),
                End::Panic => panic!("no"),
            },
            _ => self.medium.commit(batch),
        }
    }

    fn read(&self, revision: Revision) -> Result<Option<Record>, Failure> {
        self.medium.read(revision)
    }

    fn scan(&self, after: Revision, visitor: &mut Visitor<'_>) -> Result<(), Failure> {
        self.medium.scan(after, visitor)
    }

    fn scan_stored(&self, after: Revision, visitor: &mut Visitor<'_>) -> Result<(), Failure> {
        self.medium.scan_stored(after, visitor)
    }

    fn floor(&self) -> Result<Revision, Failure> {
        self.medium.floor()
    }

    fn trim(&self, _: u64) -> Result<(), Failure> {
        Ok(())
    }

    fn reopen(&self) -> Result<(), Failure> {
        if !self.is_well.load(Ordering::Relaxed) {
            return Err(Failure("no".to_owned()));
        }
        self.commits_left.store(u64::MAX, Ordering::Relaxed);
        Ok(())
    }
}

fn open(engine: impl Engine + 'static) -> Arc<dyn Store> {
    LocalOpening::of(engine, u64::MAX).unwrap().read().unwrap()
}

/// Waits until the store takes writes again.
async fn recovered(store: &Arc<dyn Store>) {
    while store.check().is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Writes from many tasks until all got the store's failure; returns the acknowledged records in
/// order, and the failure.
async fn write_until_it_fails(store: &Arc<dyn Store>) -> (Vec<Record>, String) {
    let writers = (0..16).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            for n in 0.. {
                let item = format!("{writer}-{n}");
                match store.commit_one(create(&item, &"x".repeat(500))).await {
                    Ok(record) => acknowledged.push(record),
                    Err(error) => return (acknowledged, error),
                }
            }
            unreachable!()
        })
    });
    let mut acknowledged = Vec::new();
    let mut errors = Vec::new();
    for writer in writers.collect::<Vec<_>>() {
        let (records, error) = writer.await.unwrap();
        acknowledged.extend(records);
        errors.push(error);
    }
    acknowledged.sort_by_key(|record| record.revision);
    let reasons: Vec<String> = errors.into_iter().map(reason).collect();
    assert!(reasons.iter().all(|reason| *reason == reasons[0]), "one for all: {reasons:?}");
    (acknowledged, reasons[0].clone())
}

/// Returns the medium's failure.
fn reason(error: Error) -> String {
    match error {
        Error::Failed { reason } | Error::Unknown { reason } => reason,
        other => panic!("{other}"),
    }
}

/// Checks that a failed store shows exactly what it acknowledged and takes no writes.
async fn check_failed(store: &Arc<dyn Store>, seen: &Seen, acknowledged: &[Record], reason: &str) {
    let error = Err(Error::Failed { reason: reason.to_owned() });
    assert_eq!(store.check(), error);
    assert_eq!(store.commit_one(create("more", "x")).await.map(drop), error);
    assert_eq!(store.compact(Revision(1)).await, error);
    assert_eq!(store.head().0, acknowledged.len() as u64);
    assert_eq!(*seen.0.lock(), acknowledged);
}

#[tokio::test]
async fn a_failed_medium_loses_nothing_acknowledged() {
    for end in [End::Refuse, End::CommitAndFail] {
        for at in [1, 2, 3, 10, 50] {
            let medium = Arc::new(MemoryEngine::default());
            let store = open(Faulty::new(&medium, at, end));
            let seen = followed(&store).await;
            let (acknowledged, reason) = write_until_it_fails(&store).await;
            assert_eq!(reason, "no");
            check_failed(&store, &seen, &acknowledged, &reason).await;
            assert_eq!(*followed(&store).await.0.lock(), acknowledged, "readers go on");
            for record in &acknowledged {
                assert_eq!(
                    store.get(&record.key, At::Head).await.as_ref(),
                    Ok(&Some(record.clone()))
                );
            }
            store.close().await;
            assert_eq!(store.check(), Err(Error::Failed { reason }), "the reason stays");
            drop(store);

            let store = open(Faulty::new(&medium, u64::MAX, end));
            let seen = followed(&store).await;
            seen.check_complete(Revision(0), store.head());
            assert_eq!(seen.0.lock()[..acknowledged.len()], acknowledged);
            assert_eq!(seen.0.lock().len() > acknowledged.len(), end == End::CommitAndFail);
            store.commit_one(create("more", "x")).await.unwrap();
        }
    }
}

/// The writes in progress when the medium failed are committed wholly at their revisions, or not at
/// all.
#[tokio::test]
async fn a_recovered_medium_takes_writes_again() {
    for end in [End::Refuse, End::CommitAndFail] {
        for at in [1, 2, 10] {
            let medium = Arc::new(MemoryEngine::default());
            let engine = Faulty::new(&medium, at, end);
            let is_well = engine.is_well.clone();
            let store = open(engine);
            let seen = followed(&store).await;
            let (acknowledged, reason) = write_until_it_fails(&store).await;
            check_failed(&store, &seen, &acknowledged, &reason).await;
            is_well.store(true, Ordering::Relaxed);
            recovered(&store).await;
            let more = store.commit_one(create("more", "x")).await.unwrap();
            seen.check_complete(Revision(0), more.revision);
            assert_eq!(seen.0.lock()[..acknowledged.len()], acknowledged);
            assert_eq!(store.head(), more.revision);
            let unknown = more.revision.0 as usize - acknowledged.len() - 1;
            assert_eq!(unknown > 0, end == End::CommitAndFail, "{unknown} have happened");
            let all = store.list("things", "", At::Head).await.unwrap();
            assert_eq!(all.len() as u64, more.revision.0);
            drop(store);
            let store = open(Faulty::new(&medium, u64::MAX, end));
            assert_eq!(store.head(), more.revision);
        }
    }
}

#[tokio::test]
async fn a_compaction_that_fails_is_finished_later() {
    for at in 201..=202 {
        let medium = Arc::new(MemoryEngine::default());
        let store = open(Faulty::new(&medium, at, End::Refuse));
        store.commit_one(create("a", "0")).await.unwrap();
        for revision in (2..200).step_by(2) {
            store.commit_one(create("b", "0")).await.unwrap();
            store.commit_one(delete("b", revision, "0")).await.unwrap();
        }
        store.commit_one(update("a", 1, "1")).await.unwrap();
        let compacted = store.compact(Revision(200)).await;
        assert!(matches!(compacted, Err(Error::Failed { .. })), "{at} {compacted:?}");
        assert_eq!(store.head(), Revision(200));
        drop(store);

        let engine = Faulty::new(&medium, u64::MAX, End::Refuse);
        let seen = Arc::new(Seen::default());
        let opening = LocalOpening::of(engine, u64::MAX).unwrap();
        let store = Box::new(opening).read_to(seen.clone()).await.unwrap();
        assert_eq!(seen.texts().last().map(String::as_str), Some("200 Updated a=1"));
        assert!(seen.0.lock().is_sorted_by(|a, b| a.revision < b.revision), "each once, in order");
        store.compact(Revision(200)).await.unwrap();
        assert_eq!((store.floor(), store.head()), (Revision(200), Revision(200)));
        let mut left = Vec::new();
        let all = &mut |record: Record| {
            left.push(text(&record));
            Ok(true)
        };
        medium.scan(Revision(0), all).unwrap();
        assert_eq!(left, ["200 Updated a=1"], "only the newest is left");
        assert_eq!(followed(&store).await.texts(), ["200 Updated a=1"]);
    }
}

#[tokio::test]
async fn a_medium_that_panics_fails_the_store() {
    let store = open(Faulty::new(&Arc::default(), 3, End::Panic));
    let seen = followed(&store).await;
    let (acknowledged, reason) = write_until_it_fails(&store).await;
    assert_eq!(reason, "the committer stopped");
    check_failed(&store, &seen, &acknowledged, &reason).await;
    store.close().await;
}

/// Storage that fails at each possible call, once or until it is repaired, under the real engine.
#[tokio::test]
async fn storage_that_fails_at_any_call() {
    for at in (1..30).chain((30..200).step_by(13)) {
        for fault in [Fault::Error { at }, Fault::Broken { at }] {
            let storage = Storage::with_random_faults(at);
            drop(DiskEngine::at(storage.clone(), None).unwrap());
            storage.fail(fault);
            let Ok(engine) = DiskEngine::at(storage.clone(), None) else {
                assert!(storage.has_failed());
                continue;
            };
            let store = open(engine);
            let seen = followed(&store).await;
            let (acknowledged, _) = write_until_it_fails(&store).await;
            assert!(storage.operations() >= at);
            if matches!(fault, Fault::Broken { .. }) {
                check_failed(&store, &seen, &acknowledged, &reason(store.check().unwrap_err()))
                    .await;
            }
            storage.repair();
            recovered(&store).await;
            assert!(storage.is_consistent(), "what is read is on disk");
            let head = store.commit_one(create("more", "x")).await.unwrap().revision;
            drop(store);

            let store = open(DiskEngine::at(storage.after_exit(), None).unwrap());
            for seen in [seen, followed(&store).await] {
                seen.check_complete(Revision(0), head);
                assert_eq!(seen.0.lock()[..acknowledged.len()], acknowledged, "failed at {at}");
            }
        }
    }
}

/// Each small commit needs one synchronisation, whatever the database does.
#[tokio::test]
async fn a_commit_is_one_synchronisation() {
    let storage = Storage::default();
    let store = open(DiskEngine::at(storage.clone(), None).unwrap());
    let before = storage.synchronisations();
    for n in 0..20 {
        store.commit_one(create(&n.to_string(), "x")).await.unwrap();
    }
    assert_eq!(storage.synchronisations() - before, 20);
    let left = DiskEngine::at(storage.after_exit(), None).unwrap();
    assert_eq!(followed(&open(left)).await.texts().len(), 20, "a killed process loses nothing");
}

/// A compaction of an idle store needs few synchronisations, however much it removes.
#[tokio::test]
async fn compaction_of_an_idle_store_synchronises_rarely() {
    let storage = Storage::default();
    let store = open(DiskEngine::at(storage.clone(), None).unwrap());
    let updates = 5_000u64;
    store.commit_one(create("a", "x")).await.unwrap();
    for revision in 1..=updates {
        store.commit_one(update("a", revision, "x")).await.unwrap();
    }
    let before = storage.synchronisations();
    store.compact(store.head()).await.unwrap();
    let count = storage.synchronisations() - before;
    assert!(count <= 8, "{count} synchronisations for {updates} removals");
    assert_eq!(followed(&store).await.texts().len(), 1);
}

/// A follower's panic stops the committer: the store must not go on without a follower.
#[tokio::test]
async fn a_follower_that_panics_fails_the_store() {
    struct Panicking;
    impl Follower for Panicking {
        fn apply(&self, _: &[Record], _: Revision) {
            panic!("the follower panics");
        }

        fn reset(&self, _: &[Record], _: Revision) {
            unreachable!("an embedded store loses no history");
        }
    }
    let store = in_memory();
    store.follow(Arc::new(Panicking)).await.unwrap();
    let error = store.commit_one(create("a", "1")).await.unwrap_err();
    let reason = "the committer stopped".to_owned();
    assert_eq!(error, Error::Unknown { reason: reason.clone() }, "the medium has the write");
    assert_eq!(store.head(), Revision(0), "the write is not acknowledged");
    assert_eq!(store.check(), Err(Error::Failed { reason }));
}

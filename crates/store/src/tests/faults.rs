//! Media that fail: nobody is acknowledged, nothing is shown, nothing more is written, and what was
//! acknowledged before is there, now and when the store is opened again.

use std::sync::atomic::{AtomicU64, Ordering};

use super::storage::{Fault, Storage};
use super::*;
use crate::At;
use crate::engine::{Batch, DiskEngine, Engine, Failure, MemoryEngine, Visitor};

/// What a medium does at its last commit.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// It does nothing, and says so.
    Refuse,
    /// It does all of it, and says that it failed.
    Lie,
    /// It panics.
    Panic,
}

/// A medium that fails at a commit.
struct Faulty {
    medium: Arc<MemoryEngine>,
    commits_left: AtomicU64,
    end: End,
}

impl Engine for Faulty {
    fn commit(&self, batch: &Batch) -> Result<(), Failure> {
        match self.commits_left.fetch_sub(1, Ordering::Relaxed) {
            0 => panic!("a medium that failed is not asked again"),
            1 => match self.end {
                End::Refuse => Err(Failure("no".to_owned())),
                End::Lie => self.medium.commit(batch).and(Err(Failure("no".to_owned()))),
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

    fn floor(&self) -> Result<Revision, Failure> {
        self.medium.floor()
    }

    fn trim(&mut self, _: u64) -> Result<(), Failure> {
        Ok(())
    }
}

fn open(engine: impl Engine + 'static) -> Arc<dyn Store> {
    Opening::of(engine).unwrap().read().unwrap()
}

/// Writes from many tasks until the store fails; returns what was acknowledged, in order.
async fn write_until_it_fails(store: &Arc<dyn Store>) -> (Vec<Record>, Error) {
    let writers = (0..16).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut acknowledged = Vec::new();
            for n in 0.. {
                let item = format!("{writer}-{n}");
                match store.commit(create(&item, &"x".repeat(500))).await {
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
    assert!(errors.iter().all(|error| *error == errors[0]), "one reason for all: {errors:?}");
    (acknowledged, errors.remove(0))
}

/// That a failed store shows what it acknowledged, nothing else, and takes nothing more.
async fn check_failed(store: &Arc<dyn Store>, seen: &Seen, acknowledged: &[Record], error: &Error) {
    assert!(matches!(error, Error::Failed { .. }));
    assert_eq!(store.check().as_ref(), Err(error));
    assert_eq!(store.commit(create("more", "x")).await.as_ref(), Err(error));
    assert_eq!(store.compact(Revision(1)).await.as_ref(), Err(error));
    assert_eq!(store.head().0, acknowledged.len() as u64);
    assert_eq!(*seen.0.lock(), acknowledged);
}

#[tokio::test]
async fn a_medium_that_fails() {
    for end in [End::Refuse, End::Lie] {
        for at in [1, 2, 3, 10, 50] {
            let medium = Arc::new(MemoryEngine::default());
            let commits_left = AtomicU64::new(at);
            let store = open(Faulty { medium: medium.clone(), commits_left, end });
            let seen = followed(&store).await;
            let (acknowledged, error) = write_until_it_fails(&store).await;
            assert_eq!(
                error.to_string(),
                "the store failed and takes no more writes until the server is started again: no"
            );
            check_failed(&store, &seen, &acknowledged, &error).await;
            assert_eq!(*followed(&store).await.0.lock(), acknowledged, "readers go on");
            for record in &acknowledged {
                assert_eq!(
                    store.get(&record.key, At::Head).await.as_ref(),
                    Ok(&Some(record.clone()))
                );
            }
            store.close().await;
            assert_eq!(store.check(), Err(error), "the reason stays");
            drop(store);

            let commits_left = AtomicU64::new(u64::MAX);
            let store = open(Faulty { medium, commits_left, end });
            let seen = followed(&store).await;
            seen.check_complete(Revision(0), store.head());
            assert_eq!(seen.0.lock()[..acknowledged.len()], acknowledged);
            assert_eq!(seen.0.lock().len() > acknowledged.len(), end == End::Lie);
            store.commit(create("more", "x")).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_compaction_that_fails_is_finished_later() {
    for at in 201..=207 {
        let medium = Arc::new(MemoryEngine::default());
        let commits_left = AtomicU64::new(at);
        let store = open(Faulty { medium: medium.clone(), commits_left, end: End::Refuse });
        store.commit(create("a", "0")).await.unwrap();
        for revision in (2..200).step_by(2) {
            store.commit(create("b", "0")).await.unwrap();
            store.commit(delete("b", revision, "0")).await.unwrap();
        }
        store.commit(update("a", 1, "1")).await.unwrap();
        let compacted = store.compact(Revision(200)).await;
        assert!(matches!(compacted, Err(Error::Failed { .. })), "{at} {compacted:?}");
        assert_eq!(store.head(), Revision(200));
        drop(store);

        let commits_left = AtomicU64::new(u64::MAX);
        let engine = Faulty { medium: medium.clone(), commits_left, end: End::Refuse };
        let seen = Arc::new(Seen::default());
        let store = Opening::of(engine).unwrap().read_to(seen.clone()).await.unwrap();
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
async fn a_medium_that_panics() {
    let (medium, commits_left) = (Arc::default(), AtomicU64::new(3));
    let store = open(Faulty { medium, commits_left, end: End::Panic });
    let seen = followed(&store).await;
    let (acknowledged, error) = write_until_it_fails(&store).await;
    assert!(error.to_string().contains("the committer stopped"), "{error}");
    check_failed(&store, &seen, &acknowledged, &error).await;
    store.close().await;
}

/// Storage that fails once, at every place where it can, under the real engine.
#[tokio::test]
async fn storage_that_fails() {
    for at in (1..30).chain((30..200).step_by(13)) {
        let storage = Storage::with_fault(Fault::Error { at });
        let Ok(engine) = DiskEngine::over(storage.clone()) else { continue };
        let store = open(engine);
        let seen = followed(&store).await;
        let (acknowledged, error) = write_until_it_fails(&store).await;
        assert!(storage.operations() >= at);
        check_failed(&store, &seen, &acknowledged, &error).await;
        drop(store);

        let store = open(DiskEngine::over(storage.after_exit()).unwrap());
        let seen = followed(&store).await;
        seen.check_complete(Revision(0), store.head());
        assert_eq!(seen.0.lock()[..acknowledged.len()], acknowledged, "failed at {at}");
        store.commit(create("more", "x")).await.unwrap();
    }
}

/// A follower that panics takes the committer with it: better than to go on without a follower.
#[tokio::test]
async fn a_follower_that_panics() {
    struct Panicking;
    impl Follower for Panicking {
        fn apply(&self, _: &[Record]) {
            panic!("this follower does");
        }
    }
    let store = crate::memory().unwrap().read().unwrap();
    store.follow(Arc::new(Panicking)).await.unwrap();
    let error = store.commit(create("a", "1")).await.unwrap_err();
    assert!(error.to_string().contains("the committer stopped"), "{error}");
    assert_eq!(store.head(), Revision(0), "it is not acknowledged");
    assert_eq!(store.check(), Err(error));
}

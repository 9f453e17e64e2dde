//! A writer that is alone commits on its own thread, unless the medium is slow.

use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::*;
use crate::conformance::CommitOne as _;
use crate::engine::{Batch, Engine, Failure, MemoryEngine, Moved, Visitor};

/// A medium in memory whose commits take some time.
struct Paced {
    medium: Arc<MemoryEngine>,
    time: Duration,
}

impl Engine for Paced {
    fn commit(&self, batch: &Batch) -> Result<Moved, Failure> {
        let end = Instant::now() + self.time;
        while Instant::now() < end {
            std::hint::spin_loop();
        }
        self.medium.commit(batch)
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
        Ok(())
    }
}

/// A follower that records which thread each commit was on.
#[derive(Default)]
struct Threads(Mutex<Vec<ThreadId>>);

impl Follower for Threads {
    fn apply(&self, _: &[Record], _: Revision) {
        self.0.lock().push(thread::current().id());
    }

    fn reset(&self, _: &[Record], _: Revision) {
        unreachable!("no history is lost here");
    }
}

/// Makes commits of one writer, each of which has `bytes` bytes and takes `time`; returns their
/// threads.
async fn threads_of_commits(bytes: usize, time: Duration) -> Vec<ThreadId> {
    let medium = Arc::new(MemoryEngine::default());
    let store = LocalOpening::of(Paced { medium, time }, u64::MAX).unwrap().read().unwrap();
    let threads = Arc::new(Threads::default());
    store.follow(threads.clone()).await.unwrap();
    for n in 0..50 {
        store.commit_one(create(&n.to_string(), &"x".repeat(bytes))).await.unwrap();
    }
    let threads = threads.0.lock();
    assert_eq!(threads.len(), 50);
    threads.clone()
}

#[tokio::test]
async fn a_lone_writer_commits_on_its_own_thread_while_the_medium_is_quick() {
    let own = thread::current().id();
    let quick = threads_of_commits(1, Duration::ZERO).await;
    assert!(quick.contains(&own));
    let slow = threads_of_commits(1, Duration::from_millis(1)).await;
    assert_eq!(slow[0], own, "nothing is known of the medium yet");
    assert!(!slow[1..].contains(&own), "its connections would wait");
    let large = threads_of_commits(100_000, Duration::ZERO).await;
    assert!(!large.contains(&own), "a large group takes a while");
}

/// The commit that exceeds the bound on history is the last one: it wakes the committer's thread.
#[tokio::test]
async fn the_history_of_a_lone_writer_is_compacted() {
    let medium = Arc::new(MemoryEngine::default());
    let engine = Paced { medium: medium.clone(), time: Duration::ZERO };
    let store = LocalOpening::of(engine, 1000).unwrap().read().unwrap();
    let mut head = store.commit_one(create("a", "0")).await.unwrap().revision;
    while store.floor() == Revision(0) {
        head = store.commit_one(update("a", head.0, "1")).await.unwrap().revision;
    }
    let stored = || {
        let mut count = 0;
        let counted = medium.scan(Revision(0), &mut |_| {
            count += 1;
            Ok(true)
        });
        counted.map(|()| count).unwrap()
    };
    let left = head.0 - store.floor().0 + 1;
    while stored() > left {
        tokio::task::yield_now().await;
    }
}

//! A writer that is alone commits on its own thread, unless the medium is slow.

use std::thread::{self, ThreadId};
use std::time::Duration;

use parking_lot::Mutex;

use super::faults::{End, Faulty};
use super::*;
use crate::conformance::CommitOne as _;
use crate::engine::{Engine as _, MemoryEngine};

/// A medium in memory that never fails and whose commits take some time.
fn taking(time: Duration, medium: &Arc<MemoryEngine>) -> Faulty {
    let mut engine = Faulty::new(medium, u64::MAX, End::Refuse);
    engine.time = time;
    engine
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
    let engine = taking(time, &Arc::default());
    let store = LocalOpening::of(engine, u64::MAX).unwrap().read().unwrap();
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
    // Before the first commit nothing is known of the medium.
    assert!(!slow[1..].contains(&own), "its connections would wait");
    let large = threads_of_commits(100_000, Duration::ZERO).await;
    assert!(!large.contains(&own), "a large group takes a while");
}

/// The commit that exceeds the bound on history is the last one: it wakes the committer's thread.
#[tokio::test]
async fn the_history_of_a_lone_writer_is_compacted() {
    let medium = Arc::new(MemoryEngine::default());
    let engine = taking(Duration::ZERO, &medium);
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

//! Stores on a model of etcd with single faults, in a fixed order.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pintle_store::{
    Change, Error, Expect, Follower, Group, Key, Record, Revision, Store, Template, Write,
};
use tokio::time::{Instant, sleep};

use super::campaign::{Calls, caught_up, check_calls, follow, open};
use super::model::{Access, Model, SLOW};
use super::plain;
use crate::client::Etcd;
use crate::leases::{Leases, REUSE};
use crate::messages::{Operation, PutRequest, RequestOp, TxnRequest};
use crate::opening::EtcdOpening;
use crate::store::{EtcdStore, Options};

/// The number of writes that a test's store has made at the beginning.
const WRITES: i64 = 8;

/// A model without random faults, and a store with a follower and some writes.
async fn begin() -> (Arc<Model>, Arc<EtcdStore>, Arc<Calls>) {
    let model = Model::new(1, "3.6.8");
    model.stop_faults();
    let (store, calls) = (open(&model).await, Arc::new(Calls::default()));
    follow(&store, &calls).await;
    for number in 0..WRITES {
        store.commit(create(&number.to_string())).await.unwrap();
    }
    (model, store, calls)
}

fn create(item: &str) -> Group {
    let key = Key { collection: "a".into(), item: item.into() };
    let change = Change::Put(Template::whole(b"x".to_vec()));
    let first = Write { key, expect: Expect::Absent, change, note: None };
    Group { first, rest: Vec::new(), unchanged: Vec::new() }
}

/// Puts a key as another process would. No other task runs meanwhile.
async fn put_elsewhere(model: &Arc<Model>) {
    let (key, value) = (Bytes::from_static(b"/registry/b/1"), Bytes::from_static(b"y"));
    let request = Some(Operation::Put(PutRequest { key, value, lease: 0 }));
    let success = vec![RequestOp { request }];
    let put = TxnRequest { success, ..TxnRequest::default() };
    Access(model.clone()).txn(put).await.unwrap();
}

/// The watch could go on from the old head, because the restored database is beyond it.
#[tokio::test(start_paused = true)]
async fn a_lost_history_is_not_forgotten_if_the_state_cannot_be_read_at_once() {
    let (model, store, calls) = begin().await;
    let old = model.head();
    model.restore(2);
    for _ in 0..WRITES {
        put_elsewhere(&model).await;
    }
    assert!(model.head() > old);
    model.set_faults(|faults| faults.failing_lists = 1);
    caught_up(&store).await;
    check_calls(&model, &calls);
}

/// The oldest readable revision is read from the end of a watch.
#[tokio::test(start_paused = true)]
async fn a_restored_backup_is_read_anew_after_a_watch_that_does_not_end() {
    let (model, store, calls) = begin().await;
    model.compact_to(3).unwrap();
    model.set_faults(|faults| faults.has_mute_watches = true);
    model.restore(2);
    sleep(Duration::from_secs(60)).await;
    model.set_faults(|faults| faults.has_mute_watches = false);
    caught_up(&store).await;
    check_calls(&model, &calls);
    assert_eq!(store.floor(), Revision(3));
}

/// etcd 3.6 tells its status only to users with the role root.
#[tokio::test(start_paused = true)]
async fn a_store_does_not_need_the_status() {
    let model = Model::new(1, "3.6.8");
    model.stop_faults();
    model.set_faults(|faults| faults.denies_status = true);
    let etcd = Arc::new(Access(model.clone()));
    let opening = EtcdOpening::new(etcd, Options::default(), plain()).await.unwrap();
    let (store, calls) = (opening.start(), Arc::new(Calls::default()));
    follow(&store, &calls).await;
    store.commit(create("1")).await.unwrap();
    caught_up(&store).await;
    check_calls(&model, &calls);
}

/// A follower with a bug.
struct Panicking;

impl Follower for Panicking {
    fn apply(&self, records: &[Record], _: Revision) {
        assert!(records.is_empty(), "this panic is a test's");
    }

    fn reset(&self, _: &[Record], _: Revision) {}
}

/// A server that no longer follows etcd must not look healthy.
#[tokio::test(start_paused = true)]
async fn a_store_whose_follower_panicked_is_unhealthy_for_good() {
    let model = Model::new(1, "3.6.8");
    model.stop_faults();
    let store = open(&model).await;
    store.follow(Arc::new(Panicking)).await.unwrap();
    let checks = || [store.check(), store.ready(), store.check_life()];
    assert_eq!(checks(), [Ok(()), Ok(()), Ok(())]);
    store.commit(create("1")).await.unwrap();
    sleep(Duration::from_secs(60)).await;
    let reason = "a task of the store on etcd panicked; the server must be started again";
    let failed = Err(Error::Failed { reason: reason.to_owned() });
    assert_eq!(checks(), [(); 3].map(|()| failed.clone()));
    let refused = store.commit(create("2")).await;
    assert_eq!(refused.map(drop), failed);
    assert_eq!(model.head(), 2, "the write is refused, because no follower would get it");
}

/// Writes that need a slow lease share its grant and its failure; others do not wait for it.
#[tokio::test(start_paused = true)]
async fn a_slow_grant_delays_only_the_writes_that_need_the_lease() {
    let model = Model::new(1, "3.6.8");
    model.stop_faults();
    let (etcd, leases) = (Access(model.clone()), Leases::new(REUSE, Arc::default()));
    let lease = async |seconds| {
        let begun = Instant::now();
        let lease = leases.lease(&etcd, Duration::from_secs(seconds)).await;
        (lease.ok(), begun.elapsed())
    };
    let at_once = Duration::ZERO;
    assert_eq!(lease(100).await, (Some(1), at_once));
    model.set_faults(|faults| faults.slow_ttl = Some(210));
    let together = tokio::join!(lease(200), lease(200), lease(200), lease(100), lease(300));
    let slow = (None, SLOW);
    assert_eq!(together, (slow, slow, slow, (Some(1), at_once), (Some(3), at_once)));
    model.set_faults(|faults| faults.slow_ttl = None);
    let again = tokio::join!(lease(200), lease(200));
    assert_eq!(again, ((Some(4), at_once), (Some(4), at_once)));
}

//! Behaviour of the store beyond the contract's suite, on a real server: several stores on one
//! database, groups, leases and server failures.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use pintle_store::conformance::CommitOne as _;
use pintle_store::{
    At, Change, Error, Expect, Follower, Group, Key, Record, Revision, Store, Template, Write,
};
use tokio::time::{Instant, sleep};

use super::Plain;
use super::server::Server;
use crate::client::{Client, Etcd};
use crate::messages::{Operation, PutRequest, RequestOp, TxnRequest};
use crate::opening::{EtcdOpening, open};
use crate::store::{EtcdStore, Options};
use crate::tls::Tls;

const TIMEOUT: Duration = Duration::from_secs(60);

/// `collection/item`
fn key(path: &str) -> Key {
    let (collection, item) = path.split_once('/').unwrap();
    Key { collection: collection.into(), item: item.into() }
}

fn put(path: &str, expect: Expect, value: &str) -> Write {
    let change = Change::Put(Template::whole(value.into()));
    Write { key: key(path), expect, change, note: None }
}

fn create(path: &str, value: &str) -> Write {
    put(path, Expect::Absent, value)
}

fn delete(path: &str, expect: Expect) -> Write {
    let change = Change::Delete(Template::whole(b"last".to_vec()));
    Write { key: key(path), expect, change, note: None }
}

fn group(writes: Vec<Write>) -> Group {
    let mut writes = writes.into_iter();
    Group { first: writes.next().unwrap(), rest: writes.collect(), unchanged: Vec::new() }
}

fn text(record: &Record) -> String {
    let value = String::from_utf8_lossy(&record.value()).into_owned();
    format!("{:?} {}/{}={value}", record.kind, record.key.collection, record.key.item)
}

/// A follower that records its calls.
#[derive(Default)]
struct Calls(Mutex<Vec<(String, Revision)>>);

impl Follower for Calls {
    fn apply(&self, records: &[Record], head: Revision) {
        assert!(records.is_sorted_by(|a, b| a.revision <= b.revision));
        let records: Vec<_> = records.iter().map(text).collect();
        self.0.lock().push((records.join(", "), head));
    }

    fn reset(&self, state: &[Record], head: Revision) {
        let records: Vec<_> = state.iter().map(text).collect();
        self.0.lock().push((format!("reset: {}", records.join(", ")), head));
    }
}

impl Calls {
    /// The records of the calls, without calls that only moved the head.
    fn texts(&self) -> Vec<String> {
        self.0.lock().iter().map(|(text, _)| text.clone()).filter(|text| !text.is_empty()).collect()
    }
}

/// A follower during whose calls others write: each call waits for a further write.
struct Chasing {
    store: Arc<EtcdStore>,
    runtime: tokio::runtime::Handle,
    writes: AtomicUsize,
}

impl Chasing {
    const WRITES_MAX: usize = 50;
}

impl Follower for Chasing {
    fn apply(&self, _: &[Record], _: Revision) {
        let number = self.writes.fetch_add(1, Ordering::Relaxed);
        if number < Self::WRITES_MAX {
            let (store, (done, is_done)) = (self.store.clone(), mpsc::channel());
            self.runtime.spawn(async move {
                let _ = store.commit_one(create(&format!("a/{number}"), "x")).await;
                let _ = done.send(());
            });
            // The write is not acknowledged before this call ends if the publisher waits for it.
            let _ = is_done.recv_timeout(Duration::from_millis(100));
        }
    }

    fn reset(&self, _: &[Record], _: Revision) {
        unreachable!("no history is lost here");
    }
}

async fn followed(store: &EtcdStore) -> Arc<Calls> {
    let calls = Arc::new(Calls::default());
    store.follow(calls.clone()).await.unwrap();
    calls
}

/// Waits for a condition.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Puts a value as another program would.
async fn put_raw(client: &Client, path: &'static str, value: &'static str) -> Revision {
    let (key, value) = (Bytes::from_static(path.as_bytes()), Bytes::from_static(value.as_bytes()));
    let request = Some(Operation::Put(PutRequest { key, value, lease: 0 }));
    let success = vec![RequestOp { request }];
    let response = client.txn(TxnRequest { success, ..TxnRequest::default() }).await.unwrap();
    crate::translation::revision(response.header.revision)
}

#[tokio::test]
async fn a_group_shares_a_revision_and_is_sent_at_once() {
    let Some(server) = Server::start().await else { return };
    let store = server.store().await;
    let calls = followed(&store).await;
    let writes =
        vec![create("a/1", "x"), create("b/1", "x"), create("a/2", "y"), create("c/1", "x")];
    let records = store.commit(group(writes)).await.unwrap();
    let revisions: Vec<_> = records.iter().map(|record| record.revision.0).collect();
    assert_eq!(revisions, [3, 3, 2, 3]);
    assert_eq!(records.iter().map(|r| &*r.key.item).collect::<Vec<_>>(), ["1", "1", "2", "1"]);
    let records = ["Created a/2=y", "Created a/1=x, Created b/1=x, Created c/1=x"];
    assert_eq!(calls.texts(), records);
}

#[tokio::test]
async fn writes_before_a_failed_group_are_undone() {
    let Some(server) = Server::start().await else { return };
    let store = server.store().await;
    let mut at = Vec::new();
    for path in ["a/1", "a/2", "a/3", "b/1"] {
        at.push(Expect::At(store.commit_one(create(path, "old")).await.unwrap().revision));
    }
    let writes = vec![
        put("a/1", at[0], "new"),
        put("a/2", at[1], "new"),
        delete("a/3", at[2]),
        create("a/4", "new"),
        create("b/1", "it is there"),
    ];
    let failed = store.commit(group(writes)).await;
    assert_eq!(failed, Err(Error::CompanionConflict { key: key("b/1") }));
    let state = store.list("a", "", At::Head).await.unwrap();
    let state: Vec<_> = state.iter().map(|r| format!("{}={:?}", r.key.item, r.value())).collect();
    assert_eq!(state, ["1=b\"old\"", "2=b\"old\"", "3=b\"old\""]);
}

#[tokio::test]
async fn a_mark_before_a_deletion_is_sent_first() {
    let Some(server) = Server::start().await else { return };
    let store = server.store().await;
    let calls = followed(&store).await;
    let at = store.commit_one(create("a/1", "x")).await.unwrap().revision;
    let writes = vec![put("a/1", Expect::At(at), "marked"), delete("a/1", Expect::AfterPrevious)];
    let records = store.commit(group(writes)).await.unwrap();
    let texts: Vec<_> = records.iter().map(text).collect();
    assert_eq!(texts, ["Updated a/1=marked", "Deleted a/1=last"]);
    assert_eq!(calls.texts(), ["Created a/1=x", "Updated a/1=marked", "Deleted a/1=last"]);
}

/// The keys that belong to an object are deleted after it: a reader never finds the object without
/// them.
#[tokio::test]
async fn keys_that_belong_to_an_object_are_deleted_after_it() {
    let Some(server) = Server::start().await else { return };
    let store = server.store().await;
    let mut at = Vec::new();
    for path in ["a/1", "b/1", "b/2"] {
        at.push(Expect::At(store.commit_one(create(path, "x")).await.unwrap().revision));
    }
    let calls = followed(&store).await;
    let before = calls.texts().len();
    let writes = vec![put("a/1", at[0], "y"), delete("b/1", at[1]), delete("b/2", at[2])];
    let records = store.commit(group(writes)).await.unwrap();
    assert_eq!(records.len(), 3);
    let records = calls.texts().split_off(before);
    assert_eq!(records, ["Updated a/1=y, Deleted b/1=last", "Deleted b/2=last"]);
}

#[tokio::test]
async fn stores_on_one_database_see_each_other() {
    let Some(server) = Server::start().await else { return };
    let (one, other) = (server.store().await, server.store().await);
    let (by_one, by_other) = (followed(&one).await, followed(&other).await);
    let at = one.commit_one(create("a/1", "x")).await.unwrap().revision;
    let fresh = other.fresh().await.unwrap();
    assert!(fresh >= at, "a fresh read covers every acknowledged write");
    until("the other store has it", || other.head() >= fresh).await;
    let at = other.commit_one(put("a/1", Expect::At(at), "y")).await.unwrap().revision;
    // The conflicting write is visible when the conflict is reported.
    let stale = one.commit_one(put("a/1", Expect::At(Revision(at.0 - 1)), "z")).await;
    let Err(Error::Conflict { current: Some(current) }) = stale else { panic!("{stale:?}") };
    assert_eq!((text(&current), current.revision), ("Updated a/1=y".to_owned(), at));
    assert_eq!(by_one.texts(), ["Created a/1=x", "Updated a/1=y"]);
    one.commit_one(delete("a/1", Expect::At(at))).await.unwrap();
    until("the deletion is seen", || by_other.texts().len() == 3).await;
    let records = ["Created a/1=x", "Updated a/1=y", "Deleted a/1="];
    assert_eq!(by_other.texts(), records, "the last state is not known to others");
}

/// A fresh revision is reached even if its key is not the store's.
#[tokio::test]
async fn a_fresh_revision_of_a_foreign_key_is_reached() {
    let Some(server) = Server::start().await else { return };
    let store = server.store().await;
    let calls = followed(&store).await;
    let client = server.client();
    for path in ["/other/key", "/registry/no-collection", "compact_rev_key"] {
        let at = put_raw(&client, path, "x").await;
        let fresh = store.fresh().await.unwrap();
        assert_eq!(fresh, at);
        until("the head moves", || store.head() >= fresh).await;
    }
    assert_eq!(calls.texts(), [""; 0]);
    assert_eq!(store.list("no-collection", "", At::Head).await.unwrap(), []);
}

/// A long history is not replayed at a start, but can be read.
#[tokio::test]
async fn a_new_follower_gets_the_newest_writes_one_by_one() {
    let Some(server) = Server::start().await else { return };
    let client = server.client();
    let old = put_raw(&client, "/registry/a/old", "x").await;
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let client = server.client();
        writers.spawn(async move {
            for _ in 0..201 {
                put_raw(&client, "/registry/b/1", "y").await;
            }
        });
    }
    writers.join_all().await;
    let store = server.store().await;
    let calls = followed(&store).await;
    let texts = calls.texts();
    assert_eq!(texts[0], "reset: Created a/old=x, Updated b/1=y");
    let records = texts[1..].iter().map(|text| text.split(", ").count()).sum::<usize>();
    assert_eq!(records, 10_000);
    let before = store.get(&key("b/1"), At::Revision(old)).await.unwrap();
    assert_eq!(before, None);
    assert_eq!(store.list("a", "", At::Revision(old)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_key_with_a_lifetime_expires() {
    let Some(server) = Server::start().await else { return };
    let layout = Arc::new(Plain { lifetime: Some(Duration::from_secs(1)) });
    let client = Arc::new(server.client());
    let store = EtcdOpening::new(client, server.options(), layout).await.unwrap().start();
    let calls = followed(&store).await;
    store.commit_one(create("fleeting/1", "x")).await.unwrap();
    store.commit_one(create("lasting/1", "x")).await.unwrap();
    until("it expires", || calls.texts().len() == 3).await;
    assert_eq!(calls.texts()[2], "Deleted fleeting/1=");
}

#[tokio::test]
async fn an_unwritable_value_is_refused_and_an_unreadable_one_is_returned_as_stored() {
    let Some(server) = Server::start().await else { return };
    let store = server.store().await;
    let calls = followed(&store).await;
    let refused = store.commit_one(create("a/1", "unwritable")).await;
    assert!(matches!(refused, Err(Error::Failed { .. })), "{refused:?}");
    let client = server.client();
    let path = Bytes::from_static(b"/registry/a/2");
    let value = Bytes::from_static(b"\xff");
    let request = Some(Operation::Put(PutRequest { key: path, value, lease: 0 }));
    let success = vec![RequestOp { request }];
    client.txn(TxnRequest { success, ..TxnRequest::default() }).await.unwrap();
    let fresh = store.fresh().await.unwrap();
    until("it is seen", || store.head() >= fresh).await;
    let read = store.get(&key("a/2"), At::Head).await.unwrap().unwrap();
    assert_eq!(&read.value()[..], b"\xff");
    assert_eq!(calls.texts(), ["Created a/2=\u{fffd}"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_loses_no_acknowledged_write() {
    let Some(mut server) = Server::start().await else { return };
    let store = Arc::new(server.store().await);
    let calls = followed(&store).await;
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut acknowledged = Vec::new();
                for n in 0.. {
                    let path = format!("a/{writer}-{n}");
                    match store.commit_one(create(&path, "x")).await {
                        Ok(_) => acknowledged.push(path),
                        Err(Error::Failed { .. } | Error::Unknown { .. }) if n > 5 => break,
                        Err(error) => panic!("{error}"),
                    }
                }
                acknowledged
            })
        })
        .collect();
    until("there are writes", || store.head() > Revision(300)).await;
    server.kill();
    let mut acknowledged = Vec::new();
    for writer in writers {
        acknowledged.extend(writer.await.unwrap());
    }
    until("the failure is seen", || store.check().is_err()).await;
    assert!(store.fresh().await.is_err());
    server.restart().await;
    until("the server answers again", || store.check().is_ok()).await;
    let last = store.commit_one(create("a/last", "x")).await.unwrap();
    let stored = store.list("a", "", At::Head).await.unwrap();
    let records: Vec<_> = calls
        .texts()
        .iter()
        .flat_map(|t| t.split(", ").map(str::to_owned).collect::<Vec<_>>())
        .collect();
    assert!(records.iter().all(|text| text.starts_with("Created ")), "no history is lost");
    let mut expected: Vec<_> = stored.iter().map(text).collect();
    let mut sorted = records.clone();
    expected.sort();
    sorted.sort();
    assert_eq!(sorted, expected, "each is sent once");
    for path in acknowledged {
        assert!(records.contains(&format!("Created {path}=x")), "{path} was acknowledged");
    }
    assert!(store.head() >= last.revision);
}

#[tokio::test]
async fn a_restored_backup_is_read_anew() {
    let Some(mut server) = Server::start().await else { return };
    let store = server.store().await;
    let calls = followed(&store).await;
    store.commit_one(create("a/1", "x")).await.unwrap();
    let (data, backup) = (server.dir.path().join("data"), server.dir.path().join("backup"));
    server.kill();
    copy(&data, &backup);
    server.restart().await;
    until("the server answers again", || store.check().is_ok()).await;
    let mut head = Revision(0);
    for item in ["2", "3", "4"] {
        head = store.commit_one(create(&format!("a/{item}"), "x")).await.unwrap().revision;
    }
    server.kill();
    fs::remove_dir_all(&data).unwrap();
    fs::rename(&backup, &data).unwrap();
    server.restart().await;
    until("it is read anew", || calls.texts().iter().any(|text| text.starts_with("reset"))).await;
    assert!(store.head() < head, "revisions are older");
    assert_eq!(calls.texts().last().unwrap(), "reset: Created a/1=x");
    let again = store.commit_one(create("a/2", "y")).await.unwrap();
    assert!(again.revision <= head);
    assert_eq!(calls.texts().last().unwrap(), "Created a/2=y");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// A new follower that is always behind the others is served soon.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_follower_need_not_be_faster_than_the_writers() {
    let Some(server) = Server::start().await else { return };
    let store = Arc::new(server.store().await);
    store.commit_one(create("b/1", "x")).await.unwrap();
    let runtime = tokio::runtime::Handle::current();
    let chasing =
        Arc::new(Chasing { store: store.clone(), runtime, writes: AtomicUsize::default() });
    store.follow(chasing.clone()).await.unwrap();
    let writes = chasing.writes.swap(Chasing::WRITES_MAX, Ordering::Relaxed);
    assert!(writes < Chasing::WRITES_MAX, "{writes} writes happened before it was served");
}

/// One reachable endpoint is enough, in any position.
#[tokio::test]
async fn unreachable_endpoints_are_skipped() {
    let Some(server) = Server::start().await else { return };
    let down = "http://127.0.0.1:1".to_owned();
    let mut options = server.options();
    options.endpoints = vec![down.clone(), server.endpoint.clone(), down.clone()];
    let store = server.store_with(options.clone()).await;
    let calls = followed(&store).await;
    store.commit_one(create("a/1", "x")).await.unwrap();
    assert_eq!(calls.texts(), ["Created a/1=x"]);
    let unreachable = Client::new(&[down], &Tls::default(), &Arc::default()).unwrap();
    let error = unreachable.status().await.unwrap_err();
    assert!(matches!(error, crate::Error::Unreachable(_)), "{error}");
}

/// A server may start before its etcd, and must outlive the failures of etcd.
#[tokio::test]
async fn opening_waits_until_etcd_responds() {
    let Some(mut server) = Server::start().await else { return };
    server.kill();
    let layout = Arc::new(Plain::default());
    let impatient = Options { waits: false, ..server.options() };
    assert!(open(&impatient, layout.clone()).await.is_err(), "etcd is down");
    let options = server.options();
    let opening = tokio::spawn(async move { open(&options, layout).await });
    sleep(Duration::from_secs(1)).await;
    assert!(!opening.is_finished());
    server.restart().await;
    let store = opening.await.unwrap().unwrap().start();
    store.commit_one(create("a/1", "x")).await.unwrap();
    server.kill();
    let deadline = Instant::now() + TIMEOUT;
    while store.check().is_ok() && Instant::now() < deadline {
        sleep(Duration::from_millis(100)).await;
    }
    assert!(store.check().is_err(), "etcd is down");
    assert_eq!(store.check_life(), Ok(()), "another start of the server would not help");
}

/// A write waits for an etcd that is started again, as those of a kube-apiserver do.
#[tokio::test]
async fn a_write_that_was_not_sent_waits_until_etcd_is_back() {
    let Some(mut server) = Server::start().await else { return };
    let store = Arc::new(server.store().await);
    let calls = followed(&store).await;
    server.kill();
    let writer = store.clone();
    let write = tokio::spawn(async move { writer.commit_one(create("a/1", "x")).await });
    sleep(Duration::from_secs(1)).await;
    server.restart().await;
    write.await.unwrap().unwrap();
    assert_eq!(calls.texts(), ["Created a/1=x"]);
}

//! Engines that share a store, as processes share a database. A write of one engine is not in the
//! other's cache until the other engine asks for a fresh revision or writes.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use pintle_meta::{Status, object};
use pintle_registry::request::{DeleteOptions, ListOptions, WriteOptions};
use pintle_store::{
    At, BoxFuture, Error, Follower, Group, Grouping, Key, LocalOpening, Opening, Record, Revision,
    Store, StoredState,
};
use pintle_value::Value;

use super::setup::{Engine, context, data, json_body};

/// Faults of the store.
#[derive(Default)]
struct Faults {
    /// Objects are stored in the form of another release.
    has_old_forms: AtomicBool,
    /// Commits succeed, but are not acknowledged.
    loses_acknowledgements: AtomicBool,
}

/// One process's view of a shared store, whose follower lags.
struct SharedStore {
    store: Arc<dyn Store>,
    faults: Arc<Faults>,
    lagging: Arc<Lagging>,
}

/// The calls that a process's follower has not received yet.
struct Lagging {
    follower: Arc<dyn Follower>,
    calls: Mutex<Vec<(Vec<Record>, Revision)>>,
}

impl Lagging {
    fn catch_up(&self) {
        let mut calls = self.calls.lock();
        for (records, head) in calls.drain(..) {
            self.follower.apply(&records, head);
        }
    }
}

impl Follower for Lagging {
    fn apply(&self, records: &[Record], head: Revision) {
        self.calls.lock().push((records.to_vec(), head));
    }

    fn reset(&self, _: &[Record], _: Revision) {
        unreachable!("a store in memory does not lose its history");
    }
}

struct SharedOpening(Arc<dyn Store>, Arc<Faults>);

impl Opening for SharedOpening {
    fn floor(&self) -> Revision {
        self.0.floor()
    }

    fn read_to(
        self: Box<Self>,
        follower: Arc<dyn Follower>,
    ) -> BoxFuture<'static, Result<Arc<dyn Store>, Error>> {
        Box::pin(async move {
            let lagging = Arc::new(Lagging { follower, calls: Mutex::default() });
            self.0.follow(lagging.clone()).await?;
            lagging.catch_up();
            Ok(Arc::new(SharedStore { store: self.0, faults: self.1, lagging }) as Arc<dyn Store>)
        })
    }
}

impl Store for SharedStore {
    fn head(&self) -> Revision {
        self.store.head()
    }

    fn floor(&self) -> Revision {
        self.store.floor()
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn fresh(&self) -> BoxFuture<'_, Result<Revision, Error>> {
        Box::pin(async {
            self.lagging.catch_up();
            self.store.fresh().await
        })
    }

    fn commit(&self, group: Group) -> BoxFuture<'_, Result<Vec<Record>, Error>> {
        Box::pin(async {
            let committed = self.store.commit(group).await;
            self.lagging.catch_up();
            if self.faults.loses_acknowledgements.load(Ordering::SeqCst) {
                return Err(Error::Unknown { reason: "the answer is lost".to_owned() });
            }
            committed
        })
    }

    fn grouping(&self) -> Grouping {
        self.store.grouping()
    }

    fn get(&self, key: &Key, at: At) -> BoxFuture<'_, Result<Option<Record>, Error>> {
        self.store.get(key, at)
    }

    fn list(
        &self,
        collection: &str,
        prefix: &str,
        at: At,
    ) -> BoxFuture<'_, Result<Vec<Record>, Error>> {
        self.store.list(collection, prefix, at)
    }

    fn stored_state(&self) -> BoxFuture<'_, Result<Box<dyn StoredState>, Error>> {
        self.store.stored_state()
    }

    fn is_current(&self, _: &Key) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(ready(Ok(!self.faults.has_old_forms.load(Ordering::SeqCst))))
    }

    fn follow(&self, follower: Arc<dyn Follower>) -> BoxFuture<'_, Result<(), Error>> {
        self.store.follow(follower)
    }

    fn compact(&self, floor: Revision) -> BoxFuture<'_, Result<(), Error>> {
        self.store.compact(floor)
    }

    fn check(&self) -> Result<(), Error> {
        self.store.check()
    }

    fn disk_bytes(&self) -> Option<u64> {
        self.store.disk_bytes()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.store.close()
    }
}

struct NoFollower;

impl Follower for NoFollower {
    fn apply(&self, _: &[Record], _: Revision) {}

    fn reset(&self, _: &[Record], _: Revision) {}
}

/// Returns an empty store in memory.
async fn memory() -> Arc<dyn Store> {
    let opening: LocalOpening = pintle_store::memory(u64::MAX).expect("a store in memory opens");
    Box::new(opening).read_to(Arc::new(NoFollower)).await.expect("an empty store opens")
}

/// Returns an engine, and the store that it shares with the caller.
pub(crate) async fn sharing() -> (Engine, Arc<dyn Store>) {
    let store = memory().await;
    (Engine::on(Box::new(SharedOpening(store.clone(), Arc::default()))).await, store)
}

/// Returns two engines on one store, and the store's faults.
async fn pair() -> (Engine, Engine, Arc<Faults>) {
    let (store, faults) = (memory().await, Arc::new(Faults::default()));
    let engine = async || Engine::on(Box::new(SharedOpening(store.clone(), faults.clone()))).await;
    (engine().await, engine().await, faults)
}

/// Returns the object `a` with a value.
fn a(value: &str) -> String {
    data(&[("", "a"), ("k", value)])
}

const K1: &str = r#"{"data":{"k":"1"}}"#;
const K2: &str = r#"{"data":{"k":"2"}}"#;

#[tokio::test]
async fn an_object_that_another_server_created_is_found() {
    let (one, other, _) = pair().await;
    for verb in ["patch", "put", "delete", "amend"] {
        one.create("configmaps", &a("1")).await.expect("created");
        let target = other.target("configmaps", "a", "");
        let registry = &other.registry;
        match verb {
            "patch" => _ = other.merge("configmaps", "a", "", K2).await.expect("it is there"),
            "put" => _ = other.update("configmaps", "a", "", &a("2")).await.expect("it is there"),
            "amend" => {
                let mark = |tree: &mut Value| {
                    tree.make_object().insert("immutable", true);
                    Ok(())
                };
                let amended = registry.amend(&target, false, &context(), mark).await;
                assert!(amended.expect("it is there").get("immutable").is_some());
            }
            _ => {}
        }
        let options = DeleteOptions::default();
        registry.delete(&target, &options, &context()).await.expect("it is there");
        let again = one.registry.delete(&target, &options, &context()).await;
        assert_eq!(again.err().map(|status| status.code), Some(404), "{verb}: it is gone");
    }
}

#[tokio::test]
async fn a_patch_that_seems_unchanged_is_decided_on_a_fresh_state() {
    let (one, other, _) = pair().await;
    one.create("configmaps", &a("1")).await.expect("created");
    other.merge("configmaps", "a", "", K1).await.expect("nothing to change");
    let changed = one.merge("configmaps", "a", "", K2).await.expect("changed");
    // The lagging cache still has the value 1.
    let back = other.merge("configmaps", "a", "", K1).await.expect("changed back");
    assert_eq!(back.str_at(&["data", "k"]), Some("1"));
    assert_ne!(object::resource_version(&back), object::resource_version(&changed));
    let seen = one.registry.get(&one.target("configmaps", "a", ""), "").await;
    let seen = super::setup::tree(seen.expect("it is there")).expect("an object");
    assert_eq!(seen, back);
}

#[tokio::test]
async fn a_resource_version_from_another_server_is_current() {
    let (one, other, _) = pair().await;
    let made = one.create("configmaps", &a("1")).await.expect("created");
    other.merge("configmaps", "a", "", K1).await.expect("nothing to change");
    let mut changed = one.merge("configmaps", "a", "", K2).await.expect("changed");
    changed.make_object().insert("immutable", true);
    let text = pintle_value::json::to_string(&changed);
    other.update("configmaps", "a", "", &text).await.expect("no conflict");
    let text = pintle_value::json::to_string(&made);
    let stale = one.update("configmaps", "a", "", &text).await;
    assert_eq!(stale.err().map(|status| status.code), Some(409));
}

#[tokio::test]
async fn a_refusal_that_is_decided_twice_warns_once() {
    let (one, other, _) = pair().await;
    one.create("configmaps", &a("1")).await.expect("created");
    let body = json_body(r#"{"metadata":{"name":"a"},"bogus":1}"#);
    let (options, context) = (WriteOptions::default(), context());
    let target = other.target("configmaps", "", "");
    let taken = other.registry.create(&target, &body, &options, &context).await;
    assert_eq!(taken.err().map(|status| status.code), Some(409));
    assert_eq!(context.warnings.take(), [r#"unknown field "bogus""#]);
}

#[tokio::test]
async fn an_object_in_an_old_form_is_rewritten() {
    let (one, _, faults) = pair().await;
    let made = one.create("configmaps", &a("1")).await.expect("created");
    assert_eq!(one.merge("configmaps", "a", "", K1).await.expect("nothing to change"), made);
    faults.has_old_forms.store(true, Ordering::SeqCst);
    let mut written = one.merge("configmaps", "a", "", K1).await.expect("written");
    let version = object::resource_version(&made);
    assert_ne!(object::resource_version(&written), version);
    object::set_text(&mut written, "resourceVersion", version);
    assert_eq!(written, made, "and nothing is changed");
}

/// A store need not report a revision without changes of objects before it is asked for it.
#[tokio::test]
async fn a_read_at_a_revision_of_another_server_asks_the_store() {
    let (one, other, _) = pair().await;
    let made = one.create("configmaps", &a("1")).await.expect("created");
    let version = object::resource_version(&made);
    let target = other.target("configmaps", "a", "");
    assert!(other.registry.get(&target, version).await.is_ok());
    let made = one.merge("configmaps", "a", "", K1).await.expect("changed");
    let resource_version = object::resource_version(&made).into();
    let list = other.list(ListOptions { resource_version, ..ListOptions::default() }).await;
    assert_eq!(list.expect("a list").objects.len(), 1);
}

/// After a lost acknowledgement nothing is written twice, and the client gets an error instead of a
/// conflict.
#[tokio::test]
async fn a_write_with_unknown_outcome_is_not_repeated() {
    let (one, _, faults) = pair().await;
    faults.loses_acknowledgements.store(true, Ordering::SeqCst);
    let named = one.create("configmaps", &a("1")).await;
    assert_eq!(named.err().map(|status| status.code), Some(500));
    let generated = one.create("configmaps", r#"{"metadata":{"generateName":"g-"}}"#).await;
    assert_eq!(generated.err().map(|status| status.code), Some(500));
    let patched = one.merge("configmaps", "a", "", K2).await;
    assert_eq!(patched.err().map(|status| status.code), Some(500));
    let mut calls = 0;
    let count = |tree: &mut Value| {
        calls += 1;
        tree.make_object().insert("immutable", true);
        Ok(())
    };
    let target = one.target("configmaps", "a", "");
    let amended = one.registry.amend(&target, false, &context(), count).await;
    assert_eq!((amended.err().map(|status| status.code), calls), (Some(500), 1));
    let all = one.list(ListOptions::default()).await.expect("a list");
    assert_eq!(all.objects.len(), 2);
}

#[tokio::test]
async fn a_refusal_on_the_newest_state_is_not_decided_again() {
    let (one, other, _) = pair().await;
    one.create("configmaps", &a("1")).await.expect("created");
    let target = other.target("configmaps", "a", "");
    other.merge("configmaps", "a", "", K1).await.expect("nothing to change");
    for (is_changed_elsewhere, expected) in [(false, 1), (true, 2)] {
        if is_changed_elsewhere {
            one.merge("configmaps", "a", "", K2).await.expect("changed");
        }
        let mut calls = 0;
        let refuse = |_: &mut Value| {
            calls += 1;
            Err(Status::bad_request("no"))
        };
        let refused = other.registry.amend(&target, false, &context(), refuse).await;
        assert_eq!((refused.err().map(|status| status.code), calls), (Some(400), expected));
    }
}

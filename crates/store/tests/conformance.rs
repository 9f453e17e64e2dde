//! The conformance suite, run on each store.

mod suite;

use suite::*;
use std::sync::Arc;
use pintle_store::*;

#[tokio::test]
async fn smoke() {
    let store = pintle_store::memory().unwrap();
    let seen = Arc::new(Seen::default());
    store.commit(create("a", "1")).await.unwrap();
    store.follow(seen.clone()).await.unwrap();
    store.commit(update("a", 1, "2")).await.unwrap();
    store.commit(create("b", "1")).await.unwrap();
    store.commit(delete("b", 3, "1")).await.unwrap();
    assert_eq!(seen.texts(), ["1 Created a=1", "2 Updated a=2", "3 Created b=1", "4 Deleted b=1"]);
    assert_eq!(texts(&store.list("things", "", At::Revision(Revision(3))).await.unwrap()), ["2 Updated a=2", "3 Created b=1"]);
    store.compact(Revision(4)).await.unwrap();
    assert_eq!(texts(&store.list("things", "", At::Head).await.unwrap()), ["2 Updated a=2"]);
    store.close().await;
    assert_eq!(store.commit(create("c", "1")).await, Err(Error::Closed));
}

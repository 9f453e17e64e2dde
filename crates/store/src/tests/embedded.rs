//! Properties of the embedded stores beyond the contract: each write has its own revision.

use super::*;
use crate::conformance::{CommitOne as _, first_of};
use crate::{At, Group};

mod memory {
    crate::conformance!({ Some((super::in_memory(), ())) });
}

mod disk {
    crate::conformance!({ Some(super::on_disk()) });
}

/// Runs each case on each embedded store.
macro_rules! embedded {
    ($($case:ident)*) => {
        $(#[tokio::test]
        async fn $case() {
            cases::$case(in_memory()).await;
            let (store, _dir) = on_disk();
            cases::$case(store).await;
        })*
    };
}

embedded! {
    a_key_is_updated_and_deleted_in_one_group
    each_write_of_a_group_has_a_revision
    groups_take_consecutive_revisions
    the_revision_in_the_value_is_the_next_one
    heads_are_those_of_records
}

mod cases {
    use super::*;

    /// Followers see the last state of a key before its deletion, in one group. `AfterPrevious`
    /// needs a put of the same key directly before it.
    pub(super) async fn a_key_is_updated_and_deleted_in_one_group(store: Arc<dyn Store>) {
        let seen = followed(&store).await;
        store.commit_one(create("a", "1")).await.unwrap();
        let end = |item| Write { expect: Expect::AfterPrevious, ..delete(item, 1, "2") };
        for (rest, expected) in [
            (vec![end("b")], "b in things was written at another revision"),
            (vec![create("b", "1"), end("a")], "a in things was written at another revision"),
            (vec![end("a"), end("a")], "a in things was written at another revision"),
            (vec![end("a"), create("b", "1")], "2 Updated a=2"),
        ] {
            let group = Group { first: update("a", 1, "2"), rest, unchanged: Vec::new() };
            assert_eq!(outcome(first_of(store.commit(group).await)), expected);
        }
        let all = ["1 Created a=1", "2 Updated a=2", "3 Deleted a=2", "4 Created b=1"];
        assert_eq!(seen.texts(), all);
    }

    /// Each record's revision has a readable state and a continuation without gaps: a client may be
    /// disconnected between two writes of one group in one collection.
    pub(super) async fn each_write_of_a_group_has_a_revision(store: Arc<dyn Store>) {
        let seen = followed(&store).await;
        store.commit_one(create("a", "1")).await.unwrap();
        let group = vec![create("c", "1"), update("a", 1, "2"), create("d", "1")];
        let group = Group { first: create("b", "1"), rest: group, unchanged: Vec::new() };
        let records = store.commit(group).await.unwrap();
        assert_eq!(records.len(), 4);
        assert_eq!((records[0].revision, store.head()), (Revision(2), Revision(5)));
        let all =
            ["1 Created a=1", "2 Created b=1", "3 Created c=1", "4 Updated a=2", "5 Created d=1"];
        assert_eq!(seen.texts(), all);
        assert_eq!(followed(&store).await.texts(), all);
        for (at, count) in [(1, 1), (2, 2), (3, 3), (4, 3), (5, 4)] {
            let state = store.list("things", "", At::Revision(Revision(at))).await.unwrap();
            assert_eq!(state.len(), count, "after revision {at}");
        }
    }

    /// The writes of a group get consecutive revisions.
    pub(super) async fn groups_take_consecutive_revisions(store: Arc<dyn Store>) {
        let rows = [
            (create("a", "1"), vec![create("b", "1"), create("c", "1")], "1 Created a=1"),
            (create("a", "2"), vec![create("d", "1")], "conflict: 1 Created a=1"),
            (
                create("d", "1"),
                vec![create("e", "1"), create("b", "2")],
                "b in things was written at another revision",
            ),
            (update("a", 1, "2"), vec![delete("b", 2, "1"), update("c", 3, "2")], "4 Updated a=2"),
            (
                delete("a", 4, "2"),
                vec![delete("c", 3, "2")],
                "c in things was written at another revision",
            ),
            (create("f", "1"), vec![], "7 Created f=1"),
        ];
        for (first, rest, expected) in rows {
            let group = Group { first, rest, unchanged: Vec::new() };
            assert_eq!(outcome(first_of(store.commit(group).await)), expected);
        }
        let all = store.list("things", "", At::Head).await.unwrap();
        assert_eq!(texts(&all), ["4 Updated a=2", "6 Updated c=2", "7 Created f=1"]);
    }

    pub(super) async fn the_revision_in_the_value_is_the_next_one(store: Arc<dyn Store>) {
        for n in 1..=11 {
            let bytes = br#"<{"rv":""}>"#.to_vec();
            let template = Template::framed(bytes, 1..10, Some(8));
            let item = n.to_string();
            let record =
                store.commit_one(write(key(&item), Expect::Absent, Change::Put(template))).await;
            let record = record.unwrap();
            assert_eq!(&record.bytes[..], format!("<{{\"rv\":\"{n}\"}}>").as_bytes());
            assert_eq!(record.value(), format!("{{\"rv\":\"{n}\"}}"));
            let stored = store.get(&key(&item), At::Head).await.unwrap().unwrap();
            assert_eq!(stored.value(), record.value());
            assert_eq!(
                stored.body,
                0..stored.bytes.len(),
                "what is around the value is not stored"
            );
        }
    }

    /// A follower gets each head with its record.
    pub(super) async fn heads_are_those_of_records(store: Arc<dyn Store>) {
        struct Strict;
        impl Follower for Strict {
            fn apply(&self, records: &[Record], head: Revision) {
                assert_eq!(records.last().map(|last| last.revision), Some(head));
            }

            fn reset(&self, _: &[Record], _: Revision) {
                unreachable!("an embedded store loses no history");
            }
        }
        store.commit_one(create("a", "1")).await.unwrap();
        store.follow(Arc::new(Strict)).await.unwrap();
        store.commit_one(create("b", "1")).await.unwrap();
        store.commit_one(create("c", "1")).await.unwrap();
    }
}

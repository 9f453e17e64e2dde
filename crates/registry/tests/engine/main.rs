//! Tests of the engine, mostly on a store in memory, with ConfigMaps and Deployments of the
//! built-in schema: behaviour that needs no HTTP.

mod selective;
mod setup;
mod shared;

use std::sync::Arc;

use pintle_meta::{Status, object};
use pintle_registry::request::{DeleteOptions, ListOptions, PatchType, WriteOptions, granted};
use pintle_registry::results::{Event, Outcome, ResponseBody};
use pintle_value::{Value, json};

use setup::{Engine, context, data, json_body, on_disk, tree};

#[tokio::test]
async fn an_object_is_created_patched_and_deleted() {
    let engine = Engine::new().await;
    let made = engine.create("configmaps", &data(&[("", "a"), ("k", "1")])).await.expect("created");
    assert_eq!(made.str_at(&["kind"]), Some("ConfigMap"));
    assert_eq!(made.str_at(&["metadata", "namespace"]), Some("ns"));
    assert_eq!(made.str_at(&["metadata", "creationTimestamp"]), Some("2023-11-14T22:13:20Z"));
    let again = engine.create("configmaps", &data(&[("", "a")])).await.expect_err("taken");
    assert_eq!((again.code, again.message.as_str()), (409, r#"configmaps "a" already exists"#));

    // A change gives a new version; the same again does not (UPD-16, RV-24).
    let changed =
        engine.merge("configmaps", "a", "", r#"{"data":{"k":"2"}}"#).await.expect("patched");
    assert_ne!(object::resource_version(&changed), object::resource_version(&made));
    let same = engine.merge("configmaps", "a", "", r#"{"data":{"k":"2"}}"#).await.expect("patched");
    assert_eq!(same, changed);

    // A stale version is refused (UPD-01).
    let stale = json::to_string(&made);
    let refused = engine.update("configmaps", "a", "", &stale).await.expect_err("stale");
    assert_eq!(refused.code, 409);

    let target = engine.target("configmaps", "a", "");
    let gone = engine.registry.delete(&target, &DeleteOptions::default(), &context()).await;
    assert!(matches!(gone.expect("deleted").body, ResponseBody::Status(status) if status.success));
    assert_eq!(engine.registry.get(&target, "").await.err().map(|s| s.code), Some(404));
}

const DEPLOYMENT: &str = r#"{"metadata":{"name":"d"},"spec":{"replicas":1,
    "selector":{"matchLabels":{"a":"b"}},
    "template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}},
    "status":{"replicas":9}}"#;

#[tokio::test]
async fn status_and_spec_are_written_separately_and_only_spec_changes_the_generation() {
    let engine = Engine::new().await;
    let made = engine.create("deployments", DEPLOYMENT).await.expect("created");
    assert_eq!(made.at(&["status", "replicas"]), None);
    assert_eq!(object::generation(&made), 1);

    let patch = r#"{"spec":{"replicas":5},"status":{"replicas":3}}"#;
    let status = engine.merge("deployments", "d", "status", patch).await.expect("patched");
    assert_eq!(status.at(&["status", "replicas"]), Some(&Value::Int(3)));
    assert_eq!(status.at(&["spec", "replicas"]), Some(&Value::Int(1)));
    assert_eq!(object::generation(&status), 1);

    let spec = engine.merge("deployments", "d", "", patch).await.expect("patched");
    assert_eq!(spec.at(&["spec", "replicas"]), Some(&Value::Int(5)));
    assert_eq!(object::generation(&spec), 2);

    let scale = r#"{"metadata":{"name":"d"},"spec":{"replicas":7}}"#;
    let scale = engine.update("deployments", "d", "scale", scale).await.expect("scaled");
    assert_eq!(scale.str_at(&["kind"]), Some("Scale"));
    assert_eq!(scale.at(&["spec", "replicas"]), Some(&Value::Int(7)));
    assert_eq!(scale.str_at(&["status", "selector"]), Some("a=b"));
}

#[tokio::test]
async fn a_finalizer_blocks_a_deletion_until_it_is_removed() {
    let engine = Engine::new().await;
    let body = r#"{"metadata":{"name":"a","finalizers":["example.com/x"]}}"#;
    engine.create("configmaps", body).await.expect("created");
    let target = engine.target("configmaps", "a", "");
    let options = DeleteOptions::default();
    for _ in 0..2 {
        let going = engine.registry.delete(&target, &options, &context()).await.expect("accepted");
        assert!(
            matches!(&going.body, ResponseBody::Object(o) if object::is_terminating(&o.tree().unwrap()))
        );
    }
    let more = r#"{"metadata":{"finalizers":["example.com/x","example.com/y"]}}"#;
    let refused = engine.merge("configmaps", "a", "", more).await.expect_err("no new ones");
    assert_eq!(refused.code, 422);
    let freed = r#"{"metadata":{"finalizers":null}}"#;
    engine.merge("configmaps", "a", "", freed).await.expect("the last one goes");
    assert_eq!(engine.registry.get(&target, "").await.err().map(|s| s.code), Some(404));
}

/// A deletion decodes and encodes only the metadata; a dry run answers with the whole object.
#[tokio::test]
async fn a_marked_object_is_the_stored_one_with_other_metadata() {
    let engine = Engine::new().await;
    let deployment = DEPLOYMENT.replacen(r#""name":"d""#, r#""name":"d","finalizers":["x/y"]"#, 1);
    let made = engine.create("deployments", &deployment).await.expect("created");
    let target = engine.target("deployments", "d", "");
    let delete = async |dry_run| {
        let options = DeleteOptions { dry_run, ..DeleteOptions::default() };
        engine.registry.delete(&target, &options, &context()).await.expect("accepted").body
    };
    let ResponseBody::Value(mut expected, _) = delete(true).await else {
        panic!("a tree is expected")
    };
    assert!(object::is_terminating(&expected));
    assert_eq!(expected.get("spec"), made.get("spec"));
    let ResponseBody::Object(marked) = delete(false).await else { panic!("an object is expected") };
    object::metadata_mut(&mut expected).insert("resourceVersion", marked.revision.to_string());
    let mut encoded = Vec::new();
    let resource = &target.resource;
    pintle_schema::encode::write(&resource.schema, resource.ty, &expected, &mut encoded);
    assert_eq!(marked.json(), encoded);
}

/// Objects of one template share a field set when they have left the history. Reads show the same
/// as before, and writes keep what other managers own.
#[tokio::test]
async fn objects_that_share_a_field_set_are_read_and_written_as_before() {
    // A store in memory holds the bytes of its objects, so the cache shares nothing else.
    let directory = tempfile::tempdir().expect("a directory");
    let engine = Engine::on(on_disk(directory.path())).await;
    for name in ["a", "b", "c"] {
        let name = format!(r#""name":"{name}","finalizers":["x/y"]"#);
        let deployment = DEPLOYMENT.replacen(r#""name":"d""#, &name, 1);
        engine.create("deployments", &deployment).await.expect("created");
    }
    let target = engine.target("deployments", "c", "");
    let stored = || engine.registry.peek(&target.resource, "ns", "c").expect("it exists");
    let before = stored();
    engine.registry.trim(engine.registry.head());
    engine.registry.settle_objects().await;
    let after = stored();
    assert!(after.abridged().len() < before.abridged().len(), "the field set is shared");
    assert_eq!(after.json(), before.json());
    assert_eq!(after.pieces().collect::<Vec<_>>().concat(), before.json());
    assert_eq!(after.tree(), before.tree());
    assert!(after.frame(before.kind()).is_none() && before.frame(before.kind()).is_some());

    let managers = |object: &Value| object.at(&["metadata", "managedFields"]).cloned();
    let owned = managers(&before.tree().expect("it is valid")).expect("fields are owned");
    let patch = r#"{"status":{"replicas":3}}"#;
    let patched = engine.merge("deployments", "c", "status", patch).await.expect("patched");
    let entries = managers(&patched).expect("fields are owned");
    let first = |entries: &Value| entries.as_array().and_then(|entries| entries.first().cloned());
    assert_eq!(first(&entries), first(&owned), "the first manager's fields are untouched");
    assert_eq!(entries.as_array().map(<[_]>::len), Some(2));

    engine.registry.trim(engine.registry.head());
    engine.registry.settle_objects().await;
    let deleted = engine.registry.delete(&target, &DeleteOptions::default(), &context()).await;
    let ResponseBody::Object(marked) = deleted.expect("accepted").body else {
        panic!("an object is expected")
    };
    assert_eq!(managers(&marked.tree().expect("it is valid")), Some(entries));
}

#[tokio::test]
async fn all_pages_of_a_list_show_the_state_of_the_first() {
    let engine = Engine::new().await;
    for name in ["a", "b", "c", "d", "e"] {
        engine.create("configmaps", &data(&[("", name)])).await.expect("created");
    }
    let limit = ListOptions { limit: 2, ..ListOptions::default() };
    let first = engine.list(limit.clone()).await.expect("the first page");
    assert_eq!((names(&first), first.remaining), ("a b".to_owned(), Some(3)));
    engine.create("configmaps", &data(&[("", "bb")])).await.expect("created");
    let next = |token: &str| ListOptions { continue_token: token.into(), ..limit.clone() };
    let second = engine.list(next(&first.continue_token)).await.expect("the second page");
    assert_eq!((names(&second), second.remaining), ("c d".to_owned(), Some(1)));
    let third = engine.list(next(&second.continue_token)).await.expect("the third page");
    assert_eq!((names(&third), third.continue_token.as_str()), ("e".to_owned(), ""));
    assert_eq!((first.revision, second.revision), (third.revision, third.revision));
}

fn names(list: &pintle_registry::results::List) -> String {
    let names: Vec<_> = list.objects.iter().map(|o| o.name().to_owned()).collect();
    names.join(" ")
}

#[tokio::test]
async fn a_watch_reports_objects_that_enter_and_leave_its_selection() {
    let engine = Engine::new().await;
    let labelled = |name: &str, value: &str| {
        format!(r#"{{"metadata":{{"name":"{name}","labels":{{"app":"{value}"}}}}}}"#)
    };
    engine.create("configmaps", &labelled("old", "x")).await.expect("created");
    let target = engine.target("configmaps", "", "");
    let options = ListOptions {
        label_selector: "app=x".into(),
        bookmarks: true,
        send_initial_events: Some(true),
        version_match: "NotOlderThan".into(),
        ..ListOptions::default()
    };
    let mut watch = engine.registry.watch(&target, &options).await.expect("a watch");
    engine.create("configmaps", &labelled("other", "y")).await.expect("created");
    let enter = r#"{"metadata":{"labels":{"app":"x"}}}"#;
    engine.merge("configmaps", "other", "", enter).await.expect("patched");
    let leave = r#"{"metadata":{"labels":{"app":"z"}}}"#;
    let left = engine.merge("configmaps", "old", "", leave).await.expect("patched");

    let mut events = Vec::new();
    while events.len() < 4 {
        events.extend(watch.next().await.expect("it goes on"));
    }
    let words: Vec<String> = events.iter().map(describe).collect();
    assert_eq!(words, ["ADDED old x", "BOOKMARK end", "ADDED other x", "DELETED old x"]);
    let Event::Deleted(gone) = &events[3] else { panic!("the last is a deletion") };
    assert_eq!(object::resource_version(&gone.tree().unwrap()), object::resource_version(&left));
}

fn describe(event: &Event) -> String {
    let object = |word: &str, o: &pintle_registry::Object| {
        let tree = o.tree().expect("a stored object is readable");
        format!(
            "{word} {} {}",
            o.name(),
            tree.str_at(&["metadata", "labels", "app"]).unwrap_or("-")
        )
    };
    match event {
        Event::Added(o) => object("ADDED", o),
        Event::Modified(o) => object("MODIFIED", o),
        Event::Deleted(o) => object("DELETED", o),
        Event::Bookmark { initial_end: true, .. } => "BOOKMARK end".to_owned(),
        Event::Bookmark { .. } => "BOOKMARK".to_owned(),
        Event::Error(status) => format!("ERROR {}", status.code),
    }
}

#[tokio::test]
async fn concurrent_patches_without_a_version_all_take_effect() {
    let engine = Arc::new(Engine::new().await);
    engine.create("configmaps", &data(&[("", "a")])).await.expect("created");
    let mut writers = Vec::new();
    for i in 0..64 {
        let engine = engine.clone();
        writers.push(tokio::spawn(async move {
            for round in 0..10 {
                let patch = format!(r#"{{"data":{{"k{i}":"{round}"}}}}"#);
                engine.merge("configmaps", "a", "", &patch).await?;
            }
            Ok::<_, Status>(())
        }));
    }
    for writer in writers {
        writer.await.expect("no panic").expect("no conflict (UPD-13)");
    }
    let now = engine.registry.get(&engine.target("configmaps", "a", ""), "").await.expect("there");
    let now = tree(now).expect("an object");
    assert_eq!(now.get("data").and_then(Value::as_object).map(pintle_value::Map::len), Some(64));
}

/// SSA-02: a client that may patch but not create can apply to existing objects only.
#[tokio::test]
async fn an_apply_that_creates_needs_the_verb_create() {
    let engine = Engine::new().await;
    let refuse = || Err(Status::bad_request("may not create"));
    let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}}"#;
    let refused = engine.apply("a", body, &refuse).await.expect_err("nothing is made");
    assert_eq!(refused.message, "may not create");
    engine.apply("a", body, &granted).await.expect("it is made");
    engine.apply("a", body, &refuse).await.expect("an update needs no permission to create");
}

/// SSAI-08: an object that is too large with its managed fields is stored without them, unless the
/// write is an apply.
#[tokio::test]
async fn an_object_that_is_too_large_is_stored_without_managed_fields() {
    let engine = Engine::new().await;
    let keys = (0..20_000).map(|n| format!("\"{n:0>60}\":\"\""));
    let data = keys.collect::<Vec<_>>().join(",");
    let body = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},"data":{{{data}}}}}"#
    );
    let managers = |tree: &Value| tree.at(&["metadata", "managedFields"]).cloned();
    let refused = engine.apply("a", &body, &granted).await.expect_err("it is too large");
    // Above the message limit of etcd's client, the client refuses.
    let why = "rpc error: code = ResourceExhausted desc = trying to send message larger than max";
    assert_eq!((refused.code, refused.message.split(" (").next()), (500, Some(why)));
    let created = engine.create("configmaps", &body).await.expect("it is made");
    assert_eq!(managers(&created), None);
    let small = r#"{"metadata":{"name":"b"},"data":{"k":"v"}}"#;
    assert!(managers(&engine.create("configmaps", small).await.expect("it is made")).is_some());
    let large = format!(r#"{{"metadata":{{"name":"b"}},"data":{{{data}}}}}"#);
    let updated = engine.update("configmaps", "b", "", &large).await.expect("it is changed");
    assert_eq!(managers(&updated), None);
}

/// A dry run answers as the write would (DRY-06), without fields that a conversion drops:
/// controllers compare the answer to see whether there is anything to do.
#[tokio::test]
async fn a_dry_run_answers_as_a_later_read_would() {
    let engine = Engine::new().await;
    let dry = WriteOptions { dry_run: true, ..WriteOptions::default() };
    let expected = r#"{"k":"1"}"#;
    let check = |outcome: Result<Outcome, Status>| {
        let tree = tree(outcome.expect("written")).expect("an object");
        assert_eq!(json::to_string(tree.get("data").expect("data")), expected);
    };
    let target = engine.target("forgetful", "", "");
    let body = json_body(&data(&[("", "a"), ("k", "1"), ("lost", "x")]));
    check(engine.registry.create(&target, &body, &dry, &context()).await);
    check(engine.registry.create(&target, &body, &WriteOptions::default(), &context()).await);

    let target = engine.target("forgetful", "a", "");
    let patch = br#"{"data":{"lost":"y"}}"#;
    for options in [&dry, &WriteOptions::default()] {
        let kind = PatchType::Merge;
        check(engine.registry.patch(&target, patch, kind, options, &context(), &granted).await);
    }
    check(engine.registry.update(&target, &body, &dry, &context(), &granted).await);
}

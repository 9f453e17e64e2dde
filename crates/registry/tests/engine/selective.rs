//! Lists and watches by a selectable field of which few objects have the same value: an index
//! answers them, and must give what a look at all objects gives.

use std::sync::Arc;

use pintle_meta::Status;
use pintle_registry::Object;
use pintle_registry::request::{DeleteOptions, ListOptions};
use pintle_registry::results::Event;
use pintle_store::{Change, Expect, Group, Key, Template, Write};

use crate::setup::{Engine, context, data};
use crate::shared::sharing;

/// More objects than a list would rather look at one by one.
const OBJECTS: u64 = 400;

/// How many values the field has.
const NODES: u64 = 20;

fn on(node: u64) -> ListOptions {
    ListOptions { field_selector: format!("data.node=n{node}").into(), ..ListOptions::default() }
}

fn object(name: &str, node: u64) -> String {
    data(&[("", name), ("node", &format!("n{node}"))])
}

async fn fill(engine: &Engine) {
    for n in 0..OBJECTS {
        let body = object(&format!("o{n}"), n % NODES);
        engine.create("configmaps", &body).await.expect("created");
    }
}

/// Returns a list, and how many objects it looked at.
async fn looked_at(engine: &Engine, options: ListOptions) -> (usize, u64) {
    let stored = engine.registry.stored();
    let found = stored.into_iter().find(|stored| &*stored.name == "configmaps");
    let reads = found.expect("it has objects").reads;
    let before = reads.looked_at.get();
    let list = engine.list(options).await.expect("a list");
    (list.objects.len(), reads.looked_at.get() - before)
}

#[tokio::test]
async fn a_list_looks_at_the_objects_with_its_value() {
    let engine = Engine::new().await;
    fill(&engine).await;
    let few = OBJECTS / NODES;
    assert_eq!(looked_at(&engine, on(3)).await, (few as usize, few));
    engine.create("configmaps", &object("new", 3)).await.expect("created");
    engine.merge("configmaps", "o4", "", r#"{"data":{"node":"n3"}}"#).await.expect("patched");
    assert_eq!(looked_at(&engine, on(3)).await, (few as usize + 2, few + 2));
    assert_eq!(looked_at(&engine, on(4)).await, (few as usize - 1, few - 1));
    assert_eq!(looked_at(&engine, on(99)).await, (0, 0));
    // A list that names an object looks at that one, without an index.
    let named = ListOptions { field_selector: "metadata.name=o3,data.node=n3".into(), ..on(3) };
    assert_eq!(looked_at(&engine, named).await, (1, 1));
}

/// Many objects with one value are found by looking at all.
#[tokio::test]
async fn a_list_of_a_value_that_many_objects_have_is_complete() {
    const MANY: u64 = 1_100;
    let engine = Engine::new().await;
    fill(&engine).await;
    for n in 0..MANY {
        engine.create("configmaps", &object(&format!("m{n}"), 99)).await.expect("created");
    }
    assert_eq!(looked_at(&engine, on(99)).await, (MANY as usize, OBJECTS + MANY));
    let few = OBJECTS / NODES;
    assert_eq!(looked_at(&engine, on(3)).await, (few as usize, few));

    let engine = Engine::new().await;
    for n in 0..MANY {
        engine.create("configmaps", &object(&format!("m{n}"), 0)).await.expect("created");
    }
    for options in [on(0), on(1), on(0)] {
        assert_eq!(looked_at(&engine, options).await.1, MANY, "no index helps");
    }
}

/// Returns the names and versions of the objects on a node: by a selector, and by looking at all.
async fn both(engine: &Engine, node: u64) -> [Vec<(String, u64)>; 2] {
    let named = |object: &Arc<Object>| (object.name().to_owned(), object.revision.0);
    let selected = engine.list(on(node)).await.expect("a list");
    let all = engine.list(ListOptions::default()).await.expect("a list");
    assert_eq!(selected.revision, all.revision);
    let wanted = format!("n{node}");
    let is_wanted = |object: &&Arc<Object>| {
        let tree = object.tree().expect("it is valid");
        tree.str_at(&["data", "node"]).unwrap_or_default() == wanted
    };
    let of_all = all.objects.iter().filter(is_wanted).map(named).collect();
    [selected.objects.iter().map(named).collect(), of_all]
}

#[tokio::test]
async fn a_list_of_one_value_agrees_with_a_list_of_all() {
    let engine = Engine::new().await;
    fill(&engine).await;
    let mut random = 7_u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % below
    };
    for step in 0..2_000 {
        let (name, node) = (format!("o{}", next(OBJECTS + 20)), next(NODES));
        let patch = format!(r#"{{"data":{{"node":"n{node}"}}}}"#);
        let target = engine.target("configmaps", &name, "");
        match next(3) {
            0 => _ = engine.create("configmaps", &object(&name, node)).await,
            1 => _ = engine.merge("configmaps", &name, "", &patch).await,
            _ => {
                let options = DeleteOptions::default();
                _ = engine.registry.delete(&target, &options, &context()).await;
            }
        }
        if next(400) == 0 {
            engine.registry.trim(engine.registry.head()); // the index is made anew
        }
        // Sometimes few changes, sometimes more than are applied at once, have happened.
        if next(3) == 0 && !(300..=1_500).contains(&step) {
            let [selected, of_all] = both(&engine, node).await;
            assert_eq!(selected, of_all, "step {step}");
        }
    }
}

#[tokio::test]
async fn pages_of_one_value_show_the_state_of_the_first() {
    let engine = Engine::new().await;
    fill(&engine).await;
    let [before, _] = both(&engine, 3).await;
    let mut options = ListOptions { limit: 7, ..on(3) };
    let mut seen = Vec::new();
    loop {
        let page = engine.list(options.clone()).await.expect("a page");
        assert_eq!(page.remaining, None, "a list with a selector does not count");
        seen.extend(page.objects.iter().map(|o| (o.name().to_owned(), o.revision.0)));
        engine.create("configmaps", &object(&format!("new-{}", seen.len()), 3)).await.expect("new");
        if page.continue_token.is_empty() {
            break;
        }
        options.continue_token = page.continue_token.into();
    }
    assert_eq!((seen.len() as u64, seen), (OBJECTS / NODES, before));
}

#[tokio::test]
async fn a_watch_of_one_value_begins_with_its_objects() {
    let engine = Engine::new().await;
    fill(&engine).await;
    let options = ListOptions {
        bookmarks: true,
        send_initial_events: Some(true),
        version_match: "NotOlderThan".into(),
        ..on(5)
    };
    let target = engine.target("configmaps", "", "");
    let mut watch = engine.registry.watch(&target, &options).await.expect("a watch");
    let events = watch.next().await.expect("the initial events");
    assert_eq!(events.len() as u64, OBJECTS / NODES + 1);
    assert!(matches!(events.last(), Some(Event::Bookmark { initial_end: true, .. })));
    engine.create("configmaps", &object("new", 5)).await.expect("created");
    let events = watch.next().await.expect("an event");
    assert!(matches!(&*events, [Event::Added(object)] if object.name() == "new"));
}

/// An object that cannot be read may have the value, so the list fails.
#[tokio::test]
async fn an_unreadable_object_is_not_omitted() {
    let (engine, store) = sharing().await;
    fill(&engine).await;
    let count = async |node| Ok::<_, Status>(engine.list(on(node)).await?.objects.len() as u64);
    assert_eq!(count(1).await, Ok(OBJECTS / NODES));
    let put = async |text: &str| {
        let resource = engine.target("configmaps", "", "").resource;
        let stored = engine.registry.peek(&resource, "ns", "o1").expect("it exists");
        let first = Write {
            key: Key { collection: "configmaps".into(), item: stored.item.clone() },
            expect: Expect::At(stored.revision),
            change: Change::Put(Template::whole(text.as_bytes().to_vec())),
            note: None,
        };
        let group = Group { first, rest: Vec::new(), unchanged: Vec::new() };
        store.commit(group).await.expect("committed");
    };
    put("{\"metadata\":").await;
    for node in [1, 2] {
        let refused = count(node).await.expect_err("one object cannot be read");
        assert!(refused.message.contains("ns/o1"), "{}", refused.message);
    }
    put(r#"{"metadata":{"name":"o1","namespace":"ns"},"data":{"node":"n2"}}"#).await;
    assert_eq!(count(1).await, Ok(OBJECTS / NODES - 1));
    assert_eq!(count(2).await, Ok(OBJECTS / NODES + 1));
}

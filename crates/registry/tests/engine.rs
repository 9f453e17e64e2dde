//! The engine over a store in memory, with ConfigMaps and Deployments as they stand in the built-in
//! schema: what no HTTP is needed to see.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pintle_meta::{GroupVersionKind, GroupVersionResource, Status, User, object};
use pintle_registry::admission::AdmitAll;
use pintle_registry::answer::{Answer, Event, Outcome};
use pintle_registry::request::{
    Body, Context, DeleteOptions, Encoding, ListOptions, Now, PatchType, Target, Warnings,
    WriteOptions, granted,
};
use pintle_registry::table::{Column, Printer, Row};
use pintle_registry::{
    Etcd, EtcdForm, Generation, Keeping, Kept, Members, Options, Registry, ResourceDefinition,
    ScalePaths, Scope, Storage, Strategy, Subresource, SubresourceBehaviour,
};
use pintle_value::{Value, json};

struct Blank;

impl Printer for Blank {
    fn columns(&self) -> &[Column] {
        &[]
    }

    fn row(&self, _: &Value) -> Row {
        Row::default()
    }
}

/// Of a kind with a status.
struct WithStatus(Generation);

impl Strategy for WithStatus {
    fn qualified_finalizers(&self) -> bool {
        true
    }

    fn unconditional_update(&self) -> bool {
        true
    }

    fn reset_fields(&self) -> Members {
        &[&["status"]]
    }

    fn generation(&self) -> Generation {
        self.0
    }
}

fn definition(
    group: &str,
    resource: &str,
    kind: &str,
    generation: Generation,
) -> ResourceDefinition {
    let schema = pintle_schema::builtin();
    let package = if group.is_empty() { "core" } else { group };
    let ty = schema.find(&format!("io.k8s.api.{package}.v1.{kind}")).expect("a built-in type");
    let part = |name: &str, kind: GroupVersionKind, behaviour| Subresource {
        name: name.into(),
        kind,
        verbs: Vec::new(),
        behaviour,
        printer: None,
    };
    ResourceDefinition {
        resource: GroupVersionResource::new(group, "v1", resource),
        kind: kind.into(),
        list_kind: format!("{kind}List").into(),
        singular: kind.to_lowercase().into(),
        scope: Scope::Namespaced,
        verbs: Vec::new(),
        short_names: Vec::new(),
        categories: Vec::new(),
        storage_kind: GroupVersionKind::new(group, "v1", kind),
        schema: Arc::new(schema.clone()),
        ty,
        strategy: Arc::new(WithStatus(generation)),
        subresources: vec![
            part(
                "status",
                GroupVersionKind::new(group, "v1", kind),
                SubresourceBehaviour::Part(&[&["status"]]),
            ),
            part(
                "scale",
                GroupVersionKind::new("autoscaling", "v1", "Scale"),
                SubresourceBehaviour::Scale(Arc::new(ScalePaths {
                    spec_replicas: vec!["spec".into(), "replicas".into()],
                    status_replicas: vec!["status".into(), "replicas".into()],
                    selector: Some(vec!["spec".into(), "selector".into()]),
                })),
            ),
        ],
        printer: Arc::new(Blank),
        storage: Some(Storage {
            collection: resource.into(),
            etcd: Etcd { prefix: resource.into(), form: EtcdForm::Protobuf },
            conversion: None,
            keeping: None,
            definer: None,
        }),
        allocator: None,
        action: None,
        deprecation: None,
        typed_items: false,
        described: None,
    }
}

/// Objects are kept in a version that knows nothing of `data.lost`.
struct Forgets;

impl Keeping for Forgets {
    fn is_kept_form(&self) -> bool {
        false
    }

    fn converts(&self) -> bool {
        true
    }

    fn keep(&self, mut objects: Vec<Value>) -> Kept<'_> {
        for data in objects.iter_mut().filter_map(|object| object.get_mut("data")) {
            data.make_object().remove("lost");
        }
        Box::pin(async { Ok(objects) })
    }

    fn read(&self, objects: Vec<Value>) -> Kept<'_> {
        Box::pin(async { Ok(objects) })
    }

    fn convert<'a>(&'a self, objects: Vec<Value>, _: &'a str) -> Kept<'a> {
        Box::pin(async { Ok(objects) })
    }
}

/// Different bytes at every call, the same in every run.
fn entropy(bytes: &mut [u8]) {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let mut state = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for byte in bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *byte = (state >> 56) as u8;
    }
}

struct Engine {
    registry: Registry,
}

impl Engine {
    async fn new() -> Self {
        let options = Options {
            store: Box::new(pintle_store::memory(u64::MAX).expect("memory is to be had")),
            admission: Arc::new(AdmitAll),
            entropy,
            garbage_collection: false,
            history_bytes_max: usize::MAX,
            encodings_bytes_max: 1 << 20,
        };
        let mut forgetful = definition("", "forgetful", "ConfigMap", Generation::None);
        forgetful.storage =
            forgetful.storage.map(|s| Storage { keeping: Some(Arc::new(Forgets)), ..s });
        let definitions = vec![
            forgetful,
            definition("", "configmaps", "ConfigMap", Generation::None),
            definition("apps", "deployments", "Deployment", Generation::Spec),
        ];
        Self { registry: Registry::open(options, definitions).await.expect("an empty store opens") }
    }

    fn target(&self, resource: &str, name: &str, subresource: &str) -> Target {
        let group = if resource == "deployments" { "apps" } else { "" };
        let gvr = GroupVersionResource::new(group, "v1", resource);
        Target {
            resource: self.registry.resource(&gvr).expect("served"),
            namespace: "ns".into(),
            name: name.into(),
            subresource: subresource.into(),
        }
    }

    async fn create(&self, resource: &str, body: &str) -> Result<Value, Status> {
        let target = self.target(resource, "", "");
        let (body, options, context) = (json_body(body), WriteOptions::default(), context());
        tree(self.registry.create(&target, &body, &options, &context).await?)
    }

    async fn update(
        &self,
        resource: &str,
        name: &str,
        part: &str,
        body: &str,
    ) -> Result<Value, Status> {
        let target = self.target(resource, name, part);
        let (body, options, context) = (json_body(body), WriteOptions::default(), context());
        tree(self.registry.update(&target, &body, &options, &context, &granted).await?)
    }

    async fn merge(
        &self,
        resource: &str,
        name: &str,
        part: &str,
        patch: &str,
    ) -> Result<Value, Status> {
        let target = self.target(resource, name, part);
        let options = WriteOptions::default();
        let patch = patch.as_bytes();
        tree(
            self.registry
                .patch(&target, patch, PatchType::Merge, &options, &context(), &granted)
                .await?,
        )
    }

    async fn apply(
        &self,
        name: &str,
        body: &str,
        may_create: &pintle_registry::request::MayCreate<'_>,
    ) -> Result<Value, Status> {
        let target = self.target("configmaps", name, "");
        let options = WriteOptions { field_manager: "me".into(), ..WriteOptions::default() };
        let (body, kind) = (body.as_bytes(), PatchType::Apply(Encoding::Yaml));
        tree(self.registry.patch(&target, body, kind, &options, &context(), may_create).await?)
    }

    async fn list(&self, options: ListOptions) -> Result<pintle_registry::answer::List, Status> {
        self.registry.list(&self.target("configmaps", "", ""), &options).await
    }
}

fn json_body(text: &str) -> Body {
    Body { bytes: text.to_owned().into(), encoding: Encoding::Json }
}

fn context() -> Context {
    let now = Now { unix_micros: 1_700_000_000_000_000 };
    Context {
        now,
        user: Arc::new(User { name: "someone".to_owned(), ..User::default() }),
        user_agent: "test".into(),
        warnings: Warnings::default(),
        waited: Arc::default(),
    }
}

fn tree(outcome: Outcome) -> Result<Value, Status> {
    match outcome.answer {
        Answer::Object(object) => Ok(object.tree()?),
        Answer::Value(tree, _) => Ok(tree),
        Answer::Status(status) => Err(status),
    }
}

fn data(pairs: &[(&str, &str)]) -> String {
    let (name, pairs) = (pairs[0].1, &pairs[1..]);
    let data: Value =
        Value::Object(pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect());
    format!(r#"{{"metadata":{{"name":"{name}"}},"data":{}}}"#, json::to_string(&data))
}

#[tokio::test]
async fn an_object_lives_through_its_verbs() {
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
    assert!(matches!(gone.expect("deleted").answer, Answer::Status(status) if status.success));
    assert_eq!(engine.registry.get(&target, "").await.err().map(|s| s.code), Some(404));
}

const DEPLOYMENT: &str = r#"{"metadata":{"name":"d"},"spec":{"replicas":1,
    "selector":{"matchLabels":{"a":"b"}},
    "template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}},
    "status":{"replicas":9}}"#;

#[tokio::test]
async fn status_and_spec_are_written_apart_and_only_the_spec_counts() {
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
async fn a_finalizer_holds_an_object_until_it_is_removed() {
    let engine = Engine::new().await;
    let body = r#"{"metadata":{"name":"a","finalizers":["example.com/x"]}}"#;
    engine.create("configmaps", body).await.expect("created");
    let target = engine.target("configmaps", "a", "");
    let options = DeleteOptions::default();
    for _ in 0..2 {
        let going = engine.registry.delete(&target, &options, &context()).await.expect("accepted");
        assert!(
            matches!(&going.answer, Answer::Object(o) if object::is_terminating(&o.tree().unwrap()))
        );
    }
    let more = r#"{"metadata":{"finalizers":["example.com/x","example.com/y"]}}"#;
    let refused = engine.merge("configmaps", "a", "", more).await.expect_err("no new ones");
    assert_eq!(refused.code, 422);
    let freed = r#"{"metadata":{"finalizers":null}}"#;
    engine.merge("configmaps", "a", "", freed).await.expect("the last one goes");
    assert_eq!(engine.registry.get(&target, "").await.err().map(|s| s.code), Some(404));
}

#[tokio::test]
async fn pages_are_of_one_state_whatever_happens_between_them() {
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

fn names(list: &pintle_registry::answer::List) -> String {
    let names: Vec<_> = list.objects.iter().map(|o| o.name().to_owned()).collect();
    names.join(" ")
}

#[tokio::test]
async fn a_watch_tells_what_enters_and_leaves_its_selection() {
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

    let mut told = Vec::new();
    while told.len() < 4 {
        told.extend(watch.next().await.expect("it goes on"));
    }
    let words: Vec<String> = told.iter().map(describe).collect();
    assert_eq!(words, ["ADDED old x", "BOOKMARK end", "ADDED other x", "DELETED old x"]);
    let Event::Deleted(gone) = &told[3] else { panic!("the last is a deletion") };
    assert_eq!(object::resource_version(&gone.tree().unwrap()), object::resource_version(&left));
}

fn describe(event: &Event) -> String {
    let object = |word: &str, o: &pintle_registry::Object| {
        let tree = o.tree().expect("what is kept can be read");
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

/// SSA-02: who may patch and not create applies to what is there only.
#[tokio::test]
async fn an_apply_that_creates_needs_leave_to_create() {
    let engine = Engine::new().await;
    let refuse = || Err(Status::bad_request("may not create"));
    let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}}"#;
    let refused = engine.apply("a", body, &refuse).await.expect_err("nothing is made");
    assert_eq!(refused.message, "may not create");
    engine.apply("a", body, &granted).await.expect("it is made");
    engine.apply("a", body, &refuse).await.expect("nobody asks");
}

/// SSAI-08: the managers of an object that is too large with them are forgotten, but not when they are
/// what the write is about.
#[tokio::test]
async fn an_object_that_is_too_large_goes_without_its_managers() {
    let engine = Engine::new().await;
    let keys = (0..20_000).map(|n| format!("\"{n:0>60}\":\"\""));
    let data = keys.collect::<Vec<_>>().join(",");
    let body = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},"data":{{{data}}}}}"#
    );
    let managers = |tree: &Value| tree.at(&["metadata", "managedFields"]).cloned();
    let refused = engine.apply("a", &body, &granted).await.expect_err("it is too large");
    // Above etcd's greatest message it is its client that refuses.
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

/// What a dry run answers is what the write would (DRY-06): also what a conversion loses is not in it, by
/// which controllers see that there is nothing to do.
#[tokio::test]
async fn a_dry_run_says_what_would_be_read() {
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

//! Conversion webhooks: right, slow, wrong, down (CRD-14). Whatever one responds, nothing is lost
//! and nothing wrong is stored.

mod owners;

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use futures_util::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
    WatchEvent, WatchParams,
};
use kube::core::{GroupVersionKind, Status};
use kube::{Api, Error, ResourceExt as _};
use parking_lot::{Condvar, Mutex};
use serde_json::{Value, json};

use crate::webhook::Webhook;
use crate::{World, object};

const DEFINITION: &str = "things.example.com";

type Mood = Arc<dyn Fn(&Value) -> Value + Send + Sync>;

/// A server with things in two versions: `v1`, the stored one, has a host and a port; `v2` has both
/// in one text.
struct Things {
    world: World,
    webhook: Webhook,
    mood: Arc<Mutex<Mood>>,
}

impl Things {
    async fn start() -> Result<Self> {
        let world = World::start().await?;
        let mood: Arc<Mutex<Mood>> = Arc::new(Mutex::new(Arc::new(honest)));
        let moods = mood.clone();
        let webhook = Webhook::start(move |_, request| {
            let mood = moods.lock().clone();
            mood(request)
        })?;
        let things = Self { world, webhook, mood };
        things.define().await?;
        Ok(things)
    }

    async fn define(&self) -> Result<()> {
        let version = |name: &str, field: &str, spec: Value| {
            json!({
                "name": name, "served": true, "storage": name == "v1",
                "selectableFields": [{"jsonPath": field}],
                "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": {"type": "object", "properties": spec}},
                }},
            })
        };
        let client_config = json!({"url": self.webhook.url, "caBundle": self.webhook.ca_bundle});
        let definition: CustomResourceDefinition = object(json!({
            "metadata": {"name": DEFINITION},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "things", "kind": "Thing"},
                "versions": [
                    version(
                        "v1",
                        ".spec.host",
                        json!({"host": {"type": "string"}, "port": {"type": "integer"}}),
                    ),
                    version("v2", ".spec.hostPort", json!({"hostPort": {"type": "string"}})),
                ],
                "conversion": {"strategy": "Webhook", "webhook": {
                    "clientConfig": client_config, "conversionReviewVersions": ["v1"],
                }},
            },
        }))?;
        self.definitions().create(&PostParams::default(), &definition).await?;
        let is_served = kube::runtime::conditions::is_crd_established();
        kube::runtime::wait::await_condition(self.definitions(), DEFINITION, is_served).await?;
        Ok(())
    }

    fn definitions(&self) -> Api<CustomResourceDefinition> {
        Api::all(self.world.client.clone())
    }

    async fn redefine(&self, patch: Value) -> Result<()> {
        let patch = Patch::Merge(patch);
        self.definitions().patch(DEFINITION, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    fn answers(&self, mood: impl Fn(&Value) -> Value + Send + Sync + 'static) {
        *self.mood.lock() = Arc::new(mood);
    }

    fn within(&self, version: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("example.com", version, "Thing");
        let resource = ApiResource::from_gvk_with_plural(&kind, "things");
        Api::namespaced_with(self.world.client.clone(), "t", &resource)
    }

    async fn create(&self, version: &str, name: &str, spec: Value) -> kube::Result<DynamicObject> {
        let mut thing = thing(version, name);
        thing.data["spec"] = spec;
        self.within(version).create(&PostParams::default(), &thing).await
    }

    async fn spec(&self, version: &str, name: &str) -> Result<Value> {
        Ok(self.within(version).get(name).await?.data["spec"].clone())
    }
}

fn thing(version: &str, name: &str) -> DynamicObject {
    let kind = GroupVersionKind::gvk("example.com", version, "Thing");
    DynamicObject::new(name, &ApiResource::from_gvk_with_plural(&kind, "things")).data(json!({}))
}

/// Converts everything correctly.
fn honest(request: &Value) -> Value {
    let wanted = request["desiredAPIVersion"].as_str().unwrap_or_default();
    let objects = request["objects"].as_array().cloned().unwrap_or_default();
    let converted: Vec<Value> = objects.into_iter().map(|object| convert(object, wanted)).collect();
    json!({"result": {"status": "Success"}, "convertedObjects": converted})
}

fn convert(mut object: Value, wanted: &str) -> Value {
    let spec = &object["spec"];
    let converted = match wanted {
        "example.com/v2" if spec["host"].is_string() || spec["port"].is_i64() => {
            let host = spec["host"].as_str().unwrap_or_default();
            json!({"hostPort": format!("{host}:{}", spec["port"].as_i64().unwrap_or_default())})
        }
        "example.com/v1" if spec["hostPort"].is_string() => {
            let both = spec["hostPort"].as_str().and_then(|text| text.split_once(':'));
            let (host, port) = both.unwrap_or(("", "0"));
            json!({"host": host, "port": port.parse::<i64>().unwrap_or_default()})
        }
        _ => json!({}),
    };
    object["spec"] = converted;
    object["apiVersion"] = json!(wanted);
    object
}

fn failure<T>(outcome: kube::Result<T>) -> Result<Box<Status>> {
    match outcome {
        Err(Error::Api(status)) => Ok(status),
        Err(other) => Err(other.into()),
        Ok(_) => Err(anyhow::anyhow!("it worked")),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_in_any_version_is_read_in_every_version() -> Result<()> {
    let things = Things::start().await?;
    let (v1, v2) = (things.within("v1"), things.within("v2"));
    let made = things.create("v2", "a", json!({"hostPort": "h:1"})).await?;
    ensure!(made.data["spec"] == json!({"hostPort": "h:1"}), "{made:?}");
    ensure!(things.spec("v1", "a").await? == json!({"host": "h", "port": 1}));

    let plain = PatchParams::default();
    let patch = Patch::Merge(json!({"spec": {"hostPort": "g:2"}}));
    let patched = v2.patch("a", &plain, &patch).await?;
    ensure!(patched.data["spec"] == json!({"hostPort": "g:2"}), "{patched:?}");
    ensure!(things.spec("v1", "a").await? == json!({"host": "g", "port": 2}));
    v1.patch("a", &plain, &Patch::Merge(json!({"spec": {"port": 3}}))).await?;
    ensure!(things.spec("v2", "a").await? == json!({"hostPort": "g:3"}));

    let apply = PatchParams::apply("m").force();
    let mut applied = thing("v1", "a");
    applied.data["spec"] = json!({"host": "x", "port": 4});
    v1.patch("a", &apply, &Patch::Apply(&applied)).await?;
    ensure!(things.spec("v2", "a").await? == json!({"hostPort": "x:4"}));
    let mut applied = thing("v2", "a");
    applied.data["spec"] = json!({"hostPort": "y:5"});
    let got = v2.patch("a", &apply, &Patch::Apply(&applied)).await?;
    let own = got.managed_fields().iter().find(|entry| entry.manager.as_deref() == Some("m"));
    let version = own.and_then(|entry| entry.api_version.as_deref());
    ensure!(version == Some("example.com/v2"), "{version:?}");
    ensure!(things.spec("v1", "a").await? == json!({"host": "y", "port": 5}));

    let mut stale = made;
    stale.data["spec"] = json!({"hostPort": "z:6"});
    let status = failure(v2.replace("a", &PostParams::default(), &stale).await)?;
    ensure!(status.code == 409, "{status:?}");
    v2.delete("a", &DeleteParams::default()).await?;
    ensure!(v1.get_opt("a").await?.is_none());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_converted_by_one_call_also_after_a_storage_migration() -> Result<()> {
    let things = Things::start().await?;
    for i in 0..5 {
        things.create("v1", &format!("old-{i}"), json!({"host": "h", "port": i})).await?;
    }
    ensure!(
        things.webhook.requests().is_empty(),
        "objects of the stored version are not converted"
    );
    let list = things.within("v2").list(&ListParams::default()).await?;
    let texts = |list: &[DynamicObject]| -> Vec<Value> {
        list.iter().map(|thing| thing.data["spec"]["hostPort"].clone()).collect()
    };
    ensure!(texts(&list.items) == ["h:0", "h:1", "h:2", "h:3", "h:4"], "{list:?}");
    let requests: Vec<_> = things.webhook.requests();
    let counts: Vec<_> =
        requests.iter().map(|r| r["objects"].as_array().map_or(0, Vec::len)).collect();
    ensure!(counts == [5], "{counts:?}");

    let definition = things.definitions().get(DEFINITION).await?;
    let mut spec = serde_json::to_value(&definition.spec)?;
    spec["versions"][0]["storage"] = json!(false);
    spec["versions"][1]["storage"] = json!(true);
    things.redefine(json!({"spec": {"versions": spec["versions"]}})).await?;
    let stored = things.definitions().get(DEFINITION).await?.status.and_then(|s| s.stored_versions);
    ensure!(stored == Some(vec!["v1".to_owned(), "v2".to_owned()]), "{stored:?}");
    things.create("v2", "young", json!({"hostPort": "y:9"})).await?;
    let list = things.within("v2").list(&ListParams::default()).await?;
    ensure!(texts(&list.items) == ["h:0", "h:1", "h:2", "h:3", "h:4", "y:9"], "{list:?}");
    let list = things.within("v1").list(&ListParams::default()).await?;
    ensure!(
        list.items.iter().map(|t| t.data["spec"]["port"].as_i64()).sum::<Option<i64>>() == Some(19)
    );
    let wrong = |request: &Value| {
        let objects = request["objects"].as_array().into_iter().flatten();
        objects.into_iter().any(|object| object["apiVersion"] == request["desiredAPIVersion"])
    };
    ensure!(
        !things.webhook.requests().iter().any(wrong),
        "an object was sent that was there already"
    );

    // After one more write each is stored in the new version, so the webhook is no longer needed.
    for thing in things.within("v2").list(&ListParams::default()).await?.items {
        things.within("v2").replace(&thing.name_any(), &PostParams::default(), &thing).await?;
    }
    things.answers(|_| Value::Null);
    let list = things.within("v2").list(&ListParams::default()).await?;
    ensure!(texts(&list.items) == ["h:0", "h:1", "h:2", "h:3", "h:4", "y:9"], "{list:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_report_changes_in_their_own_version() -> Result<()> {
    let things = Things::start().await?;
    let start = things.within("v2").list(&ListParams::default()).await?;
    let from = start.metadata.resource_version.context("no version")?;
    let mut events = things.within("v2").watch(&WatchParams::default(), &from).await?.boxed();
    things.create("v1", "a", json!({"host": "h", "port": 1})).await?;
    let patch = Patch::Merge(json!({"spec": {"port": 2}}));
    things.within("v1").patch("a", &PatchParams::default(), &patch).await?;
    things.within("v1").delete("a", &DeleteParams::default()).await?;
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let (word, thing) = match events.try_next().await?.context("the watch ended")? {
            WatchEvent::Added(thing) => ("added", thing),
            WatchEvent::Modified(thing) => ("modified", thing),
            WatchEvent::Deleted(thing) => ("deleted", thing),
            other => anyhow::bail!("{other:?}"),
        };
        let version = thing.types.map(|types| types.api_version).unwrap_or_default();
        seen.push(json!([word, version, thing.data["spec"]["hostPort"]]));
    }
    let v2 = "example.com/v2";
    let expected = [
        json!(["added", v2, "h:1"]),
        json!(["modified", v2, "h:2"]),
        json!(["deleted", v2, "h:2"]),
    ];
    ensure!(seen == expected, "{seen:?}");
    Ok(())
}

/// Selectors can use fields that only the webhook makes, in the version that has them.
#[tokio::test(flavor = "multi_thread")]
async fn field_selectors_use_the_requested_version() -> Result<()> {
    let things = Things::start().await?;
    for (name, host) in [("a", "h"), ("b", "g"), ("c", "h")] {
        things.create("v1", name, json!({"host": host, "port": 1})).await?;
    }
    let (v1, v2) = (things.within("v1"), things.within("v2"));
    let selected = ListParams::default().fields("spec.hostPort=h:1");
    let names = |list: &[DynamicObject]| list.iter().map(|t| t.name_any()).collect::<Vec<_>>();
    let list = v2.list(&selected).await?;
    ensure!(names(&list.items) == ["a", "c"], "{list:?}");
    let page = v2.list(&selected.clone().limit(1)).await?;
    ensure!(names(&page.items) == ["a"], "{page:?}");
    let token = page.metadata.continue_.context("no token")?;
    let page = v2.list(&selected.clone().limit(1).continue_token(&token)).await?;
    ensure!(names(&page.items) == ["c"], "{page:?}");
    let list = v1.list(&ListParams::default().fields("spec.host=g")).await?;
    ensure!(names(&list.items) == ["b"], "{list:?}");
    let unknown = v1.list(&ListParams::default().fields("spec.hostPort=h:1")).await.map(drop);
    ensure!(failure(unknown)?.message == "field label not supported: spec.hostPort");

    let from = list.metadata.resource_version.context("no version")?;
    let fields = WatchParams::default().fields("spec.hostPort=h:1");
    let mut events = v2.watch(&fields, &from).await?.boxed();
    let plain = PatchParams::default();
    v1.patch("a", &plain, &Patch::Merge(json!({"spec": {"port": 2}}))).await?;
    v1.patch("b", &plain, &Patch::Merge(json!({"spec": {"host": "h"}}))).await?;
    v2.delete_collection(&DeleteParams::default(), &selected).await?;
    let mut seen = Vec::new();
    while seen.len() < 4 {
        seen.push(match events.try_next().await?.context("the watch ended")? {
            WatchEvent::Added(thing) => format!("+{}", thing.name_any()),
            WatchEvent::Deleted(thing) => format!("-{}", thing.name_any()),
            other => anyhow::bail!("{other:?}"),
        });
    }
    seen[2..].sort_unstable();
    ensure!(seen == ["-a", "+b", "-b", "-c"], "{seen:?}");
    ensure!(names(&v1.list(&ListParams::default()).await?.items) == ["a"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn conversions_are_counted_by_result() -> Result<()> {
    let things = Things::start().await?;
    things.create("v1", "a", json!({"host": "h", "port": 1})).await?;
    things.spec("v2", "a").await?;
    things.answers(|_| json!({"result": {"status": "Failure", "message": "no"}}));
    failure(things.within("v2").get("a").await)?;
    things.answers(|_| json!({"result": {"status": "Success"}, "convertedObjects": []}));
    failure(things.within("v2").get("a").await)?;
    let request = http::Request::get("/metrics").body(Vec::new())?;
    let metrics = things.world.client.request_text(request).await?;
    let total = "apiserver_conversion_webhook_request_total";
    let seconds = "apiserver_crd_conversion_webhook_duration_seconds_count";
    let labels = "crd_name=\"things.example.com\",from_version=\"v1\"";
    for row in [
        format!(r#"{total}{{failure_type="",result="success"}} 1"#),
        format!(
            r#"{total}{{failure_type="conversion_webhook_malformed_response_failure",result="failure"}} 1"#
        ),
        format!(
            r#"{total}{{failure_type="conversion_webhook_partial_response_failure",result="failure"}} 1"#
        ),
        format!(r#"{seconds}{{{labels},succeeded="true",to_version="v2"}} 1"#),
        format!(r#"{seconds}{{{labels},succeeded="false",to_version="v2"}} 2"#),
    ] {
        ensure!(metrics.lines().any(|line| line == row), "no {row}: {metrics}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_ends_with_an_error_when_a_conversion_fails() -> Result<()> {
    let things = Things::start().await?;
    let start = things.within("v2").list(&ListParams::default()).await?;
    let from = start.metadata.resource_version.context("no version")?;
    let mut unconverted = things.within("v1").watch(&WatchParams::default(), &from).await?.boxed();
    let mut events = things.within("v2").watch(&WatchParams::default(), &from).await?.boxed();
    things.answers(|_| Value::Null);
    things.create("v1", "a", json!({"host": "h", "port": 1})).await?;
    let event = events.try_next().await?;
    ensure!(matches!(&event, Some(WatchEvent::Error(e)) if e.code == 500), "{event:?}");
    let event = unconverted.try_next().await?;
    ensure!(matches!(&event, Some(WatchEvent::Added(_))), "{event:?}");
    Ok(())
}

/// Wrong responses of the webhook, and the error for a client that reads a `v1` object as `v2`.
fn wrong_answers() -> Vec<(Mood, &'static str)> {
    fn changed(change: fn(&mut Value)) -> Mood {
        Arc::new(move |request| {
            let mut response = honest(request);
            change(&mut response);
            response
        })
    }
    vec![
        (changed(|r| r["convertedObjects"] = json!([])), "returned 0 objects, expected 1"),
        (
            changed(|r| r["convertedObjects"] = json!([r["convertedObjects"][0], {}])),
            "returned 2 objects, expected 1",
        ),
        (
            changed(|r| r["convertedObjects"][0]["metadata"]["name"] = json!("b")),
            "returned invalid object: must have the same name: a != b",
        ),
        (
            changed(|r| r["convertedObjects"][0]["metadata"]["namespace"] = json!("u")),
            "returned invalid object: must have the same namespace: t != u",
        ),
        (
            changed(|r| r["convertedObjects"][0]["metadata"]["uid"] = json!("b")),
            "returned invalid object: must have the same UID: ",
        ),
        (
            changed(|r| r["convertedObjects"][0]["apiVersion"] = json!("example.com/v3")),
            "returned invalid object at index 0: invalid groupVersion (expected example.com/v2, \
             received example.com/v3)",
        ),
        (
            changed(|r| r["convertedObjects"][0]["kind"] = json!("Other")),
            "returned invalid object at index 0: invalid kind (expected Thing, received Other)",
        ),
        (
            changed(|r| r["result"] = json!({"status": "Failure", "message": "not today"})),
            "failed: not today",
        ),
        (
            changed(|r| r["result"] = json!({})),
            "failed: response.result.status was '', not 'Success'",
        ),
        (changed(|r| r["uid"] = json!("other")), "failed: expected response.uid="),
        (Arc::new(|_| json!("{}")), "failed: expected webhook response of "),
        (Arc::new(|_| json!("[[[")), "failed: "),
        (
            Arc::new(|_| json!(422)),
            "failed: the server rejected our request due to an error in our request",
        ),
        (Arc::new(|_| Value::Null), "failed: Post \"https://localhost:"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_conversion_stores_nothing() -> Result<()> {
    let things = Things::start().await?;
    let (v1, v2) = (things.within("v1"), things.within("v2"));
    let before = things.create("v1", "a", json!({"host": "h", "port": 1})).await?;
    let plain = PatchParams::default();
    for (mood, words) in wrong_answers() {
        *things.mood.lock() = mood;
        let patch = Patch::Merge(json!({"spec": {"hostPort": "g:2"}}));
        let refusals = [
            failure(v2.get("a").await).context(words)?,
            failure(v2.patch("a", &plain, &patch).await).context(words)?,
        ];
        for status in refusals {
            let head = "conversion webhook for example.com/v1, Kind=Thing ";
            ensure!(status.code == 500 && status.reason.is_empty(), "{words}: {status:?}");
            ensure!(status.message.starts_with(&format!("{head}{words}")), "{words}: {status:?}");
        }
        failure(v2.list(&ListParams::default()).await).context("list").context(words)?;
        let made = things.create("v2", "n", json!({"hostPort": "n:3"})).await;
        failure(made).context("create").context(words)?;
        let mut applied = thing("v2", "n");
        applied.data["spec"] = json!({"hostPort": "n:4"});
        let made = v2.patch("n", &PatchParams::apply("m"), &Patch::Apply(&applied)).await;
        failure(made).context("apply").context(words)?;
        // An object that cannot be converted cannot be deleted, either.
        let gone = v2.delete("a", &DeleteParams::default()).await.map(drop);
        let status = failure(gone).context("delete").context(words)?;
        ensure!(status.code == 500, "{words}: {status:?}");
        let all = (DeleteParams::default(), ListParams::default());
        let gone = v2.delete_collection(&all.0, &all.1).await.map(drop);
        let status = failure(gone).context("delete collection").context(words)?;
        ensure!(status.code == 500, "{words}: {status:?}");
        let list = v1.list(&ListParams::default()).await?;
        ensure!(list.items == [before.clone()], "{words}: {list:?}");
    }
    things.answers(honest);
    ensure!(things.spec("v2", "a").await? == json!({"hostPort": "h:1"}));

    things.answers(|_| Value::Null);
    v1.delete("a", &DeleteParams::default()).await?;
    ensure!(v1.get_opt("a").await?.is_none());
    Ok(())
}

/// A webhook may change labels and annotations, but no other metadata.
#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_cannot_change_other_metadata() -> Result<()> {
    let things = Things::start().await?;
    things.answers(|request| {
        let mut response = honest(request);
        for object in response["convertedObjects"].as_array_mut().into_iter().flatten() {
            object["metadata"]["labels"] = json!({"seen": "yes"});
            object["metadata"]["finalizers"] = json!(["example.com/never"]);
            object["metadata"]["generation"] = json!(77);
            object["metadata"]["resourceVersion"] = json!("1");
            object["metadata"]["creationTimestamp"] = Value::Null;
            object["metadata"]["ownerReferences"] = json!("none");
        }
        response
    });
    let plain = things.create("v1", "a", json!({"host": "h", "port": 1})).await?;
    let seen = things.within("v2").get("a").await?;
    let mut expected = plain.metadata.clone();
    expected.labels = Some([("seen".to_owned(), "yes".to_owned())].into());
    ensure!(seen.metadata == expected, "{seen:?}");
    things.create("v2", "b", json!({"hostPort": "h:1"})).await?;
    let stored = things.within("v1").get("b").await?;
    ensure!(stored.finalizers().is_empty() && stored.metadata.generation == Some(1), "{stored:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_webhook_delays_only_requests_that_need_it() -> Result<()> {
    let things = Things::start().await?;
    things.create("v1", "a", json!({"host": "h", "port": 1})).await?;
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let held = gate.clone();
    things.answers(move |request| {
        let mut is_open = held.0.lock();
        while !*is_open {
            held.1.wait(&mut is_open);
        }
        honest(request)
    });
    let waiting: Vec<_> = (0..20)
        .map(|_| {
            let v2 = things.within("v2");
            tokio::spawn(async move { v2.get("a").await })
        })
        .collect();
    let given_up = things.within("v2");
    let given_up = tokio::spawn(async move { given_up.get("a").await });
    for port in 2..12 {
        let patch = Patch::Merge(json!({"spec": {"port": port}}));
        things.within("v1").patch("a", &PatchParams::default(), &patch).await?;
    }
    ensure!(things.spec("v1", "a").await? == json!({"host": "h", "port": 11}));
    given_up.abort();
    *gate.0.lock() = true;
    gate.1.notify_all();
    for reader in waiting {
        let seen = reader.await??.data["spec"]["hostPort"].as_str().unwrap_or_default().to_owned();
        ensure!(seen.starts_with("h:"), "{seen}");
    }
    ensure!(things.spec("v2", "a").await? == json!({"hostPort": "h:11"}));
    Ok(())
}

//! Admission webhooks: which one is called for which request, and the effect of its response (WH-01
//! … WH-05).

use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::Status;
use kube::{Api, Error, ResourceExt as _};
use serde_json::{Value, json};

use crate::webhook::Webhook;
use crate::{World, object};

/// A webhook of a configuration, for ConfigMaps in all namespaces (every namespace has the name
/// label).
pub(crate) fn hook(webhook: &Webhook, path: &str, more: Value) -> Value {
    let mut hook = json!({
        "name": format!("{}.example.com", path.trim_matches('/')),
        "clientConfig": {"url": format!("{}{path}", webhook.url), "caBundle": webhook.ca_bundle},
        "rules": [{
            "operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
        }],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "t"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    });
    if let (Some(hook), Value::Object(more)) = (hook.as_object_mut(), more) {
        hook.extend(more);
    }
    hook
}

pub(crate) async fn validate(world: &World, hooks: Value) -> Result<()> {
    let configuration: ValidatingWebhookConfiguration =
        object(json!({"metadata": {"name": "v"}, "webhooks": hooks}))?;
    Api::all(world.client.clone()).create(&PostParams::default(), &configuration).await?;
    Ok(())
}

pub(crate) async fn mutate(world: &World, hooks: Value) -> Result<()> {
    let configuration: MutatingWebhookConfiguration =
        object(json!({"metadata": {"name": "m"}, "webhooks": hooks}))?;
    Api::all(world.client.clone()).create(&PostParams::default(), &configuration).await?;
    Ok(())
}

pub(crate) fn config_map(name: &str) -> Result<ConfigMap> {
    object(json!({"metadata": {"name": name}, "data": {"k": "v"}}))
}

/// The Status of a request that must have failed.
pub(crate) fn refusal<T>(outcome: kube::Result<T>) -> Result<Box<Status>> {
    match outcome {
        Err(Error::Api(status)) => Ok(status),
        Err(other) => Err(other.into()),
        Ok(_) => Err(anyhow::anyhow!("the request succeeded")),
    }
}

pub(crate) fn patch(operations: Value) -> Value {
    let patch = STANDARD.encode(operations.to_string());
    json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})
}

/// WH-02, WH-03, WH-05
#[tokio::test(flavor = "multi_thread")]
async fn a_validating_webhook_allows_denies_and_warns() -> Result<()> {
    let world = World::start().await?;
    let webhook = Webhook::start(|_, request| match request["name"].as_str() {
        Some("bad") => json!({
            "allowed": false,
            "status": {"message": "not this one", "code": 403, "reason": "Forbidden"},
        }),
        Some("silent") => json!({"allowed": false}),
        _ => json!({"allowed": true, "warnings": ["mind the gap"]}),
    })?;
    validate(&world, json!([hook(&webhook, "/judge", json!({}))])).await?;
    let api = world.api::<ConfigMap>();
    let post = PostParams::default();

    api.create(&post, &config_map("good")?).await?;
    let status = refusal(api.create(&post, &config_map("bad")?).await)?;
    ensure!(
        status.message
            == r#"admission webhook "judge.example.com" denied the request: not this one"#,
        "{status:?}"
    );
    ensure!((status.code, status.reason.as_str()) == (403, "Forbidden"), "{status:?}");
    let status = refusal(api.create(&post, &config_map("silent")?).await)?;
    ensure!(
        status.code == 400 && status.message.ends_with("denied the request without explanation")
    );

    let merge = Patch::Merge(json!({"data": {"k": "w"}}));
    api.patch("good", &PatchParams::default(), &merge).await?;
    api.delete("good", &DeleteParams::default()).await?;
    let requests = webhook.requests();
    let operations: Vec<_> =
        requests.iter().map(|a| a["operation"].as_str().unwrap_or("")).collect();
    ensure!(operations == ["CREATE", "CREATE", "CREATE", "UPDATE", "DELETE"], "{operations:?}");
    let (create, update, delete) = (&requests[0], &requests[3], &requests[4]);
    ensure!(create["oldObject"].is_null() && create["object"]["data"]["k"] == "v", "{create}");
    ensure!(create["kind"] == json!({"group": "", "version": "v1", "kind": "ConfigMap"}));
    ensure!(create["resource"]["resource"] == "configmaps" && create["namespace"] == "t");
    ensure!(create["userInfo"]["username"] == "kubernetes-admin" && create["dryRun"] == false);
    ensure!(update["oldObject"]["data"]["k"] == "v" && update["object"]["data"]["k"] == "w");
    ensure!(delete["object"].is_null() && delete["oldObject"]["data"]["k"] == "w", "{delete}");
    Ok(())
}

/// WH-01, WH-04
#[tokio::test(flavor = "multi_thread")]
async fn mutating_webhooks_run_in_order() -> Result<()> {
    let world = World::start().await?;
    let webhook = Webhook::start(|path, request| {
        let label = request["object"]["metadata"]["labels"]["said"].as_str().unwrap_or("nothing");
        if path.starts_with("/first") {
            let labels = json!({"first": "was-here", "heard": label});
            patch(json!([{"op": "add", "path": "/metadata/labels", "value": labels}]))
        } else {
            patch(json!([{"op": "add", "path": "/metadata/labels/said", "value": "second"}]))
        }
    })?;
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    let hooks = [hook(&webhook, "/first", again), hook(&webhook, "/second", json!({}))];
    mutate(&world, json!(hooks)).await?;
    let api = world.api::<ConfigMap>();
    let made = api.create(&PostParams::default(), &config_map("a")?).await?;
    ensure!(made.labels()["first"] == "was-here", "{:?}", made.labels());
    ensure!(made.labels()["heard"] == "second", "the first was called again: {:?}", made.labels());
    ensure!(webhook.requests().len() == 3);
    let unchanged = api.get("a").await?;
    ensure!(unchanged.labels() == made.labels());
    Ok(())
}

/// WH-04: a webhook that one before it makes due in the second round is called in this round.
#[tokio::test(flavor = "multi_thread")]
async fn webhooks_wake_each_other_in_the_second_round() -> Result<()> {
    let world = World::start().await?;
    let webhook = Webhook::start(|_, request| {
        let calls = request["object"]["data"]["k"].as_str().unwrap_or_default();
        patch(json!([{"op": "replace", "path": "/data/k", "value": format!("{calls}+")}]))
    })?;
    let again = || json!({"reinvocationPolicy": "IfNeeded"});
    let hooks = [hook(&webhook, "/first", again()), hook(&webhook, "/second", again())];
    mutate(&world, json!(hooks)).await?;
    let made = world.api().create(&PostParams::default(), &config_map("a")?).await?;
    ensure!(made.data.is_some_and(|data| data["k"] == "v++++"), "{:?}", webhook.requests());
    Ok(())
}

/// WH-01, WH-03: writes whose webhook cannot be reached.
#[tokio::test(flavor = "multi_thread")]
async fn the_failure_policy_decides_when_a_webhook_is_down() -> Result<()> {
    let world = World::start().await?;
    let webhook = Webhook::start(|_, _| json!({"allowed": true}))?;
    let down = json!({"url": "https://127.0.0.1:1/x", "caBundle": webhook.ca_bundle});
    let lenient = json!({"clientConfig": down, "failurePolicy": "Ignore"});
    validate(&world, json!([hook(&webhook, "/lenient", lenient)])).await?;
    let api = world.api::<ConfigMap>();
    api.create(&PostParams::default(), &config_map("a")?).await?;

    let strict = json!({"clientConfig": down});
    mutate(&world, json!([hook(&webhook, "/strict", strict)])).await?;
    let status = refusal(api.create(&PostParams::default(), &config_map("b")?).await)?;
    let expected = concat!(
        r#"Internal error occurred: failed calling webhook "strict.example.com": "#,
        r#"failed to call webhook: Post "https://127.0.0.1:1/x?timeout=10s": dial tcp 127.0.0.1:1"#
    );
    ensure!(status.code == 500 && status.message.starts_with(expected), "{status:?}");
    // The configuration itself can always be deleted.
    let all: Api<MutatingWebhookConfiguration> = Api::all(world.client.clone());
    all.delete("m", &DeleteParams::default()).await?;
    api.create(&PostParams::default(), &config_map("b")?).await?;
    Ok(())
}

/// WH-01: selectors, conditions and side effects.
#[tokio::test(flavor = "multi_thread")]
async fn selectors_and_match_conditions_select_requests() -> Result<()> {
    let world = World::start().await?;
    let webhook = Webhook::start(|_, _| json!({"allowed": false}))?;
    let elsewhere = json!({"namespaceSelector": {"matchLabels": {"a": "b"}}});
    let labelled = json!({"objectSelector": {"matchLabels": {"a": "b"}}});
    let created = json!({"rules": [{
        "operations": ["UPDATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"],
    }]});
    let expression = "request.operation == 'CREATE' && object.metadata.name == 'condition'";
    let condition = json!({"matchConditions": [{"name": "c", "expression": expression}]});
    let hooks = [
        hook(&webhook, "/elsewhere", elsewhere),
        hook(&webhook, "/labelled", labelled),
        hook(&webhook, "/updates", created),
        hook(&webhook, "/condition", condition),
    ];
    validate(&world, json!(hooks)).await?;
    let api = world.api::<ConfigMap>();
    let post = PostParams::default();
    api.create(&post, &config_map("a")?).await?;
    // The server itself may have updated something else.
    let requests = webhook.requests();
    ensure!(!requests.iter().any(|a| a["resource"]["resource"] == "configmaps"), "{requests:?}");
    let mut labelled = config_map("b")?;
    labelled.labels_mut().insert("a".to_owned(), "b".to_owned());
    let status = refusal(api.create(&post, &labelled).await)?;
    ensure!(status.message.contains("labelled.example.com"), "{status:?}");
    let status = refusal(api.create(&post, &config_map("condition")?).await)?;
    ensure!(status.message.contains("condition.example.com"), "{status:?}");
    let merge = Patch::Merge(json!({"data": {"k": "w"}}));
    let status = refusal(api.patch("a", &PatchParams::default(), &merge).await)?;
    ensure!(status.message.contains("updates.example.com"), "{status:?}");
    Ok(())
}

/// DRY-04, DRY-08, DRY-09, WH-01: a dry run does not call webhooks with side effects.
#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_calls_no_webhook_with_side_effects() -> Result<()> {
    let world = World::start().await?;
    let webhook = Webhook::start(|_, _| json!({"allowed": true}))?;
    let hooks = [
        hook(&webhook, "/side-effects", json!({"sideEffects": "NoneOnDryRun"})),
        hook(&webhook, "/words", json!({"sideEffects": "None"})),
    ];
    validate(&world, json!(hooks)).await?;
    let api = world.api::<ConfigMap>();
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    api.create(&dry, &config_map("a")?).await?;
    let requests = webhook.requests();
    ensure!(
        requests.len() == 2 && requests.iter().all(|request| request["dryRun"] == true),
        "{requests:?}"
    );
    Ok(())
}

/// SSA-52: an apply is a create or an update for webhooks, depending on the stored object.
#[tokio::test(flavor = "multi_thread")]
async fn an_apply_is_reviewed_as_create_or_update() -> Result<()> {
    let world = World::start().await?;
    let webhook = Webhook::start(|_, _| json!({"allowed": true}))?;
    validate(&world, json!([hook(&webhook, "/watch", json!({}))])).await?;
    let api = world.api::<ConfigMap>();
    for value in ["v", "w"] {
        let wanted = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": value},
        });
        api.patch("a", &PatchParams::apply("me"), &Patch::Apply(&wanted)).await?;
    }
    let requests = webhook.requests();
    let operations: Vec<_> = requests.iter().map(|request| &request["operation"]).collect();
    ensure!(operations == ["CREATE", "UPDATE"], "{operations:?}");
    ensure!(requests[0]["options"]["kind"] == "CreateOptions", "{}", requests[0]["options"]);
    ensure!(requests[1]["oldObject"]["data"]["k"] == "v", "{}", requests[1]["oldObject"]);
    Ok(())
}

//! Admission webhooks: the contents of a review, the connection, and the possible responses (WH-01
//! … WH-05).

use anyhow::{Result, ensure};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Service};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use crate::admission::{config_map, hook, mutate, patch, refusal, validate};
use crate::webhook::Webhook;
use crate::{World, object};

fn rule(group: &str, version: &str, resource: &str) -> Value {
    json!([{
        "operations": ["*"], "apiGroups": [group], "apiVersions": [version], "resources": [resource],
    }])
}

fn pod(name: &str) -> Result<Pod> {
    object(json!({
        "metadata": {"name": name},
        "spec": {"automountServiceAccountToken": false, "containers": [{"name": "c", "image": "i"}]},
    }))
}

/// WH-01: one connection serves several calls. A double slash at the beginning of the path, as
/// envtest writes it, is cleaned, and the webhook's self-signed certificate is accepted as its own
/// CA.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_serves_several_calls() -> Result<()> {
    let world = World::start().await?;
    let webhook = Webhook::start(|path, _| json!({"allowed": path.starts_with("/judge?")}))?;
    let config = json!({
        "url": format!("https://127.0.0.1:{}//judge", webhook.port), "caBundle": webhook.ca_bundle,
    });
    validate(&world, json!([hook(&webhook, "/judge", json!({"clientConfig": config}))])).await?;
    let api = world.api::<ConfigMap>();
    for name in ["a", "b", "c", "d"] {
        api.create(&PostParams::default(), &config_map(name)?).await?;
    }
    ensure!(webhook.requests().len() == 4, "{:?}", webhook.requests());
    ensure!(webhook.connections() == 1, "{}", webhook.connections());
    Ok(())
}

/// WH-01: a webhook that closes the connection is called on another one. A request that it has
/// received is not sent again, as in Go: the webhook may have acted on it.
#[tokio::test(flavor = "multi_thread")]
async fn a_closed_connection_is_opened_again() -> Result<()> {
    let world = World::start().await?;
    let webhook = Webhook::start(|_, request| match request["name"].as_str() {
        Some("silent") => Value::Null,
        _ => json!({"allowed": true}),
    })?;
    validate(&world, json!([hook(&webhook, "/judge", json!({}))])).await?;
    let api = world.api::<ConfigMap>();
    api.create(&PostParams::default(), &config_map("a")?).await?;
    // It closes the connection during a request.
    let status = refusal(api.create(&PostParams::default(), &config_map("silent")?).await)?;
    ensure!(status.code == 500, "{status:?}");
    ensure!(webhook.connections() == 1, "{}", webhook.connections());
    ensure!(webhook.requests_about_the_test().len() == 2, "{:?}", webhook.requests());
    api.create(&PostParams::default(), &config_map("b")?).await?;
    ensure!(webhook.connections() == 2, "{}", webhook.connections());
    Ok(())
}

/// WH-01: a service is called by its name, at the configured port.
#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_may_be_a_service() -> Result<()> {
    let world = World::start().await?;
    let webhook = Webhook::start(|path, _| json!({"allowed": path.starts_with("/judge?")}))?;
    let service: Service = object(json!({
        "metadata": {"name": "hook"}, "spec": {"type": "ExternalName", "externalName": "localhost"},
    }))?;
    world.api::<Service>().create(&PostParams::default(), &service).await?;
    let reference =
        json!({"namespace": "t", "name": "hook", "port": webhook.port, "path": "/judge"});
    let config = json!({"service": reference, "caBundle": webhook.ca_bundle});
    let absent =
        json!({"service": {"namespace": "t", "name": "none"}, "caBundle": webhook.ca_bundle});
    let hooks = [
        hook(&webhook, "/there", json!({"clientConfig": config})),
        hook(&webhook, "/absent", json!({"clientConfig": absent, "failurePolicy": "Ignore"})),
    ];
    validate(&world, json!(hooks)).await?;
    world.api().create(&PostParams::default(), &config_map("a")?).await?;
    ensure!(webhook.requests().len() == 1);
    Ok(())
}

/// WH-01: a rule also matches the other versions, unless its match policy is `Exact`.
#[tokio::test(flavor = "multi_thread")]
async fn rules_match_equivalent_versions() -> Result<()> {
    let world = World::start().await?;
    let webhook = Webhook::start(|_, _| json!({"allowed": true}))?;
    let rules = rule("autoscaling", "v1", "horizontalpodautoscalers");
    let exact = json!({"rules": rules, "matchPolicy": "Exact"});
    let hooks =
        [hook(&webhook, "/equivalent", json!({"rules": rules})), hook(&webhook, "/exact", exact)];
    validate(&world, json!(hooks)).await?;
    let autoscaler: HorizontalPodAutoscaler = object(json!({
        "metadata": {"name": "a"},
        "spec": {
            "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            "metrics": [{"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50},
            }}],
        },
    }))?;
    world.api().create(&PostParams::default(), &autoscaler).await?;
    let requests = webhook.requests();
    ensure!(requests.len() == 1, "{requests:?}");
    let review = &requests[0];
    ensure!(review["kind"]["version"] == "v1" && review["requestKind"]["version"] == "v2");
    ensure!(review["requestResource"]["version"] == "v2", "{review}");
    ensure!(review["object"]["apiVersion"] == "autoscaling/v1", "{review}");
    ensure!(review["object"]["spec"]["targetCPUUtilizationPercentage"] == 50, "{review}");
    Ok(())
}

/// WH-01: scopes and timeouts.
#[tokio::test(flavor = "multi_thread")]
async fn scopes_and_timeouts_are_honoured() -> Result<()> {
    let world = World::start().await?;
    let webhook = Webhook::start(|path, _| {
        if path.starts_with("/slow") {
            std::thread::sleep(std::time::Duration::from_secs(3));
        }
        json!({"allowed": !path.starts_with("/cluster")})
    })?;
    let everything = |scope: &str| {
        json!({"rules": [{
            "operations": ["CREATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"],
            "scope": scope,
        }], "namespaceSelector": {"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["t", "u"]},
        ]}})
    };
    let hooks = [hook(&webhook, "/cluster", everything("Cluster"))];
    validate(&world, json!(hooks)).await?;
    world.api().create(&PostParams::default(), &config_map("a")?).await?;
    ensure!(webhook.requests().is_empty());
    let namespace: Namespace = object(json!({"metadata": {"name": "u"}}))?;
    let all = Api::<Namespace>::all(world.client.clone());
    let status = refusal(all.create(&PostParams::default(), &namespace).await)?;
    ensure!(status.message.contains("cluster.example.com"), "{status:?}");

    mutate(&world, json!([hook(&webhook, "/slow", json!({"timeoutSeconds": 1}))])).await?;
    let status = refusal(world.api().create(&PostParams::default(), &config_map("b")?).await)?;
    let expected = format!(
        "failed to call webhook: Post \"{}/slow?timeout=1s\": context deadline exceeded",
        webhook.url
    );
    ensure!(status.code == 500 && status.message.ends_with(&expected), "{status:?}");
    Ok(())
}

/// WH-02, WH-03: invalid responses.
#[tokio::test(flavor = "multi_thread")]
async fn invalid_responses_fail_the_request() -> Result<()> {
    let world = World::start().await?;
    let webhook = Webhook::start(|_, request| match request["name"].as_str().unwrap_or("") {
        "uid" => json!({"allowed": true, "uid": "another"}),
        "type" => json!({"allowed": true, "patch": "W10="}),
        "patch" => json!({"allowed": true, "patchType": "JSONPatch"}),
        "list" => json!({"allowed": true, "patchType": "JSONPatch", "patch": "e30="}),
        "word" => json!({"allowed": "yes"}),
        "yaml" => json!(format!(
            "apiVersion: admission.k8s.io/v1\nkind: AdmissionReview\nresponse: {{uid: {}}}",
            request["uid"]
        )),
        "text" => json!("no review"),
        "none" => json!(r#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}"#),
        "kind" => json!(r#"{"apiVersion": "v1", "kind": "Pod"}"#),
        "code" => json!({"allowed": false, "status": {"code": 200, "message": "no"}}),
        "refused" => json!(400),
        "broken" => json!(500),
        _ => json!({"allowed": false, "status": {"code": 418, "reason": "Teapot"}}),
    })?;
    mutate(&world, json!([hook(&webhook, "/lie", json!({}))])).await?;
    let api = world.api::<ConfigMap>();
    for (name, code, expected) in [
        ("uid", 500, "\": received invalid webhook response: expected response.uid="),
        ("type", 500, "webhook returned response.patch but not response.patchType"),
        ("patch", 500, "webhook returned response.patchType but not response.patch"),
        ("list", 500, "\": received undecodable patch in webhook response: json: cannot unmarshal"),
        ("word", 500, "\": failed to call webhook: json: cannot unmarshal string into Go struct"),
        (
            "yaml",
            400,
            "admission webhook \"lie.example.com\" denied the request without explanation",
        ),
        ("text", 500, "failed calling webhook \"lie.example.com\": "),
        ("none", 500, "webhook response was absent"),
        (
            "kind",
            500,
            "\": failed to call webhook: no kind \"Pod\" is registered for version \"v1\"",
        ),
        (
            "refused",
            500,
            "\": failed to call webhook: the server rejected our request for an unknown reason",
        ),
        (
            "broken",
            500,
            "\": failed to call webhook: an error on the server (\"no\") has prevented the request from \
             succeeding",
        ),
        ("code", 400, "admission webhook \"lie.example.com\" denied the request: no"),
        ("odd", 418, "admission webhook \"lie.example.com\" denied the request: Teapot"),
    ] {
        let status = refusal(api.create(&PostParams::default(), &config_map(name)?).await)?;
        ensure!(status.code == code && status.message.contains(expected), "{name}: {status:?}");
    }
    Ok(())
}

/// WH-03: an invalid response is a failed call, so the failure policy applies, even if the response
/// denies.
#[tokio::test(flavor = "multi_thread")]
async fn invalid_responses_are_ignored_with_the_failures() -> Result<()> {
    let world = World::start().await?;
    let webhook = Webhook::start(|path, request| match request["name"].as_str().unwrap_or("") {
        "word" => json!({"allowed": "yes"}),
        "list" if path.starts_with("/first") => {
            json!({"allowed": true, "patchType": "JSONPatch", "patch": "e30="})
        }
        "list" => json!({"allowed": false, "patchType": "JSONPatch", "patch": "W10="}),
        _ => json!({"allowed": false}),
    })?;
    let lenient = || json!({"failurePolicy": "Ignore"});
    mutate(&world, json!([hook(&webhook, "/first", lenient())])).await?;
    validate(&world, json!([hook(&webhook, "/second", lenient())])).await?;
    let api = world.api::<ConfigMap>();
    for name in ["word", "list"] {
        api.create(&PostParams::default(), &config_map(name)?).await?;
    }
    let status = refusal(api.create(&PostParams::default(), &config_map("denied")?).await)?;
    ensure!(status.code == 400, "{status:?}");
    Ok(())
}

/// The warning about a webhook that makes an owner twice.
const REPEATED: &str = ".metadata.ownerReferences contains duplicate entries after mutating \
    admission happens; API server dedups owner references in 1.20+, and may reject such requests as \
    early as 1.24; please fix your requests; duplicate UID(s) observed: u";

/// WH-02: the warnings of all webhooks that answered are in the response's header, also if one of
/// them denies or fails.
#[tokio::test(flavor = "multi_thread")]
async fn warnings_are_in_the_response() -> Result<()> {
    let world = World::start().await?;
    let webhook = Webhook::start(|path, request| {
        let hook = path.trim_start_matches('/').split('?').next().unwrap_or_default();
        match request["name"].as_str().and_then(|name| name.strip_prefix(hook)) {
            Some("-denies") => json!({"allowed": false, "warnings": [hook]}),
            Some("-fails") => json!(500),
            Some("-garbles") => json!({
                "allowed": true, "warnings": [hook], "patchType": "JSONPatch", "patch": "e30=",
            }),
            Some("-repeats") => {
                let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"});
                let path = "/metadata/ownerReferences";
                patch(json!([{"op": "add", "path": path, "value": [owner, owner]}]))
            }
            _ => json!({"allowed": true, "warnings": [hook]}),
        }
    })?;
    let hooks = |paths: [&str; 2]| json!(paths.map(|path| hook(&webhook, path, json!({}))));
    mutate(&world, hooks(["/first", "/second"])).await?;
    validate(&world, hooks(["/third", "/fourth"])).await?;
    for (name, code, expected) in [
        ("a", 201, &["first", "second", "third", "fourth"][..]),
        ("first-denies", 400, &["first"]),
        ("second-denies", 400, &["first", "second"]),
        ("second-fails", 500, &["first"]),
        ("second-garbles", 500, &["first", "second"]),
        ("second-repeats", 201, &["first", REPEATED, "third", "fourth"]),
        ("third-denies", 400, &["first", "second", "third", "fourth"]),
        ("third-fails", 500, &["first", "second", "fourth"]),
    ] {
        let body = json!({"metadata": {"name": name}}).to_string().into_bytes();
        let path = "/api/v1/namespaces/t/configmaps";
        let request = kube::core::Request::new(path).create(&PostParams::default(), body)?;
        let answer = world.client.send(request.map(Body::from)).await?;
        let warnings: Vec<_> = answer.headers().get_all("warning").iter().cloned().collect();
        let expected: Vec<_> = expected.iter().map(|hook| format!(r#"299 - "{hook}""#)).collect();
        ensure!(answer.status() == code && warnings == expected, "{name}: {warnings:?}");
    }
    Ok(())
}

/// WH-04: an object that a webhook changed is validated and defaulted like the client's, and owned
/// by the client; webhooks are not called for webhook configurations.
#[tokio::test(flavor = "multi_thread")]
async fn mutated_objects_are_validated_and_defaulted() -> Result<()> {
    let world = World::start().await?;
    let webhook = Webhook::start(|_, request| match request["name"].as_str().unwrap_or("") {
        "bad" => patch(json!([{"op": "replace", "path": "/spec/ports/0/port", "value": 70000}])),
        "unknown" => patch(json!([{"op": "add", "path": "/spec/none", "value": 1}])),
        "type" => patch(json!([{"op": "replace", "path": "/spec/ports", "value": "p"}])),
        "kind" => patch(json!([{"op": "replace", "path": "/apiVersion", "value": "v2"}])),
        "version" => {
            patch(json!([{"op": "add", "path": "/metadata/resourceVersion", "value": "5"}]))
        }
        _ => patch(
            json!([{"op": "add", "path": "/spec/ports/-", "value": {"name": "b", "port": 81}}]),
        ),
    })?;
    let services = json!({"rules": rule("", "v1", "services")});
    let everything = json!({"rules": rule("*", "*", "*"), "namespaceSelector": {}});
    mutate(&world, json!([hook(&webhook, "/ports", services)])).await?;
    let api = world.api::<Service>();
    let service = |name: &str| {
        object::<Service>(json!({
            "metadata": {"name": name}, "spec": {"ports": [{"name": "a", "port": 80}]},
        }))
    };
    let post = PostParams { field_manager: Some("me".to_owned()), ..PostParams::default() };
    let made = serde_json::to_value(api.create(&post, &service("a")?).await?)?;
    let port = &made["spec"]["ports"][1];
    ensure!(port["protocol"] == "TCP" && port["targetPort"] == 81, "defaults are set: {port}");
    let managers = made["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    ensure!(managers.len() == 1 && managers[0]["manager"] == "me", "{managers:?}");
    let status = refusal(api.create(&post, &service("bad")?).await)?;
    ensure!(status.code == 422 && status.message.contains("spec.ports[0].port"), "{status:?}");
    for (name, expected) in [
        ("type", "Internal error occurred: json: cannot unmarshal string into Go struct field"),
        ("kind", r#"Internal error occurred: no kind "Service" is registered for version "v2""#),
        ("version", "resourceVersion should not be set on objects to be created"),
    ] {
        let status = refusal(api.create(&post, &service(name)?).await)?;
        ensure!(status.code == 500 && status.message.starts_with(expected), "{status:?}");
    }

    validate(&world, json!([hook(&webhook, "/all", everything)])).await?;
    let all: Api<ValidatingWebhookConfiguration> = Api::all(world.client.clone());
    all.delete("v", &DeleteParams::default()).await?;
    // The webhook is also called for objects that the server writes meanwhile.
    let requests = webhook.requests();
    let is_of_webhooks = |r: &Value| r["resource"]["group"] == "admissionregistration.k8s.io";
    ensure!(
        !requests.iter().any(is_of_webhooks),
        "no webhook is called for webhook configurations: {requests:?}"
    );
    Ok(())
}

/// WH-05: subresources, objects that are posted to them, and each object of a deleted collection.
#[tokio::test(flavor = "multi_thread")]
async fn subresources_are_reviewed_with_their_own_objects() -> Result<()> {
    let world = World::start().await?;
    let webhook = Webhook::start(|_, request| {
        let wants = request["object"]["spec"]["replicas"].as_i64().unwrap_or(0);
        match request["subResource"].as_str() {
            Some("scale") if wants > 3 => {
                patch(json!([{"op": "replace", "path": "/spec/replicas", "value": 3}]))
            }
            Some("eviction") => json!({"allowed": false}),
            _ => json!({"allowed": true}),
        }
    })?;
    let whole = json!({"rules": rule("apps", "v1", "deployments")});
    let scale = json!({"rules": rule("apps", "v1", "*/scale")});
    let parts = json!({"rules": rule("", "v1", "pods/*")});
    let hooks = [
        hook(&webhook, "/whole", whole),
        hook(&webhook, "/scale", scale),
        hook(&webhook, "/parts", parts),
        hook(&webhook, "/maps", json!({})),
    ];
    mutate(&world, json!(hooks)).await?;
    let deployment: Deployment = object(json!({
        "metadata": {"name": "d"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    }))?;
    let (post, merge) = (PostParams::default(), PatchParams::default());
    let deployments = world.api::<Deployment>();
    deployments.create(&post, &deployment).await?;
    let wanted = Patch::Merge(json!({"spec": {"replicas": 9}}));
    let scaled = deployments.patch_scale("d", &merge, &wanted).await?;
    ensure!(scaled.spec.and_then(|spec| spec.replicas) == Some(3), "the webhook's word counts");
    let unchanged = deployments.get("d").await?;
    ensure!(unchanged.spec.and_then(|spec| spec.replicas) == Some(3));
    let requests = webhook.requests_about_the_test();
    ensure!(requests.len() == 2, "only the subresource is reviewed: {requests:?}");
    let review = &requests[1];
    let scale = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
    ensure!(review["kind"] == scale && review["requestKind"] == scale, "{review}");
    ensure!(review["resource"]["resource"] == "deployments" && review["subResource"] == "scale");
    ensure!(review["object"]["kind"] == "Scale" && review["object"]["spec"]["replicas"] == 9);
    ensure!(review["oldObject"]["kind"] == "Scale" && review["oldObject"]["spec"]["replicas"] == 1);

    let pods = world.api::<Pod>();
    pods.create(&post, &pod("p")?).await?;
    let eviction = json!({"metadata": {"name": "p"}, "deleteOptions": {"gracePeriodSeconds": 1}});
    let evict = kube::core::Request::new("/api/v1/namespaces/t/pods/p/eviction")
        .create(&post, eviction.to_string().into_bytes())?;
    let status = refusal(world.client.request::<Value>(evict).await)?;
    ensure!(status.message.contains("parts.example.com"), "{status:?}");
    let requests = webhook.requests_about_the_test();
    // `pods/*` also matches pods, as in upstream.
    ensure!(requests[2]["kind"]["kind"] == "Pod", "{requests:?}");
    let review = &requests[3];
    ensure!(review["kind"]["kind"] == "Eviction" && review["operation"] == "CREATE", "{review}");
    ensure!(review["name"] == "p" && review["object"]["kind"] == "Eviction", "{review}");
    let owner = &review["object"]["metadata"]["managedFields"][0];
    ensure!(owner["operation"] == "Update" && owner["subresource"] == "eviction", "{review}");

    let maps = world.api::<ConfigMap>();
    for name in ["a", "b"] {
        maps.create(&post, &config_map(name)?).await?;
    }
    let before = webhook.requests_about_the_test().len();
    maps.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    let requests = webhook.requests_about_the_test().split_off(before);
    let mut gone: Vec<_> =
        requests.iter().map(|review| review["oldObject"]["metadata"]["name"].as_str()).collect();
    gone.sort_unstable(); // several objects of a collection are deleted at once
    ensure!(gone == [Some("a"), Some("b")], "{gone:?}");
    ensure!(requests.iter().all(|review| review["operation"] == "DELETE"), "{requests:?}");
    ensure!(pods.get("p").await?.name_any() == "p");
    Ok(())
}

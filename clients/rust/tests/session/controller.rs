//! The controller test from the documentation of `pintle_testing::kube`: every Greeting of a team
//! gets a ConfigMap, which is deleted with it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::Controller;
use kube::runtime::controller::Action;
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt as _};
use pintle_testing::TestServer;
use serde_json::json;

use crate::TIMEOUT;

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: greetings.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: greetings, kind: Greeting}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {name: {type: string}}}}
";
/// The custom object precedes its definition: the order does not matter.
const TEAM: &str = "
{apiVersion: example.com/v1, kind: Greeting, metadata: {name: early, namespace: team}, spec: {name: Ann}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: team}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: dev, namespace: team}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: dev}]
";

fn greetings() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Greeting"))
}

/// Sets the ConfigMap from the Greeting.
async fn reconcile(greeting: Arc<DynamicObject>, client: Arc<Client>) -> kube::Result<Action> {
    let (name, namespace) = (greeting.name_any(), greeting.namespace().unwrap_or_default());
    let owner = OwnerReference {
        api_version: "example.com/v1".to_owned(),
        kind: "Greeting".to_owned(),
        name: name.clone(),
        uid: greeting.uid().unwrap_or_default(),
        controller: Some(true),
        ..OwnerReference::default()
    };
    let text = format!("Hello, {}!", greeting.data["spec"]["name"].as_str().unwrap_or("world"));
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "ownerReferences": [owner]},
        "data": {"text": text},
    });
    let maps: Api<ConfigMap> = Api::namespaced((*client).clone(), &namespace);
    maps.patch(&name, &PatchParams::apply("greeter").force(), &Patch::Apply(&map)).await?;
    Ok(Action::await_change())
}

async fn run(client: Client) {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &greetings());
    let maps: Api<ConfigMap> = Api::all(client.clone());
    Controller::new_with(api, watcher::Config::default(), greetings())
        .owns(maps, watcher::Config::default())
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(50)), Arc::new(client))
        .for_each(|_| async {})
        .await;
}

fn says(text: &str) -> impl Fn(Option<&ConfigMap>) -> bool + '_ {
    move |map| {
        let data = map.and_then(|map| map.data.as_ref());
        data.is_some_and(|data| data.get("text").is_some_and(|found| found == text))
    }
}

async fn soon<T>(future: impl Future<Output = T>) -> Result<T> {
    Ok(tokio::time::timeout(TIMEOUT, future).await?)
}

#[tokio::test]
async fn a_controller_is_tested() -> Result<()> {
    let server = TestServer::builder().objects(TEAM).objects(DEFINITION).start()?;
    let controller = tokio::spawn(run(server.client().await?));
    let client = server.client().await?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "team");
    soon(await_condition(maps.clone(), "early", says("Hello, Ann!"))).await??;

    let api: Api<DynamicObject> = Api::namespaced_with(client, "team", &greetings());
    api.create(&PostParams::default(), &DynamicObject::new("late", &greetings())).await?;
    soon(await_condition(maps.clone(), "late", says("Hello, world!"))).await??;
    let merge = Patch::Merge(json!({"spec": {"name": "Bob"}}));
    api.patch("late", &PatchParams::default(), &merge).await?;
    soon(await_condition(maps.clone(), "late", says("Hello, Bob!"))).await??;

    let uid = maps.get("late").await?.uid().unwrap_or_default();
    api.delete("late", &DeleteParams::default()).await?;
    soon(await_condition(maps, "late", conditions::is_deleted(&uid))).await??;
    controller.abort();
    Ok(())
}

#[tokio::test]
async fn rbac_decides_what_users_may_do() -> Result<()> {
    let server = TestServer::builder().objects(TEAM).objects(DEFINITION).start()?;
    // A controller fills aggregated cluster roles.
    let roles: Api<ClusterRole> = Api::all(server.client().await?);
    let is_filled = |role: Option<&ClusterRole>| role.is_some_and(|role| role.rules.is_some());
    soon(await_condition(roles, "view", is_filled)).await??;

    let maps: Api<ConfigMap> =
        Api::namespaced(server.client_of("jane", &["staff", "dev"]).await?, "team");
    maps.list(&kube::api::ListParams::default()).await?;
    let refused = maps.delete("a", &DeleteParams::default()).await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 403));
    Ok(())
}

#[tokio::test]
async fn tests_can_share_one_server() -> Result<()> {
    let (one, other) = (TestServer::shared(), TestServer::shared());
    assert_eq!(one.url(), other.url());
    let kubeconfig = one.kubeconfig().to_owned();
    drop((one, other));
    assert_ne!(
        TestServer::shared().kubeconfig(),
        kubeconfig,
        "another one, with other certificates"
    );
    Ok(())
}

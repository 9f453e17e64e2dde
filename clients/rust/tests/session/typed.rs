//! The life of typed objects.

use std::fmt::Debug;

use anyhow::{Result, bail, ensure};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service, ServiceAccount};
use k8s_openapi::api::rbac::v1::Role;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Error, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{World, object};

#[tokio::test(flavor = "multi_thread")]
async fn typed_objects_can_be_created_changed_and_deleted() -> Result<()> {
    let world = World::start().await?;
    let _account = world
        .api::<ServiceAccount>()
        .create(&PostParams::default(), &object(json!({"metadata": {"name": "default"}}))?)
        .await; // a controller may have been faster
    let pod = json!({"containers": [{"name": "c", "image": "i"}]});
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": pod});
    let workload = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template});
    lives::<ConfigMap>(&world, json!({"data": {"k": "v"}})).await?;
    lives::<Secret>(&world, json!({"stringData": {"k": "v"}})).await?;
    lives::<Service>(&world, json!({"spec": {"ports": [{"port": 80}]}})).await?;
    lives::<ServiceAccount>(&world, json!({})).await?;
    lives::<Pod>(&world, json!({"spec": pod})).await?;
    lives::<Deployment>(&world, json!({"spec": workload})).await?;
    lives::<Role>(&world, json!({"rules": []})).await?;
    let once =
        json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    lives::<Job>(&world, json!({"spec": {"template": once}})).await
}

/// Creates, reads, changes in every way, lists and deletes an object of a kind.
async fn lives<K>(world: &World, mut body: Value) -> Result<()>
where
    K: Resource<Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Serialize,
    K::DynamicType: Default,
{
    let api = world.api::<K>();
    body["metadata"] = json!({"name": "one"});
    let made = api.create(&PostParams::default(), &object(body.clone())?).await?;
    ensure!(made.uid().is_some() && made.resource_version().is_some());
    let Err(Error::Api(status)) = api.create(&PostParams::default(), &object(body)?).await else {
        bail!("a second object with this name was made");
    };
    ensure!(status.code == 409 && status.reason == "AlreadyExists");

    let mut read = api.get("one").await?;
    ensure!(read.resource_version() == made.resource_version());
    read.labels_mut().insert("step".to_owned(), "replaced".to_owned());
    let replaced = api.replace("one", &PostParams::default(), &read).await?;
    ensure!(replaced.labels()["step"] == "replaced");
    let Err(Error::Api(status)) = api.replace("one", &PostParams::default(), &made).await else {
        bail!("an old version was taken");
    };
    ensure!(status.code == 409 && status.reason == "Conflict");

    let patch = json!({"metadata": {"labels": {"step": "merged"}}});
    let params = PatchParams::default();
    let patched = api.patch("one", &params, &Patch::Merge(&patch)).await?;
    ensure!(patched.labels()["step"] == "merged");
    let patch = json!({"metadata": {"labels": {"step": null, "other": "x"}}});
    let patched = api.patch("one", &params, &Patch::Strategic(&patch)).await?;
    ensure!(!patched.labels().contains_key("step") && patched.labels()["other"] == "x");

    let listed = api.list(&ListParams::default().labels("other=x")).await?;
    ensure!(listed.items.len() == 1 && listed.items[0].name_any() == "one");
    let metadata = api.get_metadata("one").await?;
    ensure!(metadata.uid() == made.uid());

    // By default the deletion of a job orphans its pods.
    api.delete("one", &DeleteParams::background().grace_period(0)).await?;
    ensure!(api.get_opt("one").await?.is_none());
    let Err(Error::Api(status)) = api.get("one").await else { bail!("it is still there") };
    ensure!(status.code == 404 && status.reason == "NotFound");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scale_is_read_and_written() -> Result<()> {
    let world = World::start().await?;
    let api = world.api::<Deployment>();
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment = json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}});
    api.create(&PostParams::default(), &object(deployment)?).await?;
    let patch = json!({"spec": {"replicas": 3}});
    let scale = api.patch_scale("d", &PatchParams::default(), &Patch::Merge(&patch)).await?;
    ensure!(scale.spec.and_then(|spec| spec.replicas) == Some(3));
    ensure!(api.get("d").await?.spec.and_then(|spec| spec.replicas) == Some(3));
    let status = json!({"status": {"replicas": 2, "observedGeneration": 2}});
    let patched = api.patch_status("d", &PatchParams::default(), &Patch::Merge(&status)).await?;
    ensure!(patched.status.and_then(|status| status.replicas) == Some(2));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_is_deleted() -> Result<()> {
    let world = World::start().await?;
    let api = world.api::<Secret>();
    for name in ["a", "b", "c"] {
        let secret = object(json!({"metadata": {"name": name, "labels": {"n": name}}}))?;
        api.create(&PostParams::default(), &secret).await?;
    }
    let some = ListParams::default().labels("n in (a,b)");
    api.delete_collection(&DeleteParams::default(), &some).await?;
    let left: Vec<String> =
        api.list(&ListParams::default()).await?.iter().map(|secret| secret.name_any()).collect();
    ensure!(left == ["c"], "{left:?}");
    Ok(())
}

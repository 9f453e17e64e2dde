//! Server-side apply, as controllers use it.

use anyhow::{Result, bail, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use kube::{Error, ResourceExt as _};
use serde_json::json;

use crate::{World, object};

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_applies_its_configuration() -> Result<()> {
    let world = World::start().await?;
    let api = world.api::<ConfigMap>();
    let wanted: ConfigMap = object(json!({"metadata": {"name": "one"}, "data": {"k": "v"}}))?;
    let mine = PatchParams::apply("mine");
    let made = api.patch("one", &mine, &Patch::Apply(&wanted)).await?;
    let again = api.patch("one", &mine, &Patch::Apply(&wanted)).await?;
    ensure!(again.resource_version() == made.resource_version());
    let owners = again.managed_fields();
    ensure!(owners.len() == 1 && owners[0].manager.as_deref() == Some("mine"), "{owners:?}");

    let other: ConfigMap =
        object(json!({"metadata": {"name": "one"}, "data": {"k": "w", "l": "x"}}))?;
    let theirs = PatchParams::apply("theirs");
    let Err(Error::Api(status)) = api.patch("one", &theirs, &Patch::Apply(&other)).await else {
        bail!("what another owns was taken");
    };
    ensure!(status.code == 409 && status.message.contains(r#"conflict with "mine": .data.k"#));
    let tried = api.patch("one", &theirs.clone().force().dry_run(), &Patch::Apply(&other)).await?;
    ensure!(tried.data.as_ref().is_some_and(|data| data["k"] == "w"));
    let taken = api.patch("one", &theirs.force(), &Patch::Apply(&other)).await?;
    ensure!(taken.data.is_some_and(|data| data["k"] == "w" && data["l"] == "x"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_applies_a_status() -> Result<()> {
    let world = World::start().await?;
    let api = world.api::<Deployment>();
    let mine = PatchParams::apply("mine").force();
    let template = json!({
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let wanted: Deployment = object(json!({
        "metadata": {"name": "one"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template},
    }))?;
    api.patch("one", &mine, &Patch::Apply(&wanted)).await?;
    let status = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "one"},
        "status": {"readyReplicas": 2, "replicas": 2},
    });
    let changed = api.patch_status("one", &mine, &Patch::Apply(&status)).await?;
    ensure!(changed.status.and_then(|status| status.ready_replicas) == Some(2));
    let scale = json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "one"},
        "spec": {"replicas": 5},
    });
    let scaler = PatchParams::apply("scaler").force();
    let scaled = api.patch_scale("one", &scaler, &Patch::Apply(&scale)).await?;
    ensure!(scaled.spec.and_then(|spec| spec.replicas) == Some(5));
    let owners = api.get("one").await?.metadata.managed_fields.unwrap_or_default();
    let parts: Vec<_> = owners.iter().map(|owner| owner.subresource.as_deref()).collect();
    ensure!(owners.len() == 3 && parts.contains(&Some("scale")), "{owners:?}");
    Ok(())
}

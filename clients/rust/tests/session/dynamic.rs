//! Discovery, and objects whose type is only known at run time.

use anyhow::{Context as _, Result, ensure};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::{Discovery, Scope, verbs};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::{World, object};

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_is_discovered_and_used() -> Result<()> {
    let world = World::start().await?;
    for discovery in [
        Discovery::new(world.client.clone()).run().await?,
        Discovery::new(world.client.clone()).run_aggregated().await?,
    ] {
        ensure!(discovery.has_group("apps") && discovery.has_group("rbac.authorization.k8s.io"));
        let kind = GroupVersionKind::gvk("apps", "v1", "ControllerRevision");
        let (resource, abilities) =
            discovery.resolve_gvk(&kind).context("no ControllerRevision")?;
        ensure!(resource.plural == "controllerrevisions");
        ensure!(abilities.scope == Scope::Namespaced && abilities.supports_operation(verbs::WATCH));
        let (node, abilities) =
            discovery.resolve_gvk(&GroupVersionKind::gvk("", "v1", "Node")).context("no Node")?;
        ensure!(node.plural == "nodes" && abilities.scope == Scope::Cluster);

        let api: Api<DynamicObject> = Api::namespaced_with(world.client.clone(), "t", &resource);
        let revision = object(json!({
            "apiVersion": "apps/v1", "kind": "ControllerRevision",
            "metadata": {"name": "one"}, "revision": 1, "data": {"any": ["thing"]},
        }))?;
        let made: DynamicObject = api.create(&PostParams::default(), &revision).await?;
        ensure!(made.data["data"] == json!({"any": ["thing"]}), "{made:?}");
        let patch = Patch::Merge(json!({"revision": 2}));
        let patched = api.patch("one", &PatchParams::default(), &patch).await?;
        ensure!(patched.data["revision"] == 2 && patched.name_any() == "one");
        api.delete("one", &DeleteParams::default()).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_version_is_that_of_the_release() -> Result<()> {
    let world = World::start().await?;
    let version = world.client.apiserver_version().await?;
    ensure!(version.major == "1" && version.minor == "36", "{version:?}");
    Ok(())
}

//! Lists in pages.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::{ListParams, PostParams};
use serde_json::json;

use crate::{World, object};

#[tokio::test(flavor = "multi_thread")]
async fn pages_show_one_snapshot() -> Result<()> {
    let world = World::start().await?;
    let api = world.api::<Secret>();
    for number in 0..7 {
        let secret = object(json!({"metadata": {"name": format!("s{number}")}}))?;
        api.create(&PostParams::default(), &secret).await?;
    }
    let mut names = Vec::new();
    let mut versions = Vec::new();
    let mut remaining = Vec::new();
    let mut params = ListParams::default().limit(3);
    loop {
        let page = api.list(&params).await?;
        names.extend(page.items.iter().map(|secret| secret.name_any()));
        versions.push(page.metadata.resource_version.clone());
        remaining.push(page.metadata.remaining_item_count);
        if names.len() == 3 {
            let late = object(json!({"metadata": {"name": "s55"}}))?;
            api.create(&PostParams::default(), &late).await?;
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    ensure!(names == ["s0", "s1", "s2", "s3", "s4", "s5", "s6"], "{names:?}");
    ensure!(remaining == [Some(4), Some(1), None], "{remaining:?}");
    versions.dedup();
    ensure!(versions.len() == 1, "{versions:?}");
    Ok(())
}

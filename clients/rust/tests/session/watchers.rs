//! Watchers and reflectors, with lists and watches or with streaming lists, and their behaviour
//! after a compaction.

use std::pin::pin;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::reflector::store;
use kube::runtime::watcher::{self, Event, watcher};
use kube::runtime::{WatchStreamExt as _, reflector};
use kube::{Api, ResourceExt as _};
use pintle_testing::{Config, TestServer};
use serde_json::json;

use crate::{TIMEOUT, World, object};

async fn make(api: &Api<Secret>, name: &str) -> Result<Secret> {
    let secret = object(json!({"metadata": {"name": name}}))?;
    Ok(api.create(&PostParams::default(), &secret).await?)
}

/// An event's type and the name of its object.
fn words(event: &Event<Secret>) -> String {
    match event {
        Event::Init => "init".to_owned(),
        Event::InitApply(secret) => format!("init {}", secret.name_any()),
        Event::InitDone => "done".to_owned(),
        Event::Apply(secret) => format!("apply {}", secret.name_any()),
        Event::Delete(secret) => format!("delete {}", secret.name_any()),
    }
}

/// The next events, as texts.
async fn next<S>(stream: &mut S, count: usize) -> Result<Vec<String>>
where
    S: Stream<Item = Result<Event<Secret>, watcher::Error>> + Unpin,
{
    let mut seen = Vec::new();
    while seen.len() < count {
        let event = tokio::time::timeout(TIMEOUT, stream.try_next())
            .await
            .with_context(|| format!("nothing after {seen:?}"))??;
        seen.push(words(&event.context("the watcher ended")?));
    }
    Ok(seen)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_sees_existing_objects_and_changes() -> Result<()> {
    let world = World::start().await?;
    let configurations = [
        watcher::Config::default(),
        watcher::Config::default().streaming_lists(),
        watcher::Config::default().page_size(1),
        watcher::Config::default().any_semantic(),
    ];
    for configuration in configurations {
        let api = world.api::<Secret>();
        for name in ["a", "b"] {
            make(&api, name).await?;
        }
        let mut stream = pin!(watcher(api.clone(), configuration));
        ensure!(next(&mut stream, 4).await? == ["init", "init a", "init b", "done"]);
        make(&api, "c").await?;
        let patch = Patch::Merge(json!({"metadata": {"labels": {"l": "m"}}}));
        api.patch("a", &PatchParams::default(), &patch).await?;
        api.delete("b", &DeleteParams::default()).await?;
        ensure!(next(&mut stream, 3).await? == ["apply c", "apply a", "delete b"]);
        for name in ["a", "c"] {
            api.delete(name, &DeleteParams::default()).await?;
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reflector_mirrors() -> Result<()> {
    let world = World::start().await?;
    let api = world.api::<Secret>();
    make(&api, "a").await?;
    let (reader, writer) = store();
    let configuration = watcher::Config::default().streaming_lists();
    let stream = watcher(api.clone(), configuration).default_backoff();
    let mut stream = pin!(reflector(writer, stream).applied_objects());
    let first = tokio::time::timeout(TIMEOUT, stream.try_next()).await??;
    ensure!(first.is_some_and(|secret| secret.name_any() == "a"));
    for number in 0..20 {
        make(&api, &format!("s{number}")).await?;
        tokio::time::timeout(TIMEOUT, stream.try_next()).await??.context("it ended")?;
    }
    ensure!(reader.state().len() == 21);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compacted_version_is_an_error_event_and_a_watcher_lists_again() -> Result<()> {
    let config = Config { watch_history: Duration::from_millis(1), ..Config::ephemeral() };
    let world = World::of(TestServer::start_with(config)?).await?;
    let api = world.api::<Secret>();
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    for number in 0.. {
        make(&api, &format!("s{number}")).await?; // so that older versions can be compacted
        let mut events = pin!(api.watch(&WatchParams::default(), "1").await?);
        match tokio::time::timeout(Duration::from_millis(200), events.next()).await {
            Ok(Some(Ok(WatchEvent::Error(status)))) => {
                ensure!(status.code == 410 && status.reason == "Expired", "{status:?}");
                break;
            }
            Ok(Some(Ok(_))) | Err(_) if tokio::time::Instant::now() < deadline => {}
            other => bail!("version 1 is not forgotten: {other:?}"),
        }
    }
    // A watcher that lists again misses nothing, even if its list's version is compacted before it
    // watches: then it lists once more.
    let mut stream = pin!(watcher(api.clone(), watcher::Config::default()).default_backoff());
    let mut made = false;
    let come = async {
        loop {
            match stream.try_next().await {
                Ok(Some(Event::InitDone)) if !made => {
                    make(&api, "after").await?;
                    made = true;
                }
                Ok(Some(Event::Apply(secret) | Event::InitApply(secret)))
                    if secret.name_any() == "after" =>
                {
                    return Ok(());
                }
                Ok(Some(_)) | Err(watcher::Error::WatchError(_)) => {}
                other => bail!("{other:?}"),
            }
        }
    };
    tokio::time::timeout(TIMEOUT, come).await.context("it never comes")?
}

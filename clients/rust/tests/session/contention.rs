//! Many clients that fight over the same things: nothing is given twice, nothing is lost, and a restart
//! knows what is taken.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use futures_util::future::join_all;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::networking::v1::IPAddress;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, EvictParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Error};
use pintle_testing::{Config, TestServer};
use serde_json::json;

use crate::{World, object};

const CLIENTS: usize = 64;

fn node_ports(service: &Service) -> Vec<i32> {
    let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_ref());
    ports.into_iter().flatten().filter_map(|port| port.node_port).collect()
}

fn address(service: &Service) -> Option<String> {
    service.spec.as_ref()?.cluster_ip.clone()
}

fn small() -> Result<Config> {
    Ok(Config {
        service_cluster_ip_range: "10.9.0.0/26".to_owned(),
        service_node_port_range: "31000-31039".parse()?,
        ..Config::ephemeral()
    })
}

/// A range with 62 addresses and 40 ports, fewer than there are clients: each address and port goes to
/// one of them, the others are told that there is none; and what is given back can be had again.
#[tokio::test(flavor = "multi_thread")]
async fn addresses_and_ports_are_given_once() -> Result<()> {
    let world = World::of(TestServer::start_with(small()?)?).await?;
    let services: Api<Service> = world.api();
    let create = |n: usize, kind: &'static str| {
        let services = services.clone();
        async move {
            let service = object(json!({
                "metadata": {"name": format!("s{n}")},
                "spec": {"type": kind, "ports": [{"port": 80}]},
            }))?;
            anyhow::Ok(services.create(&PostParams::default(), &service).await)
        }
    };
    for _ in 0..2 {
        let outcomes = join_all((0..CLIENTS).map(|n| create(n, "NodePort"))).await;
        let (mut ports, mut addresses) = (BTreeSet::new(), BTreeSet::new());
        for outcome in outcomes {
            match outcome? {
                Ok(service) => {
                    for port in node_ports(&service) {
                        ensure!(ports.insert(port), "port {port} was given twice");
                    }
                    let address = address(&service).unwrap_or_default();
                    ensure!(addresses.insert(address.clone()), "{address} was given twice");
                }
                Err(Error::Api(status)) => {
                    let full = "failed to allocate a nodePort: range is full";
                    ensure!(status.code == 500 && status.message.contains(full), "{status}");
                }
                Err(error) => bail!(error),
            }
        }
        ensure!(ports.len() == 40, "{} of 40 ports were given", ports.len());
        // The API server's own service has one address.
        check_addresses(&world, &addresses).await?;
        join_all(services.list(&ListParams::default()).await?.into_iter().map(|service| {
            let services = services.clone();
            let name = service.metadata.name.unwrap_or_default();
            async move { services.delete(&name, &DeleteParams::default()).await }
        }))
        .await;
        check_addresses(&world, &BTreeSet::new()).await?;
    }
    Ok(())
}

/// The `IPAddress` objects are those of the services, and of the API server's own.
async fn check_addresses(world: &World, expected: &BTreeSet<String>) -> Result<()> {
    let all: Api<IPAddress> = Api::all(world.client.clone());
    let found = all.list(&ListParams::default()).await?;
    let names: BTreeSet<String> = found.into_iter().filter_map(|ip| ip.metadata.name).collect();
    let mut expected = expected.clone();
    expected.insert("10.9.0.1".to_owned());
    ensure!(names == expected, "{names:?}, not {expected:?}");
    Ok(())
}

/// What services have is taken after a restart, and nothing else is.
#[tokio::test(flavor = "multi_thread")]
async fn a_restart_knows_what_is_taken() -> Result<()> {
    let directory = std::env::temp_dir().join(format!("pintle-contention-{}", std::process::id()));
    let config = Config { ephemeral: false, data_dir: directory.clone(), ..small()? };
    let server = TestServer::start_with(config.clone())?;
    let world = World::of(server).await?;
    let services: Api<Service> = world.api();
    let service = |name: &str, port: Option<i32>| {
        object::<Service>(json!({
            "metadata": {"name": name},
            "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]},
        }))
    };
    let kept = services.create(&PostParams::default(), &service("kept", None)?).await?;
    let gone = services.create(&PostParams::default(), &service("gone", None)?).await?;
    services.delete("gone", &DeleteParams::default()).await?;
    let World { _server: server, .. } = world;
    server.stop();

    let world = World::again(TestServer::start_with(config)?).await?;
    let services: Api<Service> = world.api();
    let taken = node_ports(&kept)[0];
    let refused = services.create(&PostParams::default(), &service("a", Some(taken))?).await;
    ensure!(matches!(&refused, Err(Error::Api(status)) if status.code == 422), "{refused:?}");
    let free = node_ports(&gone)[0];
    let given = services.create(&PostParams::default(), &service("a", Some(free))?).await?;
    ensure!(node_ports(&given) == [free]);
    drop(world);
    std::fs::remove_dir_all(directory)?;
    Ok(())
}

/// 64 clients evict 64 pods that one budget guards, which has room for ten.
#[tokio::test(flavor = "multi_thread")]
async fn a_budget_is_not_overspent() -> Result<()> {
    let world = World::start().await?;
    let pods: Api<Pod> = world.api();
    let running = json!({"status": {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
    }});
    let running = Arc::new(running);
    let made = (0..CLIENTS).map(|n| {
        let (pods, running) = (pods.clone(), running.clone());
        async move {
            let name = format!("p{n}");
            let pod = object(json!({
                "metadata": {"name": name, "labels": {"app": "x"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            }))?;
            pods.create(&PostParams::default(), &pod).await?;
            let merge = Patch::Merge(&*running);
            pods.patch_status(&name, &PatchParams::default(), &merge).await?;
            anyhow::Ok(())
        }
    });
    for made in join_all(made).await {
        made?;
    }
    let budgets: Api<PodDisruptionBudget> = world.api();
    let budget = object(json!({
        "metadata": {"name": "b"},
        "spec": {"minAvailable": 54, "selector": {"matchLabels": {"app": "x"}}},
    }))?;
    budgets.create(&PostParams::default(), &budget).await?;
    let counted = json!({"status": {
        "observedGeneration": 1, "disruptionsAllowed": 10,
        "currentHealthy": 64, "desiredHealthy": 54, "expectedPods": 64,
    }});
    budgets.patch_status("b", &PatchParams::default(), &Patch::Merge(&counted)).await?;

    let evictions = (0..CLIENTS).map(|n| {
        let pods = pods.clone();
        async move { pods.evict(&format!("p{n}"), &EvictParams::default()).await }
    });
    let (mut evicted, mut refused) = (0, 0);
    for outcome in join_all(evictions).await {
        match outcome {
            Ok(_) => evicted += 1,
            Err(Error::Api(status)) if status.code == 429 => refused += 1,
            Err(error) => bail!(error),
        }
    }
    ensure!((evicted, refused) == (10, 54), "{evicted} evicted, {refused} refused");
    let left = pods.list(&ListParams::default()).await?.items.len();
    ensure!(left == 54, "{left} pods are left");
    let status = budgets.get("b").await?.status.unwrap_or_default();
    ensure!(status.disruptions_allowed.unwrap_or(0) == 0);
    ensure!(status.disrupted_pods.unwrap_or_default().len() == 10);
    Ok(())
}

/// 64 clients overwrite one object without saying which version they saw: all of them get through.
#[tokio::test(flavor = "multi_thread")]
async fn unconditional_updates_all_get_through() -> Result<()> {
    let world = World::start().await?;
    let services: Api<Service> = world.api();
    let service = |n: usize| {
        object::<Service>(json!({
            "metadata": {"name": "s", "annotations": {"n": n.to_string()}},
            "spec": {"type": "NodePort", "ports": [{"port": 80}]},
        }))
    };
    let first = services.create(&PostParams::default(), &service(0)?).await?;
    let updates = (1..=CLIENTS).map(|n| {
        let services = services.clone();
        async move { anyhow::Ok(services.replace("s", &PostParams::default(), &service(n)?).await?) }
    });
    for updated in join_all(updates).await {
        let updated = updated?;
        ensure!(address(&updated) == address(&first) && node_ports(&updated) == node_ports(&first));
    }
    Ok(())
}

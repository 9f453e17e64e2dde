//! Programs written with kube-rs: typed and dynamic objects, pages, watchers, reflectors,
//! discovery. One test binary, so that kube is linked once.

mod admission;
mod apply;
mod controller;
mod conversion;
mod custom;
mod dynamic;
mod pages;
mod reviews;
mod streams;
mod typed;
mod watchers;
mod webhook;

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use pintle_testing::TestServer;
use serde_json::json;

/// How long a step may take; only failing tests wait that long.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A server for one test, and a client of it.
struct World {
    _server: TestServer,
    client: Client,
}

impl World {
    async fn start() -> Result<Self> {
        Self::of(TestServer::start()).await
    }

    async fn of(server: TestServer) -> Result<Self> {
        let world = Self::again(server).await?;
        let namespace: Namespace = object(json!({"metadata": {"name": "t"}}))?;
        Api::all(world.client.clone()).create(&PostParams::default(), &namespace).await?;
        // Waits for the objects that the server creates in the namespace: a webhook would be called
        // for them, and pods wait for their account for a second only.
        let (maps, accounts) = (world.api::<ConfigMap>(), world.api::<ServiceAccount>());
        let made = async {
            while maps.get_opt("kube-root-ca.crt").await?.is_none()
                || accounts.get_opt("default").await?.is_none()
            {
                tokio::task::yield_now().await;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(TIMEOUT, made).await??;
        Ok(world)
    }

    /// A world on a server that already has the namespace.
    async fn again(server: TestServer) -> Result<Self> {
        let kubeconfig = Kubeconfig::from_yaml(server.kubeconfig())?;
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        let client = Client::try_from(config)?;
        Ok(Self { _server: server, client })
    }

    /// The objects of a kind in the namespace of the test.
    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), "t")
    }
}

/// An object of a type from its JSON.
fn object<K: serde::de::DeserializeOwned>(json: serde_json::Value) -> Result<K> {
    Ok(serde_json::from_value(json)?)
}

//! Clients of kube-rs, and how to test a controller with them.
//!
//! The controller under test runs as in production, with a client of the test's server. The test
//! writes objects as a user does, and waits until the controller has reconciled them:
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use std::time::Duration;
//! # use kube::api::{Api, PostParams};
//! # use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
//! # use kube::runtime::wait::await_condition;
//! # async fn run_my_controller(client: kube::Client) {}
//! # async fn test() -> Result<(), Box<dyn std::error::Error>> {
//! use pintle_testing::TestServer;
//!
//! let server = TestServer::builder().manifests("config/crd").start()?;
//! let controller = tokio::spawn(run_my_controller(server.client().await?));
//!
//! let foos = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Foo"));
//! let api: Api<DynamicObject> =
//!     Api::namespaced_with(server.client_of("jane", &["system:masters"]).await?, "default", &foos);
//! api.create(&PostParams::default(), &DynamicObject::new("a", &foos)).await?;
//!
//! let is_ready = |foo: Option<&DynamicObject>| {
//!     foo.is_some_and(|foo| foo.data["status"]["ready"] == true)
//! };
//! let ready = await_condition(api, "a", is_ready);
//! tokio::time::timeout(Duration::from_secs(10), ready).await??;
//! controller.abort();
//! # Ok(())
//! # } // the server stops, and its objects are gone
//! ```
//!
//! The test waits for a condition and not for a fixed time. It does not clean up, because the next
//! test has its own server.

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::TestServer;

/// The reason why a client cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Server(#[from] crate::Error),
    #[error(transparent)]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    #[error(transparent)]
    Client(Box<kube::Error>),
}

impl TestServer {
    /// A client with the administrator's rights.
    pub async fn client(&self) -> Result<Client, Error> {
        client(self.kubeconfig()).await
    }

    /// A client of a user who is a member of groups.
    pub async fn client_of(&self, name: &str, groups: &[&str]) -> Result<Client, Error> {
        client(&self.kubeconfig_of(name, groups)?).await
    }
}

async fn client(kubeconfig: &str) -> Result<Client, Error> {
    let kubeconfig = Kubeconfig::from_yaml(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Client::try_from(config).map_err(|why| Error::Client(Box::new(why)))
}

//! An API server for a test, in the test's process, on a free port. It stops when it is dropped.
//!
//! ```no_run
//! let server = pintle_testing::TestServer::start();
//! println!("{}", server.kubeconfig_path().display());
//! ```
//!
//! The server is complete: RBAC, admission, garbage collection, namespace deletion, service
//! accounts, custom resources. Initial objects are applied before the server is ready; custom
//! resources and their definitions may come in any order:
//!
//! ```no_run
//! # fn main() -> Result<(), pintle_testing::Error> {
//! use pintle_testing::TestServer;
//!
//! let server = TestServer::builder()
//!     .manifests("config/crd")
//!     .objects("{apiVersion: v1, kind: Namespace, metadata: {name: team}}")
//!     .start()?;
//! let developer = server.kubeconfig_of("jane", &["dev"])?;
//! # Ok(())
//! # }
//! ```
//!
//! Tests that need only their own namespace can share a server: [`TestServer::shared`]. The feature
//! `kube` adds clients of kube-rs; its module shows how to test a controller.
//!
//! If the environment variable `PINTLE_TEST_ETCD` has the URL of an etcd, servers that would keep
//! their objects only in memory use that etcd, each under its own key prefix ([`etcd`]).
//!
//! The server runs on its own threads. So a test may be synchronous or asynchronous, on any
//! runtime, and may block.

mod builder;
pub mod etcd;
#[cfg(feature = "kube")]
pub mod kube;

pub use builder::Builder;

use std::path::Path;
use std::sync::{Arc, Weak, mpsc};
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;
pub use pintle_server::{
    AdmissionConfiguration, Config, ConnectionLimits, Credentials, EncryptionFile, Error, Etcd,
    EtcdTls, Feature, FeatureGates, Mode, Plugins, PortRange, RuntimeConfig, Selection,
};
use pintle_server::{Running, Server, Signer, kubeconfig};
use tokio::sync::oneshot;

/// A server that runs until this is dropped.
pub struct TestServer {
    facts: Facts,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Addresses and credentials for clients.
struct Facts {
    url: String,
    kubeconfig: String,
    kubeconfig_path: std::path::PathBuf,
    ca_pem: String,
    admin: Credentials,
    signer: Arc<Signer>,
}

impl TestServer {
    /// Starts a server in memory on a free port. It is ready when this returns.
    ///
    /// # Panics
    /// If the server does not start.
    pub fn start() -> Self {
        Self::start_with(Config::ephemeral()).expect("a server in memory starts")
    }

    /// A builder of a server with initial objects.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The shared server of this process. The first caller starts it, and it stops when the last
    /// `Arc` is dropped.
    ///
    /// # Panics
    /// If the server does not start.
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<TestServer>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock();
        shared.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Self::start());
            *shared = Arc::downgrade(&server);
            server
        })
    }

    /// Starts a server with a configuration. It is ready when this returns.
    pub fn start_with(config: Config) -> Result<Self, Error> {
        let config = etcd::with_named_etcd(config);
        let (ready, started) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("pintle".to_owned()).spawn(move || {
            let runtime = pintle_server::runtime();
            let runtime = runtime.expect("the runtime starts");
            runtime.block_on(serve(config, &ready, stopped));
        });
        let thread = thread.expect("a thread starts");
        let facts = started.recv().expect("the thread reports the outcome of the start")?;
        Ok(Self { facts, stop: Some(stop), thread: Some(thread) })
    }

    /// The server's URL, such as `https://127.0.0.1:40123`.
    pub fn url(&self) -> &str {
        &self.facts.url
    }

    /// A kubeconfig with the administrator's rights.
    pub fn kubeconfig(&self) -> &str {
        &self.facts.kubeconfig
    }

    /// The file with the administrator's kubeconfig.
    pub fn kubeconfig_path(&self) -> &Path {
        &self.facts.kubeconfig_path
    }

    /// The certificate authority that clients must trust, as PEM.
    pub fn ca_pem(&self) -> &str {
        &self.facts.ca_pem
    }

    /// The administrator's client certificate.
    pub const fn admin(&self) -> &Credentials {
        &self.facts.admin
    }

    /// A new client certificate and key for a user who is a member of groups. RBAC decides the
    /// user's rights.
    pub fn user(&self, name: &str, groups: &[&str]) -> Result<Credentials, Error> {
        self.facts.signer.client(name, groups)
    }

    /// A kubeconfig with a new client certificate of a user.
    pub fn kubeconfig_of(&self, name: &str, groups: &[&str]) -> Result<String, Error> {
        Ok(kubeconfig(self.url(), self.ca_pem(), &self.user(name, groups)?))
    }

    /// Stops the server gracefully, as SIGTERM does: requests in flight finish first.
    pub fn stop(mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(()); // the server may have stopped already
        }
        self.join();
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panic in the thread has been printed
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop = None; // a dropped sender stops the server at once, without a graceful shutdown
        self.join();
    }
}

async fn serve(
    config: Config,
    ready: &mpsc::Sender<Result<Facts, Error>>,
    stopped: oneshot::Receiver<()>,
) {
    let server = match Server::start(config).await {
        Ok(server) => server,
        Err(error) => {
            let _ = ready.send(Err(error));
            return;
        }
    };
    let _ = ready.send(Ok(Facts::of(&server)));
    if stopped.await.is_ok() {
        server.shutdown().await;
    }
}

impl Facts {
    fn of(server: &Running) -> Self {
        Self {
            url: server.url().to_owned(),
            kubeconfig: server.kubeconfig().to_owned(),
            kubeconfig_path: server.kubeconfig_path().to_owned(),
            ca_pem: server.ca_pem().to_owned(),
            admin: server.admin().clone(),
            signer: server.signer().clone(),
        }
    }
}

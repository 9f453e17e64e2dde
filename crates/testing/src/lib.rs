//! An API server for a test: in this process, on a free port, gone when it is dropped.
//!
//! ```no_run
//! let server = pintle_testing::TestServer::start();
//! println!("{}", server.kubeconfig_path().display());
//! ```
//!
//! It is a whole server: RBAC, admission, garbage collection, namespaces that go away, service accounts,
//! custom resources. What a test needs from the beginning is applied before the server is ready, custom
//! resources and their definitions in any order:
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
//! Tests that can do with a namespace of their own share a server: [`TestServer::shared`]. With the
//! feature `kube` there are clients of kube-rs, too; see the module of that name for the test of a
//! controller.
//!
//! Where the variable `PINTLE_TEST_ETCD` has the URL of an etcd, servers that would keep nothing keep their
//! objects there, each in a part of its own ([`etcd`]).
//!
//! The server runs on threads of its own, so a test may be synchronous or asynchronous, on any runtime,
//! and may block.

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

/// A server that runs as long as this lives.
pub struct TestServer {
    facts: Facts,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What clients need.
struct Facts {
    url: String,
    kubeconfig: String,
    kubeconfig_path: std::path::PathBuf,
    ca_pem: String,
    admin: Credentials,
    signer: Arc<Signer>,
}

impl TestServer {
    /// Starts a server that keeps nothing, on a free port; it is ready when this returns.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start() -> Self {
        Self::start_with(Config::ephemeral()).expect("a server that keeps nothing starts")
    }

    /// A server that has things in it from the beginning.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The server that all who hold it share: started for the first of them, and gone with the last.
    ///
    /// # Panics
    /// If it does not start.
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<TestServer>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock();
        shared.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Self::start());
            *shared = Arc::downgrade(&server);
            server
        })
    }

    /// Starts a server as configured; it is ready when this returns.
    pub fn start_with(config: Config) -> Result<Self, Error> {
        let config = etcd::placed(config);
        let (ready, started) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("pintle".to_owned()).spawn(move || {
            let runtime = pintle_server::runtime();
            let runtime = runtime.expect("a runtime needs no more than threads");
            runtime.block_on(serve(config, &ready, stopped));
        });
        let thread = thread.expect("a test can have a thread");
        let facts = started.recv().expect("the thread says how the start went")?;
        Ok(Self { facts, stop: Some(stop), thread: Some(thread) })
    }

    /// `https://127.0.0.1:40123`
    pub fn url(&self) -> &str {
        &self.facts.url
    }

    /// A kubeconfig that may do everything.
    pub fn kubeconfig(&self) -> &str {
        &self.facts.kubeconfig
    }

    /// A file with that kubeconfig.
    pub fn kubeconfig_path(&self) -> &Path {
        &self.facts.kubeconfig_path
    }

    /// The authority to trust, as PEM.
    pub fn ca_pem(&self) -> &str {
        &self.facts.ca_pem
    }

    /// A client certificate that may do everything.
    pub const fn admin(&self) -> &Credentials {
        &self.facts.admin
    }

    /// A client certificate for a user in groups, with a key of its own. What the user may do is for RBAC
    /// to say.
    pub fn user(&self, name: &str, groups: &[&str]) -> Result<Credentials, Error> {
        self.facts.signer.client(name, groups)
    }

    /// A kubeconfig for such a user.
    pub fn kubeconfig_of(&self, name: &str, groups: &[&str]) -> Result<String, Error> {
        Ok(kubeconfig(self.url(), self.ca_pem(), &self.user(name, groups)?))
    }

    /// Stops the server as a signal would: requests finish first.
    pub fn stop(mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(()); // it may have stopped by itself
        }
        self.join();
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panic in it has been printed
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop = None; // without a word: at once
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

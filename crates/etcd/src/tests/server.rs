//! Real etcd servers: the program `etcd` on the path, or the program that `PINTLE_ETCD` names.

use std::env;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep};

use super::plain;
use crate::client::{Client, Etcd};
use crate::opening::EtcdOpening;
use crate::store::{EtcdStore, Options};
use crate::tls::Tls;

const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The number of servers at once: with more, the slow disk would make tests exceed their deadlines.
static SERVERS: Semaphore = Semaphore::const_new(2);

/// A server with one member, killed when this is dropped.
pub(super) struct Server {
    pub(super) endpoint: String,
    /// The arguments, for a restart.
    arguments: Vec<String>,
    process: Child,
    pub(super) dir: TempDir,
    _permit: SemaphorePermit<'static>,
}

impl Server {
    /// Starts a server; `None` if this machine has no etcd.
    pub(super) async fn start() -> Option<Self> {
        Self::start_in(tempfile::tempdir().unwrap(), "http", &[]).await
    }

    /// Starts a server with its files in `dir` and with further arguments, in which `DIR` is
    /// replaced by `dir`.
    pub(super) async fn start_in(dir: TempDir, scheme: &str, further: &[&str]) -> Option<Self> {
        let permit = SERVERS.acquire().await.unwrap();
        let [client, peer] = free_ports();
        let path = dir.path().display().to_string();
        let endpoint = format!("{scheme}://127.0.0.1:{client}");
        let data = format!("{path}/data");
        let peer = format!("http://127.0.0.1:{peer}");
        let cluster = format!("default={peer}");
        let own = [
            ("--data-dir", &data),
            ("--listen-client-urls", &endpoint),
            ("--advertise-client-urls", &endpoint),
            ("--listen-peer-urls", &peer),
            ("--initial-advertise-peer-urls", &peer),
            ("--initial-cluster", &cluster),
        ];
        let mut arguments =
            vec!["--heartbeat-interval=20".to_owned(), "--election-timeout=200".to_owned()];
        arguments.extend(own.iter().map(|(name, value)| format!("{name}={value}")));
        arguments.extend(further.iter().map(|argument| argument.replace("DIR", &path)));
        let process = spawn(&arguments)?;
        let server = Self { endpoint, arguments, process, dir, _permit: permit };
        if scheme == "http" {
            ready(&server.client()).await;
        }
        Some(server)
    }

    pub(super) fn client(&self) -> Client {
        Client::new(std::slice::from_ref(&self.endpoint), &Tls::default(), &Arc::default()).unwrap()
    }

    pub(super) fn options(&self) -> Options {
        Options {
            endpoints: vec![self.endpoint.clone()],
            compaction_interval: None,
            ..Options::default()
        }
    }

    /// Opens a store on this server.
    pub(super) async fn store(&self) -> EtcdStore {
        self.store_with(self.options()).await
    }

    pub(super) async fn store_with(&self, options: Options) -> EtcdStore {
        let client = Client::new(&options.endpoints, &options.tls, &options.measures).unwrap();
        EtcdOpening::new(Arc::new(client), options, plain()).await.unwrap().start()
    }

    /// Kills the server, as a machine failure would.
    pub(super) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts a killed server again.
    pub(super) async fn restart(&mut self) {
        self.process = spawn(&self.arguments).expect("it was there before");
        ready(&self.client()).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Waits until a server answers.
pub(super) async fn ready(client: &Client) {
    let deadline = Instant::now() + START_TIMEOUT;
    while let Err(error) = client.status().await {
        assert!(Instant::now() < deadline, "etcd does not start: {error}");
        sleep(Duration::from_millis(10)).await;
    }
}

fn spawn(arguments: &[String]) -> Option<Child> {
    let program = env::var_os("PINTLE_ETCD").unwrap_or_else(|| "etcd".into());
    let mut command = Command::new(&program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(process) => Some(process),
        Err(why) => {
            println!("skipped: {} cannot be started: {why}", program.display());
            None
        }
    }
}

/// Ports without a listener.
fn free_ports<const N: usize>() -> [u16; N] {
    let listeners: [_; N] = std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

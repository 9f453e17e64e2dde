//! Starts and stops a server by a command, and reads its memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tokio::process::{Child, Command};

use crate::server::Server;

/// How long a server may take to be ready, or to stop.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The commands that start and stop a server.
#[derive(Clone, Debug)]
pub struct Program {
    /// A shell command that runs the server in the foreground.
    pub start: String,
    /// A shell command that stops it; without one it gets a signal.
    pub stop: Option<String>,
    /// The path of its kubeconfig.
    pub kubeconfig: PathBuf,
}

/// A started server; dropping the value kills it.
pub struct Running {
    child: Child,
    stop: Option<String>,
    /// The server.
    pub server: Server,
    /// From the start to the first `ok` of `/readyz`.
    pub ready_after: Duration,
}

impl Program {
    /// Starts it and waits until it is ready.
    pub async fn start(&self) -> Result<Running> {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("exec {}", self.start))
            .stdout(Stdio::null())
            .kill_on_drop(true);
        let start = Instant::now();
        let mut child = command.spawn().with_context(|| format!("starting {}", self.start))?;
        loop {
            let unready = match ready(&self.kubeconfig).await {
                Ok(server) => {
                    let ready_after = start.elapsed();
                    return Ok(Running { child, stop: self.stop.clone(), server, ready_after });
                }
                Err(unready) => unready,
            };
            if let Some(status) = child.try_wait()? {
                bail!("--start: the server ended before it was ready ({status})");
            }
            if start.elapsed() > TIMEOUT {
                return Err(unready.context("--start: the server isn't ready in time"));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// The server of a kubeconfig, if it reports ready.
async fn ready(kubeconfig: &Path) -> Result<Server> {
    let server = Server::from_kubeconfig(kubeconfig)?;
    let (status, _) = server.ask("GET", "/readyz", "", &[500]).await?;
    if status != 200 {
        bail!("not ready");
    }
    Ok(server)
}

impl Running {
    /// Resident memory of the server and all its children, in bytes.
    pub fn memory_bytes(&self) -> Result<u64> {
        let root = self.child.id().context("the server has ended")?;
        memory_bytes(root)
    }

    /// The processor time that the server has used, without children that it has not waited for.
    /// Linux only.
    pub fn processor_time(&self) -> Result<Duration> {
        let pid = self.child.id().context("the server has ended")?;
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // After the name, which may have spaces, fields 14 and 15 are the user and system time, in
        // hundredths of a second.
        let fields: Vec<&str> =
            text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok());
        let ticks = ticks(11).zip(ticks(12)).context("processor time is read from /proc")?;
        Ok(Duration::from_millis((ticks.0 + ticks.1) * 10))
    }

    /// Stops it and waits until it has exited.
    pub async fn stop(mut self) -> Result<()> {
        let pid = self.child.id().context("the server has ended")?;
        let command = self.stop.clone().unwrap_or_else(|| format!("kill -TERM {pid}"));
        let status = Command::new("sh").arg("-c").arg(&command).status().await?;
        if !status.success() {
            bail!("{command}: {status}");
        }
        tokio::time::timeout(TIMEOUT, self.child.wait())
            .await
            .context("the server does not stop in time")??;
        Ok(())
    }
}

/// Resident memory of a process and its descendants, in bytes. Linux only.
fn memory_bytes(root: u32) -> Result<u64> {
    let mut parents = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").context("memory is read from /proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { continue };
        let field = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        parents.insert(pid, (field("PPid:").unwrap_or(0), field("VmRSS:").unwrap_or(0)));
    }
    let is_descendant = |pid: u32| {
        let mut pid = pid;
        for _ in 0..64 {
            if pid == root {
                return true;
            }
            match parents.get(&pid) {
                Some((parent, _)) => pid = u32::try_from(*parent).unwrap_or(0),
                None => return false,
            }
        }
        false
    };
    let kib: u64 =
        parents.iter().filter(|(pid, _)| is_descendant(**pid)).map(|(_, (_, rss))| rss).sum();
    Ok(kib * 1024)
}

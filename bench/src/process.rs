//! Starts and stops a server by a command, and reads its memory and its processor time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tokio::process::{Child, Command};

use crate::server::Server;

/// How long a server may take to be ready, or to stop.
const TIMEOUT: Duration = Duration::from_secs(120);

/// How long a measurement waits at most for the server to be at rest.
const REST_TIMEOUT: Duration = Duration::from_secs(60);

/// The interval in which a server at rest uses at most [`REST_TICKS`].
const REST_INTERVAL: Duration = Duration::from_millis(200);

/// A twentieth of a processor, in hundredths of a second in an interval; idle servers use less.
const REST_TICKS: u64 = 1;

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
    /// Its process ID.
    pub fn pid(&self) -> Result<u32> {
        self.child.id().context("the server has ended")
    }

    /// Resident memory of the server and all its children, in bytes. Linux only.
    pub fn memory_bytes(&self) -> Result<u64> {
        Ok(self.usage()?.memory_bytes)
    }

    /// The processor time that the server and all its running children have used. Linux only.
    pub fn processor_time(&self) -> Result<Duration> {
        Ok(Duration::from_millis(self.usage()?.ticks * 10))
    }

    /// Waits until the server is at rest for three intervals, at most a minute. After deletions
    /// servers collect garbage and compact their databases, which is no work of the next requests.
    pub async fn rest(&self) -> Result<()> {
        let deadline = Instant::now() + REST_TIMEOUT;
        let (mut quiet, mut before) = (0, self.usage()?.ticks);
        while quiet < 3 && Instant::now() < deadline {
            tokio::time::sleep(REST_INTERVAL).await;
            let ticks = self.usage()?.ticks;
            quiet = if ticks.saturating_sub(before) <= REST_TICKS { quiet + 1 } else { 0 };
            before = ticks;
        }
        Ok(())
    }

    fn usage(&self) -> Result<Usage> {
        usage(self.pid()?)
    }

    /// Stops it and waits until it has exited.
    pub async fn stop(mut self) -> Result<()> {
        let pid = self.pid()?;
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

/// The memory and the processor time of a process.
#[derive(Clone, Copy, Default)]
struct Usage {
    memory_bytes: u64,
    /// Processor time in hundredths of a second.
    ticks: u64,
}

/// The memory and the processor time of a process and its descendants. Linux only.
fn usage(root: u32) -> Result<Usage> {
    let mut processes = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").context("memory is read from /proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { continue };
        // After the name, which may have spaces, fields 4, 14 and 15 are the parent, the user time
        // and the system time.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split(' ').collect();
        let field = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok());
        let (Some(parent), Some(user), Some(system)) = (field(2), field(12), field(13)) else {
            continue;
        };
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = resident.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        let usage = Usage { memory_bytes: kib.unwrap_or(0) * 1024, ticks: user + system };
        processes.insert(pid, (u32::try_from(parent).unwrap_or(0), usage));
    }
    let is_descendant = |pid: u32| {
        let parent = |pid: &u32| processes.get(pid).map(|(parent, _)| *parent);
        std::iter::successors(Some(pid), parent).take(64).any(|pid| pid == root)
    };
    let mut total = Usage::default();
    for (_, (_, usage)) in processes.iter().filter(|(pid, _)| is_descendant(**pid)) {
        total.memory_bytes += usage.memory_bytes;
        total.ticks += usage.ticks;
    }
    Ok(total)
}

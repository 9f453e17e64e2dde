//! A real etcd with one member, gone when it is dropped.

use std::env;
use std::io::{Write as _, stdout};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tempfile::TempDir;

const START_PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Process {
    pub(crate) url: String,
    process: Child,
    _directory: TempDir,
}

impl Process {
    /// Starts it; `None` where this machine has no etcd, which is said.
    pub(crate) fn start() -> Result<Option<Self>> {
        let directory = tempfile::tempdir()?;
        let [client, peer] = free_ports()?;
        let (url, peer) =
            (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
        let program = env::var_os("PINTLE_ETCD").unwrap_or_else(|| "etcd".into());
        let mut command = Command::new(&program);
        command.arg("--data-dir").arg(directory.path());
        command.args(["--listen-client-urls", &url, "--advertise-client-urls", &url]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &format!("default={peer}")]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = match command.spawn() {
            Ok(process) => process,
            Err(why) => {
                writeln!(stdout(), "skipped: {} cannot be started: {why}", program.display())?;
                return Ok(None);
            }
        };
        let started = Self { url, process, _directory: directory };
        let deadline = Instant::now() + START_PATIENCE;
        while TcpStream::connect(("127.0.0.1", client)).is_err() {
            ensure!(Instant::now() < deadline, "etcd does not listen");
            sleep(Duration::from_millis(10));
        }
        Ok(Some(started))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Ports that nobody listens on.
fn free_ports() -> Result<[u16; 2]> {
    let (one, other) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
    Ok([one.local_addr()?.port(), other.local_addr()?.port()])
}

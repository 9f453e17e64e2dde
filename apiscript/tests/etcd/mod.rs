//! A real etcd: the one whose URL `PINTLE_TEST_ETCD` is, also a kine; or one of the test's own with one
//! member, `etcd` on the path or what `PINTLE_ETCD` names, gone when it is dropped.

use std::env;
use std::io::{Write as _, stdout};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use pintle_testing::Etcd;
use pintle_testing::etcd::{named, new_part};
use tempfile::TempDir;

const START_PATIENCE: Duration = Duration::from_secs(60);

/// An etcd that servers of a test keep their objects in.
pub(crate) struct Database {
    url: String,
    _own: Option<Process>,
}

impl Database {
    /// `None` where this machine has no etcd, which is said.
    pub(crate) fn find() -> Result<Option<Self>> {
        if let Some(url) = named() {
            return Ok(Some(Self { url, _own: None }));
        }
        let own = Process::start()?;
        Ok(own.map(|(url, process)| Self { url, _own: Some(process) }))
    }

    /// A part of it in which nothing is kept yet.
    pub(crate) fn part(&self) -> Etcd {
        new_part(&self.url)
    }
}

/// An etcd with one member.
struct Process {
    process: Child,
    _directory: TempDir,
}

impl Process {
    fn start() -> Result<Option<(String, Self)>> {
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
        let started = Self { process, _directory: directory };
        let deadline = Instant::now() + START_PATIENCE;
        while TcpStream::connect(("127.0.0.1", client)).is_err() {
            ensure!(Instant::now() < deadline, "etcd does not listen");
            sleep(Duration::from_millis(10));
        }
        Ok(Some((url, started)))
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

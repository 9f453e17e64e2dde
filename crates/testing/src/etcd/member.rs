//! Members of an etcd of a test's own, which can be broken.

use std::env;
use std::io::{self, Read as _, Write as _, stdout};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

const START_PATIENCE: Duration = Duration::from_secs(60);

/// A member: `etcd` on the path, or what `PINTLE_ETCD` names. It is gone when this is dropped.
#[derive(Debug)]
pub struct Member {
    /// Where clients are served, as `127.0.0.1:2379`.
    address: String,
    url: String,
    arguments: Vec<String>,
    process: Child,
    _directory: TempDir,
}

impl Member {
    /// The only member of an etcd, with further flags; `None` where this machine has no etcd, which is said.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(flags: &[&str]) -> io::Result<Option<Self>> {
        let members = Self::cluster(1, flags)?;
        Ok(members.and_then(|members| members.into_iter().next()))
    }

    /// So many members of one etcd.
    ///
    /// # Errors
    /// If one does not start.
    pub fn cluster(count: usize, flags: &[&str]) -> io::Result<Option<Vec<Self>>> {
        let ports = free_ports(2 * count)?;
        let addresses: Vec<_> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let (clients, peers) = addresses.split_at(count);
        let named = |(number, peer): (usize, &String)| format!("m{number}=http://{peer}");
        let all: Vec<_> = peers.iter().enumerate().map(named).collect();
        let mut members = Vec::new();
        for (number, (client, peer)) in clients.iter().zip(peers).enumerate() {
            let directory = tempfile::tempdir()?;
            let (url, peer) = (format!("http://{client}"), format!("http://{peer}"));
            let mut arguments = vec![
                format!("--name=m{number}"),
                format!("--data-dir={}", directory.path().display()),
                format!("--listen-client-urls={url}"),
                format!("--advertise-client-urls={url}"),
                format!("--listen-peer-urls={peer}"),
                format!("--initial-advertise-peer-urls={peer}"),
                format!("--initial-cluster={}", all.join(",")),
            ];
            arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
            let Some(process) = spawn(&arguments)? else { return Ok(None) };
            let address = client.clone();
            members.push(Self { address, url, arguments, process, _directory: directory });
        }
        members.iter().try_for_each(Self::wait)?;
        Ok(Some(members))
    }

    /// Where clients are served: a URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where clients are served: address and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Ends it as a failure of its machine does, and begins it again.
    ///
    /// # Errors
    /// If it does not start.
    pub fn crash(&mut self) -> io::Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        self.process = spawn(&self.arguments)?.ok_or(io::ErrorKind::NotFound)?;
        self.wait()
    }

    /// Lets it do nothing until [`Self::resume`].
    ///
    /// # Errors
    /// If it cannot be told.
    pub fn pause(&self) -> io::Result<()> {
        self.signal("-STOP")
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// If it cannot be told.
    pub fn resume(&self) -> io::Result<()> {
        self.signal("-CONT")
    }

    /// What a method of etcd's API answers, as JSON: `maintenance/defragment` with `{}`.
    ///
    /// # Errors
    /// If there is no answer.
    pub fn call(&self, method: &str, request: &str) -> io::Result<String> {
        self.exchange(&format!("POST /v3/{method}"), request)
    }

    fn exchange(&self, line: &str, body: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        let (address, length) = (&self.address, body.len());
        write!(
            stream,
            "{line} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: \
             application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    fn signal(&self, signal: &str) -> io::Result<()> {
        let status =
            Command::new("kill").args([signal, &self.process.id().to_string()]).status()?;
        if status.success() { Ok(()) } else { Err(io::Error::other("kill failed")) }
    }

    /// Waits until it serves clients and has a leader.
    fn wait(&self) -> io::Result<()> {
        let deadline = Instant::now() + START_PATIENCE;
        let is_well = || self.exchange("GET /health", "").is_ok_and(|told| told.contains("true"));
        while !is_well() {
            if Instant::now() > deadline {
                return Err(io::Error::other("etcd does not get well"));
            }
            sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn spawn(arguments: &[String]) -> io::Result<Option<Child>> {
    let program = env::var_os("PINTLE_ETCD").unwrap_or_else(|| "etcd".into());
    let mut command = Command::new(&program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(process) => Ok(Some(process)),
        Err(why) => {
            writeln!(stdout(), "skipped: {} cannot be started: {why}", program.display())?;
            Ok(None)
        }
    }
}

/// Ports that nobody listens on.
fn free_ports(count: usize) -> io::Result<Vec<u16>> {
    let listeners: io::Result<Vec<_>> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0")).collect();
    listeners?.iter().map(|listener| Ok(listener.local_addr()?.port())).collect()
}

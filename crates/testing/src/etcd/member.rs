//! Members of an etcd cluster that a test starts, crashes and pauses.

use std::env;
use std::io::{self, Read as _, Write as _, stdout};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A member of an etcd cluster. It runs the program that `PINTLE_ETCD` names, or else `etcd` from
/// the `PATH`, and is killed when this is dropped.
#[derive(Debug)]
pub struct Member {
    /// The client address, such as `127.0.0.1:2379`.
    address: String,
    url: String,
    arguments: Vec<String>,
    process: Child,
    _directory: TempDir,
}

impl Member {
    /// Starts an etcd of one member with additional flags. If etcd cannot be started, returns
    /// `None` and prints the reason on standard output.
    ///
    /// # Errors
    /// If the member does not start.
    pub fn start(flags: &[&str]) -> io::Result<Option<Self>> {
        let members = Self::cluster(1, flags)?;
        Ok(members.and_then(|members| members.into_iter().next()))
    }

    /// Starts an etcd of `count` members with additional flags. If etcd cannot be started, returns
    /// `None` and prints the reason on standard output.
    ///
    /// # Errors
    /// If a member does not start.
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

    /// The client URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The client address and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Kills the member's process without a shutdown, and starts it again.
    ///
    /// # Errors
    /// If the member does not start.
    pub fn crash(&mut self) -> io::Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        self.process = spawn(&self.arguments)?.ok_or(io::ErrorKind::NotFound)?;
        self.wait()
    }

    /// Stops the member's process until [`Self::resume`].
    ///
    /// # Errors
    /// If the signal cannot be sent.
    pub fn pause(&self) -> io::Result<()> {
        self.signal("-STOP")
    }

    /// Lets the member's process continue.
    ///
    /// # Errors
    /// If the signal cannot be sent.
    pub fn resume(&self) -> io::Result<()> {
        self.signal("-CONT")
    }

    /// Calls a method of etcd's JSON API, such as `maintenance/defragment` with `{}`, and returns
    /// the response, its head included.
    ///
    /// # Errors
    /// If there is no response.
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

    /// Waits until the member serves clients and has a leader.
    fn wait(&self) -> io::Result<()> {
        let deadline = Instant::now() + START_TIMEOUT;
        let is_healthy =
            || self.exchange("GET /health", "").is_ok_and(|text| text.contains("true"));
        while !is_healthy() {
            if Instant::now() > deadline {
                return Err(io::Error::other("etcd does not become healthy"));
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

/// Free ports.
fn free_ports(count: usize) -> io::Result<Vec<u16>> {
    let listeners: io::Result<Vec<_>> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0")).collect();
    listeners?.iter().map(|listener| Ok(listener.local_addr()?.port())).collect()
}

//! A control plane of two processes.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use apiscript::http::{Connection, Request, Response};
use apiscript::kubeconfig::Cluster;
use serde_json::Value;
use tempfile::TempDir;

use crate::command_lines::Harness;
use crate::pki;

/// The longest wait. Only a failing test waits this long.
const TIMEOUT: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Etcd,
    KubeApiserver,
}

pub(crate) struct Plane {
    harness: &'static str,
    probe: &'static str,
    directory: TempDir,
    etcd_port: u16,
    port: u16,
    arguments: [Vec<String>; 2],
    running: [Option<Child>; 2],
    cluster: Cluster,
    /// Sockets that reserve the plane's ports until the plane is dropped: see [`free_port`].
    _claims: [UdpSocket; 3],
}

impl Plane {
    pub(crate) fn new(harness: &Harness) -> Self {
        let directory = TempDir::new().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        for name in ["pki", "bin"] {
            fs::create_dir(path(name)).expect("made");
        }
        for name in ["etcd", "kube-apiserver"] {
            symlink(program(), path("bin").join(name)).expect("linked");
        }
        if harness.self_signed {
            pki::self_signed(&path("pki"));
        } else {
            pki::signed(&path("pki"));
        }
        let [(etcd_port, a), (peer, b), (port, c)] = [(); 3].map(|()| free_port());
        let fill = |line: &str| -> Vec<String> {
            let words = line.split_whitespace().map(|word| {
                word.replace("{etcd}", &etcd_port.to_string())
                    .replace("{peer}", &peer.to_string())
                    .replace("{port}", &port.to_string())
                    .replace("{pki}", &path("pki").to_string_lossy())
                    .replace("{data}", &path("data").to_string_lossy())
            });
            words.collect()
        };
        Self {
            harness: harness.name,
            probe: harness.probe,
            etcd_port,
            port,
            arguments: [fill(harness.etcd), fill(harness.kube_apiserver)],
            running: [None, None],
            cluster: cluster(&path("pki"), port),
            _claims: [a, b, c],
            directory,
        }
    }

    /// Occupies the kube-apiserver's port until the listener is dropped.
    pub(crate) fn take_port(&self) -> TcpListener {
        TcpListener::bind(("127.0.0.1", self.port)).expect("it is free")
    }

    /// Adds an argument for the kube-apiserver.
    pub(crate) fn add(&mut self, argument: &str) {
        self.arguments[Program::KubeApiserver as usize].push(argument.to_owned());
    }

    /// Removes the kube-apiserver's arguments that begin with `start`.
    pub(crate) fn leave_out(&mut self, start: &str) {
        self.arguments[Program::KubeApiserver as usize].retain(|one| !one.starts_with(start));
    }

    fn command(&self, program: Program) -> Command {
        let name = match program {
            Program::Etcd => "etcd",
            Program::KubeApiserver => "kube-apiserver",
        };
        let mut command = Command::new(self.directory.path().join("bin").join(name));
        let log = File::options().create(true).append(true).open(self.directory.path().join("log"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.expect("a file to write"));
        command.current_dir(self.directory.path());
        command
    }

    /// Starts a program, and waits until it answers.
    pub(crate) fn start(&mut self, program: Program) {
        self.spawn(program);
        if program == Program::Etcd {
            self.wait("etcd is healthy", |plane| plane.is_healthy());
        } else {
            self.check_serves();
        }
    }

    /// Starts a program.
    pub(crate) fn spawn(&mut self, program: Program) {
        let child = self.command(program).args(&self.arguments[program as usize]).spawn();
        let before = self.running[program as usize].replace(child.expect("it starts"));
        assert!(before.is_none(), "it runs already");
    }

    /// Starts both programs in the order of envtest; returns how long that took.
    pub(crate) fn start_both(&mut self) -> Duration {
        let began = Instant::now();
        self.start(Program::Etcd);
        self.start(Program::KubeApiserver);
        began.elapsed()
    }

    /// Runs a program to its end; returns its exit code and its standard error.
    pub(crate) fn fail(&self, program: Program) -> (Option<i32>, String) {
        let mut command = self.command(program);
        let done = command.args(&self.arguments[program as usize]).stderr(Stdio::piped()).output();
        let done = done.expect("it starts");
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    }

    /// Runs a program with one argument; returns its exit code and its standard output.
    pub(crate) fn ask(&self, program: Program, argument: &str) -> (Option<i32>, String) {
        let done = self.command(program).arg(argument).stdout(Stdio::piped()).output();
        let done = done.expect("it starts");
        (done.status.code(), String::from_utf8_lossy(&done.stdout).into_owned())
    }

    /// Sends SIGTERM to a program, and waits until it has ended with success.
    pub(crate) fn stop(&mut self, program: Program) {
        let mut child = self.running[program as usize].take().expect("it runs");
        let id = child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status().expect("kill runs");
        assert!(sent.success());
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = child.try_wait().expect("it is ours") {
                assert!(status.success(), "{}: {program:?} ended with {status}", self.harness);
                return;
            }
            assert!(Instant::now() < deadline, "{}: {program:?} does not end", self.harness);
            std::thread::sleep(PAUSE);
        }
    }

    /// Kills a program.
    pub(crate) fn kill(&mut self, program: Program) {
        let mut child = self.running[program as usize].take().expect("it runs");
        child.kill().expect("it runs");
        child.wait().expect("it is ours");
    }

    /// Waits until the server is ready, as seen without credentials, and checks that it serves the
    /// administrator.
    pub(crate) fn check_serves(&mut self) {
        self.wait("the server is ready", |plane| plane.call(true, "GET", plane.probe, None) == 200);
        let found = self.call(false, "GET", "/api/v1/namespaces/default", None);
        assert_eq!(found, 200, "{}", self.harness);
    }

    /// Waits until the server serves the administrator, and checks that it refuses requests without
    /// credentials.
    pub(crate) fn check_is_closed(&self) {
        const PATH: &str = "/api/v1/namespaces/default";
        let is_served = |plane: &Self| plane.call(false, "GET", PATH, None) == 200;
        self.wait("the administrator is served", is_served);
        for path in [self.probe, PATH] {
            assert_eq!(self.call(true, "GET", path, None), 401, "{}: {path}", self.harness);
        }
    }

    pub(crate) fn serves(&self) -> bool {
        self.call(true, "GET", self.probe, None) == 200
    }

    pub(crate) fn create(&self, name: &str) {
        let body = format!(r#"{{"metadata":{{"name":"{name}"}}}}"#);
        let code = self.call(false, "POST", "/api/v1/namespaces/default/configmaps", Some(body));
        assert_eq!(code, 201, "{}", self.harness);
    }

    /// Creates an object; returns its uid.
    pub(crate) fn post(&self, path: &str, object: &Value) -> String {
        let made = self.send(false, "POST", path, Some(object.to_string())).expect("an answer");
        assert_eq!(made.head.status, 201, "{}: {path}", self.harness);
        let made: Value = serde_json::from_slice(&made.body).expect("an object");
        made["metadata"]["uid"].as_str().expect("a uid").to_owned()
    }

    /// Deletes an object, and waits until the object `last` does not exist any more.
    pub(crate) fn delete(&self, path: &str, last: &str) {
        assert_eq!(self.call(false, "DELETE", path, None), 200, "{}: {path}", self.harness);
        self.wait(last, |plane| plane.call(false, "GET", last, None) == 404);
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        let path = format!("/api/v1/namespaces/default/configmaps/{name}");
        self.call(false, "GET", &path, None) == 200
    }

    /// Kills the programs that still run, and checks that nothing listens on their ports then.
    pub(crate) fn check_ends(&mut self) {
        for child in self.running.iter_mut().filter_map(Option::take) {
            let mut child = child;
            child.kill().expect("it runs");
            child.wait().expect("it is ours");
        }
        let is_free = |port| TcpStream::connect(("127.0.0.1", port)).is_err();
        assert!(is_free(self.etcd_port) && !self.serves(), "{}: something runs on", self.harness);
    }

    fn is_healthy(&self) -> bool {
        let etcd = Cluster::plain(&format!("http://127.0.0.1:{}", self.etcd_port));
        let code = etcd.tls(true).and_then(|tls| {
            let mut connection = Connection::open(&etcd, &tls)?;
            let target = "/health".to_owned();
            let request = Request { method: "GET".to_owned(), target, ..Request::default() };
            Ok(connection.exchange(&request)?.head.status)
        });
        code.is_ok_and(|code| code == 200)
    }

    /// The status of the response to a request; 0 without a response.
    fn call(&self, anonymous: bool, method: &str, target: &str, body: Option<String>) -> u16 {
        self.send(anonymous, method, target, body).map_or(0, |response| response.head.status)
    }

    fn send(
        &self,
        anonymous: bool,
        method: &str,
        target: &str,
        body: Option<String>,
    ) -> Result<Response> {
        let tls = self.cluster.tls(anonymous)?;
        let mut connection = Connection::open(&self.cluster, &tls)?;
        let json = ("Content-Type".to_owned(), "application/json".to_owned());
        connection.exchange(&Request {
            method: method.to_owned(),
            target: target.to_owned(),
            headers: body.is_some().then_some(json).into_iter().collect(),
            body: body.map(String::into_bytes),
        })
    }

    fn wait(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while !is_so(self) {
            let in_time = Instant::now() < deadline;
            assert!(in_time, "{}: not true in time: {what}\n{}", self.harness, self.log());
            std::thread::sleep(PAUSE);
        }
    }

    /// The log of both programs.
    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        for child in self.running.iter_mut().flatten() {
            let _ = child.kill(); // a test that failed leaves it
            let _ = child.wait();
        }
    }
}

/// The program under test: the one that was built with the tests, or that `PINTLE` names.
fn program() -> PathBuf {
    let named = std::env::var_os("PINTLE").map(PathBuf::from);
    named.unwrap_or_else(|| env!("CARGO_BIN_EXE_pintle").into())
}

/// A TCP port that nobody listens on, below the ephemeral ports of the system. The UDP socket has
/// the same port number and reserves it: other test runs skip the number even if no program listens
/// on the TCP port, before its program has started or while that is stopped.
fn free_port() -> (u16, UdpSocket) {
    const FIRST: u32 = 12_000;
    const COUNT: u32 = 20_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(997); // other test runs begin elsewhere
    loop {
        let offset = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        let port = u16::try_from(FIRST + offset).expect("it is below 2^16");
        let Ok(claim) = UdpSocket::bind(("127.0.0.1", port)) else { continue };
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return (port, claim);
        }
    }
}

fn cluster(pki: &Path, port: u16) -> Cluster {
    let kubeconfig = format!(
        "{{current-context: a, contexts: [{{name: a, context: {{cluster: a, user: a}}}}], \
         clusters: [{{name: a, cluster: {{server: 'https://127.0.0.1:{port}', \
         certificate-authority: ca.crt}}}}], \
         users: [{{name: a, user: {{client-certificate: client.crt, client-key: client.key}}}}]}}"
    );
    Cluster::from_text(&kubeconfig, pki).expect("a kubeconfig")
}

//! The program: a server that it runs, and its commands.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use apiscript::http::{Connection, Request};
use apiscript::kubeconfig::Cluster;
use serde_json::Value;

/// The program under test: the one that was built with the tests, or that `PINTLE` names.
pub(crate) fn program() -> Command {
    let named = std::env::var_os("PINTLE").map(PathBuf::from);
    Command::new(named.unwrap_or_else(|| env!("CARGO_BIN_EXE_pintle").into()))
}

/// Runs `pintle snapshot` with these words and paths.
pub(crate) fn snapshot(words: &[&str], paths: &[&Path]) -> Output {
    let mut command = program();
    command.arg("snapshot").args(words).args(paths).stdin(Stdio::null());
    command.output().unwrap()
}

/// The output of a command, which must succeed.
pub(crate) fn done(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The error of a command, which must fail with exit code 1.
pub(crate) fn refusal(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The output of `inspect` for a snapshot.
pub(crate) fn inspected(file: &Path) -> Value {
    serde_json::from_str(&done(&snapshot(&["inspect", "-o", "json"], &[file]))).unwrap()
}

/// A running server.
pub(crate) struct Server {
    child: Child,
    pub(crate) kubeconfig: PathBuf,
}

impl Server {
    /// Starts a server on a data directory.
    pub(crate) fn start(data_dir: &Path) -> Self {
        Self::start_with(data_dir, &[])
    }

    /// Starts a server with more flags.
    pub(crate) fn start_with(data_dir: &Path, flags: &[String]) -> Self {
        let mut command = program();
        command.args(["serve", "--secure-port=0", "--data-dir"]).arg(data_dir).args(flags);
        let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = piped.spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let kubeconfig = data_dir.join("admin.kubeconfig");
        let server = Self { child, kubeconfig };
        assert!(ready.starts_with("pintle ready"), "{ready:?}");
        server
    }

    pub(crate) fn client(&self) -> Client {
        let cluster = Cluster::from_file(&self.kubeconfig).unwrap();
        let tls = cluster.tls(false).unwrap();
        Client(Connection::open(&cluster, &tls).unwrap())
    }

    /// Stops the server with SIGTERM, and checks that it ends with success.
    pub(crate) fn stop(mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }

    /// Kills the server.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection of the administrator.
pub(crate) struct Client(Connection);

impl Client {
    /// Sends a request; returns the code and the object of the answer.
    pub(crate) fn ask(&mut self, method: &str, target: &str, body: Option<&Value>) -> (u16, Value) {
        let headers = match method {
            "PATCH" => vec![("Content-Type", "application/merge-patch+json")],
            _ => vec![("Content-Type", "application/json")],
        };
        let answer = self.0.exchange(&Request {
            method: method.to_owned(),
            target: target.to_owned(),
            headers: headers.into_iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect(),
            body: body.map(|body| body.to_string().into_bytes()),
        });
        let answer = answer.unwrap();
        (answer.head.status, serde_json::from_slice(&answer.body).unwrap_or_default())
    }

    /// Gets an object.
    pub(crate) fn get(&mut self, target: &str) -> Value {
        let (code, object) = self.ask("GET", target, None);
        assert_eq!(code, 200, "{target}: {object}");
        object
    }

    /// The code of the error with which a watch from a resource version ends; `None` if it goes on.
    pub(crate) fn watch_error(&mut self, target: &str, version: u64) -> Option<i64> {
        let target = format!("{target}?watch=1&timeoutSeconds=1&resourceVersion={version}");
        let (code, event) = self.ask("GET", &target, None);
        match code {
            200 => event["object"]["code"].as_i64().filter(|_| event["type"] == "ERROR"),
            code => Some(code.into()),
        }
    }
}

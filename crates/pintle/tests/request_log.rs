//! The log of requests, as text or as JSON: a line for each from `-v 3` on, with the time in each
//! layer from `-v 5` on, or as `RUST_LOG` says; otherwise only for slow requests. No client can
//! forge a line.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use apiscript::http::{Connection, Request};
use apiscript::kubeconfig::Cluster;
use serde_json::json;
use tempfile::TempDir;

const PATH: &str = "/api/v1/namespaces/default/configmaps";
const BODY: &str = r#"{"metadata":{"name":"a"}}"#;
/// A header that tries to end its quoted text and to add fields to the line.
const FORGED: &str = r#"x" resp=500 HTTP verb="FORGED"#;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Logged {
    Nothing,
    Lines,
    Times,
}

#[test]
fn requests_are_logged_as_the_verbosity_says() {
    for (verbosity, variable, expected) in [
        ("2", None, Logged::Nothing),
        ("3", None, Logged::Lines),
        ("5", None, Logged::Times),
        ("0", Some("pintle::requests=debug"), Logged::Lines),
        ("9", Some("pintle=info"), Logged::Nothing),
        ("3", Some("no=level"), Logged::Lines),
    ] {
        let log = log_of_a_create(&["-v", verbosity], variable);
        let is_of_it = |line: &&str| line.contains("HTTP verb=") && line.contains(PATH);
        let lines: Vec<&str> = log.lines().filter(is_of_it).collect();
        let row = format!("-v {verbosity}, {variable:?}:\n{log}");
        assert_eq!(lines.len(), usize::from(expected != Logged::Nothing), "{row}");
        let Some(line) = lines.first() else { continue };
        for part in [
            r#"HTTP verb="POST" URI="/api/v1/namespaces/default/configmaps" latency=""#,
            r#"userAgent="x\" resp=500 HTTP verb=\"FORGED""#,
            r#"audit-ID="id-of-the-create""#,
            r#"srcIP="127.0.0.1" resp=201"#,
        ] {
            assert!(line.contains(part), "{part} is missing: {row}");
        }
        for layer in ["authentication=", "authorization=", "admission=", "store=", "rest="] {
            assert_eq!(line.contains(layer), expected == Logged::Times, "{layer} {row}");
        }
    }
}

#[test]
fn a_slow_request_is_logged_with_the_time_in_each_layer() {
    for (threshold, is_slow) in [("1ns", true), ("1m", false), ("0", false)] {
        let flag = format!("--slow-request-threshold={threshold}");
        let log = log_of_a_create(&[&flag], None);
        let is_of_it = |line: &&str| line.contains("slow request verb=") && line.contains(PATH);
        let lines: Vec<&str> = log.lines().filter(is_of_it).collect();
        assert_eq!(lines.len(), usize::from(is_slow), "{threshold}:\n{log}");
        for part in ["authentication=", "admission=", "store=", "rest=", "id-of-the-create"] {
            assert!(lines.iter().all(|line| line.contains(part)), "{part} is missing: {log}");
        }
    }
}

#[test]
fn every_line_of_the_json_log_is_an_object() {
    let log = log_of_a_create(&["-v=3", "--logging-format=json"], None);
    let lines: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}")))
        .collect();
    assert!(lines.iter().all(|line| line["ts"].is_f64() && line["caller"].is_string()), "{log}");
    let request = lines.iter().find(|line| line["URI"] == PATH).expect("the create's line");
    for (member, expected) in [
        ("msg", json!("HTTP")),
        ("v", json!(3)),
        ("verb", json!("POST")),
        ("resp", json!(201)),
        ("userAgent", json!(FORGED)),
        ("audit-ID", json!("id-of-the-create")),
    ] {
        assert_eq!(request[member], expected, "{member}: {request}");
    }
}

/// `--log-json-split-stream` has no effect on the text format.
#[test]
fn the_text_log_is_not_split() {
    let log = log_of_a_create(&["-v=3", "--log-json-split-stream"], None);
    assert!(log.contains("HTTP") && log.contains(PATH), "{log}");
}

/// Starts a server, sends one create, and stops the server; returns its standard error.
fn log_of_a_create(flags: &[&str], variable: Option<&str>) -> String {
    let directory = TempDir::new().expect("a directory");
    let kubeconfig = directory.path().join("admin.kubeconfig");
    let mut command = Command::new(program());
    command.args(["serve", "--ephemeral", "--secure-port=0"]).args(flags);
    command.arg("--kubeconfig").arg(&kubeconfig).env_remove("RUST_LOG");
    variable.into_iter().for_each(|text| _ = command.env("RUST_LOG", text));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = Ended(command.spawn().expect("the server starts"));
    // Nothing reads standard error meanwhile: the lines of one request fit in the pipe's buffer.
    let mut ready = String::new();
    let output = server.0.stdout.take().expect("it is a pipe");
    BufReader::new(output).read_line(&mut ready).expect("a line");
    assert!(ready.starts_with("pintle ready"), "{ready:?}");
    let cluster = Cluster::from_file(&kubeconfig).expect("a kubeconfig");
    let tls = cluster.tls(false).expect("credentials");
    let mut connection = Connection::open(&cluster, &tls).expect("a connection");
    let headers = [
        ("Content-Type", "application/json"),
        ("User-Agent", FORGED),
        ("Audit-ID", "id-of-the-create"),
    ];
    let created = connection.exchange(&Request {
        method: "POST".to_owned(),
        target: PATH.to_owned(),
        headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        body: Some(BODY.as_bytes().to_vec()),
    });
    assert_eq!(created.expect("an answer").head.status, 201);
    drop(connection);
    let id = server.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill runs").success());
    let mut log = String::new();
    let errors = server.0.stderr.as_mut().expect("it is a pipe");
    errors.read_to_string(&mut log).expect("text");
    assert!(server.0.wait().expect("it is ours").success(), "{log}");
    log
}

/// A process that is killed when it is dropped, also by a test that fails.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program under test: the one that was built with the tests, or that `PINTLE` names.
fn program() -> PathBuf {
    let named = std::env::var_os("PINTLE").map(PathBuf::from);
    named.unwrap_or_else(|| env!("CARGO_BIN_EXE_pintle").into())
}

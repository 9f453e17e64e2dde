//! Starts whose etcd does not respond.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

/// A server that is killed with the test.
struct Server(Child);

impl Server {
    fn start(etcd: &str, port: u16, directory: &std::path::Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pintle"));
        command.args(["serve", "--data-dir=data", &format!("--secure-port={port}")]);
        command.arg(format!("--etcd-servers={etcd}")).current_dir(directory);
        Self(command.stderr(Stdio::piped()).spawn().expect("the program starts"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port without a listener.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it has an address").port()
}

#[test]
fn a_server_waits_for_etcd_refuses_clients_meanwhile_and_can_be_stopped() {
    let directory = tempfile::tempdir().expect("a directory");
    let port = free_port();
    let etcd = format!("http://127.0.0.1:{}", free_port());
    let mut server = Server::start(&etcd, port, directory.path());
    let log = BufReader::new(server.0.stderr.take().expect("piped"));
    let waiting = log.lines().map_while(Result::ok).find(|line| line.contains("waiting for etcd"));
    let waiting = waiting.expect("it says so");
    assert!(waiting.contains(&etcd) && waiting.contains("Connection refused"), "{waiting}");
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "a client would have to wait, too");
    let id = server.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill runs").success());
    assert!(server.0.wait().expect("it is ours").success());
}

#[test]
fn an_error_that_stays_ends_the_start_at_once_and_is_printed_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = Server::start("127.0.0.1:2379", 0, directory.path());
    let mut log = String::new();
    server.0.stderr.take().expect("piped").read_to_string(&mut log).expect("it is text");
    assert_eq!(server.0.wait().expect("it is ours").code(), Some(1));
    let error = "pintle: --etcd-servers: etcd endpoint \"127.0.0.1:2379\": neither http nor https";
    assert_eq!(log.lines().last(), Some(error), "{log}");
}

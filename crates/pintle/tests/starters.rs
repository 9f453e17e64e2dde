//! The program and the process that started it: with `--stop-at-eof` the program stops at the end
//! of standard input, and it notifies a service manager.

use std::io::{BufRead as _, BufReader};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Far more than a start or a stop takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn the_end_of_input_stops_a_server_with_that_flag() {
    let mut server = Server::start(&["--stop-at-eof"], None);
    let kubeconfig = server.ready_kubeconfig();
    assert!(Path::new(&kubeconfig).exists());
    drop(server.0.stdin.take());
    assert!(server.0.wait().expect("it is ours").success());
    assert!(!Path::new(&kubeconfig).exists(), "an ephemeral server leaves {kubeconfig}");
}

#[test]
fn the_end_of_input_during_the_start_stops_it() {
    let mut server = Server::start(&["--stop-at-eof"], None);
    drop(server.0.stdin.take());
    assert!(server.0.wait().expect("it is ours").success());
}

#[test]
fn a_service_manager_is_notified() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    // Without the flag, the server still runs after the end of input, and can be signalled.
    let mut server = Server::start(&[], Some(&path));
    drop(server.0.stdin.take());
    let ready = receive(&socket);
    assert!(ready.starts_with("READY=1\nSTATUS=ready on https://127.0.0.1:"), "{ready}");
    let id = server.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill runs").success());
    assert_eq!(receive(&socket), "STOPPING=1\n");
    assert!(server.0.wait().expect("it is ours").success());
}

#[test]
fn a_service_manager_that_watches_hears_of_a_server_that_works() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    socket.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    let mut command = Server::command(&[], Some(&path));
    command.env("WATCHDOG_USEC", "20000").env_remove("WATCHDOG_PID");
    let server = Server(command.spawn().expect("the server starts"));
    assert!(receive(&socket).starts_with("READY=1\n"));
    (0..3).for_each(|_| assert_eq!(receive(&socket), "WATCHDOG=1\n"));
    drop(server);
}

fn receive(socket: &UnixDatagram) -> String {
    let mut bytes = [0; 1024];
    let length = socket.recv(&mut bytes).expect("a message in time");
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

/// A server that is killed when it is dropped, also by a test that fails.
struct Server(Child);

impl Server {
    fn start(flags: &[&str], notify_socket: Option<&Path>) -> Self {
        Self(Self::command(flags, notify_socket).spawn().expect("the server starts"))
    }

    fn command(flags: &[&str], notify_socket: Option<&Path>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pintle"));
        command.args(["serve", "--ephemeral", "--secure-port=0"]).args(flags);
        command.env_remove("NOTIFY_SOCKET").env_remove("WATCHDOG_USEC");
        notify_socket.into_iter().for_each(|path| _ = command.env("NOTIFY_SOCKET", path));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    /// The path of the kubeconfig, when the server is ready.
    fn ready_kubeconfig(&mut self) -> String {
        let mut line = String::new();
        let output = self.0.stdout.as_mut().expect("it is a pipe");
        BufReader::new(output).read_line(&mut line).expect("a line");
        let (_, path) = line.split_once(" kubeconfig=").expect("the ready line");
        path.trim_end().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

//! Restarts on one data directory with other flags.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// Starts a server, and kills it when it is ready; returns its first line.
fn start(directory: &Path, flags: &[&str]) -> String {
    let mut server = Command::new(env!("CARGO_BIN_EXE_pintle"))
        .args(["serve", "--secure-port=0", "--data-dir=data"])
        .args(flags)
        .current_dir(directory)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut line = String::new();
    let output = server.stdout.take().expect("piped");
    BufReader::new(output).read_line(&mut line).expect("text");
    server.kill().expect("killed");
    server.wait().expect("it is ours");
    line
}

#[test]
fn the_address_of_a_server_may_change_its_ip_family() {
    let directory = tempfile::tempdir().expect("a directory");
    for address in ["192.0.2.1", "2001:db8::1", "192.0.2.2"] {
        let line = start(directory.path(), &["--advertise-address", address]);
        assert!(line.starts_with("pintle ready"), "{address}: {line:?}");
    }
}

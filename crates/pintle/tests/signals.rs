//! Signals that stop the server.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The pause between two signals: that of somebody who presses Ctrl-C twice in haste.
const PAUSE: Duration = Duration::from_millis(60);
/// How long the server would serve on after the first signal.
const DELAY: Duration = Duration::from_secs(120);

#[test]
fn a_second_interrupt_shortly_after_the_first_stops_the_server_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut server = Command::new(env!("CARGO_BIN_EXE_pintle"))
        .args(["serve", "--ephemeral", "--secure-port=0", "--kubeconfig=admin.kubeconfig"])
        .arg(format!("--shutdown-delay-duration={}s", DELAY.as_secs()))
        .current_dir(directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut ready = String::new();
    let output = server.stdout.take().expect("piped");
    BufReader::new(output).read_line(&mut ready).expect("a line");
    assert!(ready.starts_with("pintle ready"), "{ready:?}");
    let id = server.id().to_string();
    let interrupt = || Command::new("kill").args(["-INT", &id]).status().expect("kill runs");
    let start = Instant::now();
    assert!(interrupt().success());
    let mut errors = BufReader::new(server.stderr.take().expect("piped"));
    let mut line = String::new();
    while !line.contains("stopping") {
        line.clear();
        assert_ne!(errors.read_line(&mut line).expect("text"), 0, "it ended without a word");
    }
    std::thread::sleep(PAUSE); // signals of one moment count once
    assert!(interrupt().success());
    let code = server.wait().expect("it is ours").code();
    let mut text = String::new();
    errors.read_to_string(&mut text).expect("text");
    assert!(start.elapsed() < DELAY, "the second signal was not heard: {text}");
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("stopped before all requests were finished"), "{text}");
}

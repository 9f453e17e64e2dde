//! Kills in the middle of a save and of a restore, `PINTLE_CRASH_ROUNDS` times (20 by default).

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::made;
use super::program::{Server, done, inspected, program, refusal, snapshot};

const OBJECTS: u64 = 5000;
/// Far more than anything takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);

fn rounds() -> usize {
    let rounds = std::env::var("PINTLE_CRASH_ROUNDS").ok();
    rounds.and_then(|rounds| rounds.parse().ok()).unwrap_or(20)
}

/// Starts `pintle snapshot restore` from standard input.
fn restoring(new: &Path) -> Child {
    let mut command = program();
    command.args(["snapshot", "restore", "--data-dir"]).arg(new).arg("-");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// The error of a server that refuses to start on a directory.
fn refused_start(data_dir: &Path) -> String {
    let mut command = program();
    command.args(["serve", "--secure-port=0", "--data-dir"]).arg(data_dir);
    refusal(&command.stdin(Stdio::null()).output().unwrap())
}

/// Checks that a restored directory has all objects.
fn check(new: &Path, directory: &Path) {
    let again = directory.join("again");
    done(&snapshot(&["save", "--data-dir", new.to_str().unwrap()], &[&again]));
    assert_eq!(inspected(&again)["objects"], OBJECTS);
}

/// SNAP-03.
#[test]
fn a_killed_restore_leaves_a_whole_store_or_what_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    let bytes = made::write(&file, OBJECTS);
    let mut interrupted = 0;
    for round in 0..rounds() {
        let new = directory.path().join(format!("new{round}"));
        let mut child = restoring(&new);
        let mut input = child.stdin.take().unwrap();
        let fed = bytes.len() * round / (rounds() - 1).max(1);
        // If the process has ended by itself, the pipe is closed.
        let _ = input.write_all(&bytes[..fed]);
        child.kill().unwrap();
        child.wait().unwrap();
        drop(input);
        if new.join("store").exists() {
            check(&new, directory.path());
            continue;
        }
        if new.join("store.restoring").exists() {
            interrupted += 1;
            let why = refused_start(&new);
            assert!(
                why.contains("is what an interrupted restore left; run `pintle snapshot restore`"),
                "{why}"
            );
            let save = ["save", "--data-dir", new.to_str().unwrap()];
            let why = refusal(&snapshot(&save, &[&directory.path().join("no")]));
            assert!(why.contains("is what an interrupted restore left"), "{why}");
        }
        done(&snapshot(&["restore", "--data-dir", new.to_str().unwrap()], &[&file]));
        check(&new, directory.path());
    }
    assert!(interrupted > rounds() / 2, "{interrupted} of {}", rounds());
}

/// Waits until a file has so many bytes, or the process has ended.
fn until_written(child: &mut Child, path: &Path, bytes: u64) {
    let began = Instant::now();
    let written = || fs::metadata(path).map_or(0, |metadata| metadata.len());
    while written() < bytes && child.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < TIMEOUT, "{} has {} bytes", path.display(), written());
        thread::yield_now();
    }
}

#[test]
fn a_killed_save_leaves_the_old_snapshot_or_the_new_one() {
    let directory = tempfile::tempdir().unwrap();
    let [data, file, old] = ["data", "file", "old"].map(|name| directory.path().join(name));
    let bytes = made::write(&file, OBJECTS).len() as u64;
    done(&snapshot(&["restore", "--data-dir", data.to_str().unwrap()], &[&file]));
    made::write(&old, 3);
    let partial = directory.path().join("file.partial");
    let mut killed_in_time = 0;
    for round in 0..rounds() as u64 {
        fs::copy(&old, &file).unwrap();
        let mut command = program();
        command.args(["snapshot", "save", "--data-dir"]).arg(&data).arg(&file);
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = quiet.spawn().unwrap();
        until_written(&mut child, &partial, bytes * (round + 1) / rounds() as u64);
        child.kill().unwrap();
        child.wait().unwrap();
        match inspected(&file)["objects"].as_u64() {
            Some(3) => killed_in_time += 1,
            objects => assert_eq!(objects, Some(OBJECTS), "round {round}"),
        }
    }
    assert!(killed_in_time > 0, "no save was killed in time");
    done(&snapshot(&["save", "--data-dir", data.to_str().unwrap()], &[&file]));
    assert!(!partial.exists(), "a save replaces the partial file of a killed one");
    assert_eq!(inspected(&file)["objects"], OBJECTS);
}

#[test]
fn a_server_that_is_killed_leaves_the_old_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let [data, file] = ["data", "file"].map(|name| directory.path().join(name));
    let bytes = made::write(&file, OBJECTS * 4).len() as u64;
    done(&snapshot(&["restore", "--data-dir", data.to_str().unwrap()], &[&file]));
    let mut server = Server::start(&data);
    made::write(&file, 3);
    let mut command = program();
    command.args(["snapshot", "save", "--kubeconfig"]).arg(&server.kubeconfig).arg("-");
    let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut first = vec![0; bytes as usize / 8];
    out.read_exact(&mut first).unwrap();
    server.kill();
    let mut rest = Vec::new();
    out.read_to_end(&mut rest).unwrap();
    let ended = child.wait_with_output().unwrap();
    let why = refusal(&ended);
    assert!(why.contains("cannot save the state"), "{why}");
    assert!(((first.len() + rest.len()) as u64) < bytes);
    let again = Server::start(&data);
    let save = ["save", "--kubeconfig", again.kubeconfig.to_str().unwrap()];
    done(&snapshot(&save, &[&file]));
    assert!(inspected(&file)["objects"].as_u64() > Some(OBJECTS * 4));
}

//! A server that is written to while it is saved, and its restored copy.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use serde_json::json;

use super::compared::{compare, copy_certificates, objects, version};
use super::program::{Client, Server, done, inspected, refusal, snapshot};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Creates, updates and deletes objects until it is stopped.
fn write(mut client: Client, writer: usize, stop: &AtomicBool, written: &AtomicUsize) {
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let name = format!("w{writer}-{}", number % 40);
        let path = format!("{CONFIG_MAPS}/{name}");
        let object = json!({"metadata": {"name": name}, "data": {"n": number.to_string()}});
        let (code, answer) = match number / 40 % 3 {
            0 => client.ask("POST", CONFIG_MAPS, Some(&object)),
            1 => client.ask("PATCH", &path, Some(&object)),
            _ => client.ask("DELETE", &path, None),
        };
        assert!(matches!(code, 200 | 201), "{code} {answer}");
        written.fetch_add(1, Ordering::Relaxed);
    }
}

/// SNAP-01, SNAP-02.
#[test]
fn a_busy_server_is_saved_at_one_revision_and_restored_exactly() {
    let directory = tempfile::tempdir().unwrap();
    let [old, new, file] = ["old", "new", "snapshot"].map(|name| directory.path().join(name));
    let server = Server::start(&old);
    let (stop, written) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for writer in 0..4 {
            let (client, stop, written) = (server.client(), &stop, &written);
            scope.spawn(move || write(client, writer, stop, written));
        }
        let wait = |count| {
            while written.load(Ordering::Relaxed) < count {
                thread::yield_now();
            }
        };
        wait(300);
        let kubeconfig = server.kubeconfig.to_str().unwrap();
        let words = ["save", "--kubeconfig", kubeconfig];
        let saved = snapshot(&words, &[&file]);
        wait(written.load(Ordering::Relaxed) + 200);
        stop.store(true, Ordering::Relaxed);
        assert!(done(&saved).contains(" objects at revision "), "{saved:?}");
    });
    let summary = inspected(&file);
    let revision = summary["revision"].as_u64().unwrap();
    let mut client = server.client();
    let before = objects(&mut client, Some(revision));
    let latest = version(&client.get(CONFIG_MAPS));
    assert!(latest >= revision + 200, "others wrote meanwhile: {latest} {revision}");
    let in_use = refusal(&snapshot(&["save", "--data-dir", old.to_str().unwrap()], &[&file]));
    assert!(in_use.contains("is in use by a server; save from the running server"), "{in_use}");

    let output = done(&snapshot(&["restore", "--data-dir", new.to_str().unwrap()], &[&file]));
    copy_certificates(&old, &new);
    let restored = Server::start(&new);
    let mut client = restored.client();
    let after = objects(&mut client, None);
    compare(&before, &after, revision);
    let head = version(&client.get(CONFIG_MAPS));
    assert!(head > revision + 1_000_000_000, "{output}");
    for old in [1, revision, revision + 1, latest, latest + 1000] {
        assert_eq!(client.watch_error(CONFIG_MAPS, old), Some(410), "a watch from {old}");
    }
    assert_eq!(client.watch_error(CONFIG_MAPS, head), None);
    let object = json!({"metadata": {"name": "new"}});
    let (_, made) = client.ask("POST", CONFIG_MAPS, Some(&object));
    assert!(version(&made) > head, "{made}");
    a_stopped_server_has_the_same(server, &old, &file);
}

/// Saves a server after it has stopped, and compares the snapshot with the objects that the running
/// server listed.
fn a_stopped_server_has_the_same(server: Server, data_dir: &Path, file: &Path) {
    let mut client = server.client();
    let running = objects(&mut client, None);
    drop(client);
    server.stop();
    done(&snapshot(&["save", "--data-dir", data_dir.to_str().unwrap()], &[file]));
    let summary = inspected(file);
    let collections = summary["collections"].as_array().unwrap();
    let config_maps = collections.iter().find(|one| one["name"] == "configmaps").unwrap();
    let listed = running.keys().filter(|path| path.starts_with("/api/v1/configmaps/")).count();
    assert_eq!(config_maps["objects"].as_u64(), Some(listed as u64));
    let server = Server::start(data_dir);
    assert_eq!(objects(&mut server.client(), None).len(), running.len(), "the store is unharmed");
}

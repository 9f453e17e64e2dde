//! Snapshots that move objects from etcd to an embedded store, and back.

use std::collections::BTreeMap;
use std::fs;

use pintle_testing::etcd::Database;
use serde_json::{Value, json};

use super::compared::{copy_certificates, objects, version};
use super::program::{Server, done, inspected, refusal, snapshot};

#[test]
fn the_objects_of_an_etcd_move_to_an_embedded_store() {
    let Some(database) = Database::find().unwrap() else { return };
    let part = database.part();
    let directory = tempfile::tempdir().unwrap();
    let old = directory.path().join("old");
    let flags = [
        format!("--etcd-servers={}", part.endpoints.join(",")),
        format!("--etcd-prefix={}", part.prefix),
    ];
    let server = Server::start_with(&old, &flags);
    let mut client = server.client();
    for number in 0..30 {
        let object = json!({"metadata": {"name": format!("c{number}")}, "data": {"k": "v"}});
        client.ask("POST", "/api/v1/namespaces/default/configmaps", Some(&object));
    }
    let before = objects(&mut client, None);
    let kubeconfig = server.kubeconfig.to_str().unwrap().to_owned();
    let asked: Vec<&str> = ["save", "--kubeconfig", &kubeconfig].to_vec();
    let read: Vec<&str> = ["save", &flags[0], &flags[1]].to_vec();
    for (name, words) in [("asked", asked), ("read", read)] {
        let [file, new] =
            ["file", "new"].map(|part| directory.path().join(format!("{name}-{part}")));
        done(&snapshot(&words, &[&file]));
        let summary = inspected(&file);
        assert_eq!(summary["store"], "etcd");
        let revision = summary["revision"].as_u64().unwrap();
        done(&snapshot(&["restore", "--data-dir", new.to_str().unwrap()], &[&file]));
        copy_certificates(&old, &new);
        let restored = Server::start(&new);
        compare(&before, &objects(&mut restored.client(), None), revision);
    }
}

#[test]
fn the_objects_of_an_embedded_store_move_to_an_etcd() {
    let Some(database) = Database::find().unwrap() else { return };
    let part = database.part();
    let directory = tempfile::tempdir().unwrap();
    let [old, new, file] = ["old", "new", "file"].map(|name| directory.path().join(name));
    let server = Server::start(&old);
    let mut client = server.client();
    for number in 0..30 {
        let object = json!({"metadata": {"name": format!("c{number}")}, "data": {"k": "v"}});
        client.ask("POST", "/api/v1/namespaces/default/configmaps", Some(&object));
    }
    let before = objects(&mut client, None);
    drop(client);
    server.stop();
    done(&snapshot(&["save", "--data-dir", old.to_str().unwrap()], &[&file]));
    let flags = [
        format!("--etcd-servers={}", part.endpoints.join(",")),
        format!("--etcd-prefix={}", part.prefix),
    ];
    let restore = || snapshot(&["restore", &flags[0], &flags[1]], &[&file]);
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    assert!(refusal(&restore()).contains("is not complete"));
    fs::write(&file, &bytes).unwrap();
    done(&restore());
    assert!(refusal(&restore()).contains("there are objects already"));
    fs::create_dir(&new).unwrap();
    copy_certificates(&old, &new);
    let restored = Server::start_with(&new, &flags);
    let after = objects(&mut restored.client(), None);
    for (path, object) in before.iter().filter(|(path, _)| path.contains("/configmaps/")) {
        let now = after.get(path).unwrap_or_else(|| panic!("{path} is lost"));
        assert_eq!(without_version(now), without_version(object), "{path}");
    }
    for (path, object) in before.iter().filter(|(path, _)| !path.contains("/leases/")) {
        assert_eq!(after[path]["metadata"]["uid"], object["metadata"]["uid"], "{path}");
    }
}

/// Checks that no object but leases is lost, and that every one is unchanged, unless the restored
/// server has written it since. Most resource versions are unchanged too: of several objects of one
/// revision, only one keeps it.
fn compare(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>, revision: u64) {
    let mut same = 0;
    for (path, object) in before.iter().filter(|(path, _)| !path.contains("/leases/")) {
        let now = after.get(path).unwrap_or_else(|| panic!("{path} is lost"));
        assert_eq!(now["metadata"]["uid"], object["metadata"]["uid"], "{path}");
        if version(now) <= revision {
            assert_eq!(without_version(now), without_version(object), "{path}");
            same += usize::from(version(now) == version(object));
        }
    }
    assert!(same * 10 > before.len() * 8, "{same} of {} have their version", before.len());
}

fn without_version(object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"]["resourceVersion"] = Value::Null;
    object
}

//! Values that are encrypted at rest.

use std::fs;
use std::path::Path;

use pintle_testing::etcd::Database;
use serde_json::json;

use super::program::{Server, done, program, refusal, snapshot};

const CONFIGURATION: &str = "
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - aesgcm: {keys: [{name: one, secret: MDEyMzQ1Njc4OWFiY2RlZg==}]}
  - identity: {}
";
const SECRET: &str = "cGxhaW4gdGV4dCB0aGF0IG5vYm9keSBtYXkgc2Vl";
const PATH: &str = "/api/v1/namespaces/default/secrets";

fn has(file: &Path, text: &str) -> bool {
    let bytes = fs::read(file).unwrap();
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Saves from the running and from the stopped server, restores each snapshot without the key, and
/// reads the restored objects with the key.
fn check(more: &[String], stopped: &[String]) {
    let directory = tempfile::tempdir().unwrap();
    let [old, config] = ["old", "config"].map(|name| directory.path().join(name));
    fs::write(&config, CONFIGURATION).unwrap();
    let key = format!("--encryption-provider-config={}", config.display());
    let flags = [more, std::slice::from_ref(&key)].concat();
    let server = Server::start_with(&old, &flags);
    let secret = json!({"metadata": {"name": "s"}, "data": {"k": SECRET}});
    let (code, _) = server.client().ask("POST", PATH, Some(&secret));
    assert_eq!(code, 201);
    let files = ["running", "stopped"].map(|name| directory.path().join(name));
    let running = ["save", "--kubeconfig", server.kubeconfig.to_str().unwrap()];
    done(&snapshot(&running, &[&files[0]]));
    server.stop();
    let words = stopped.iter().map(|word| word.replace("OLD", old.to_str().unwrap()));
    let words: Vec<_> = words.map(|word| word.replace("KEY", &key)).collect();
    let words: Vec<_> = std::iter::once("save").chain(words.iter().map(String::as_str)).collect();
    done(&snapshot(&words, &[&files[1]]));
    for (number, file) in files.iter().enumerate() {
        assert!(has(file, "k8s:enc:aesgcm:v1:one:") && !has(file, SECRET), "{}", file.display());
        let new = directory.path().join(format!("new{number}"));
        done(&snapshot(&["restore", "--data-dir", new.to_str().unwrap()], &[file]));
        let mut without = program();
        without.args(["serve", "--secure-port=0", "--data-dir"]).arg(&new);
        assert!(refusal(&without.output().unwrap()).contains("no encryption is configured"));
        let restored = Server::start_with(&new, std::slice::from_ref(&key));
        assert_eq!(restored.client().get(&format!("{PATH}/s"))["data"]["k"], SECRET);
    }
}

/// SNAP-04.
#[test]
fn encrypted_values_stay_encrypted() {
    check(&[], &["--data-dir=OLD".to_owned()]);
}

#[test]
fn values_that_are_encrypted_in_etcd_are_encrypted_in_a_snapshot() {
    let Some(database) = Database::find().unwrap() else { return };
    let part = database.part();
    let etcd = [
        format!("--etcd-servers={}", part.endpoints.join(",")),
        format!("--etcd-prefix={}", part.prefix),
    ];
    check(&etcd, &[etcd.to_vec(), vec!["KEY".to_owned()]].concat());
}

#[test]
fn a_store_in_memory_writes_no_plain_values() {
    let directory = tempfile::tempdir().unwrap();
    let [config, file, kubeconfig] =
        ["config", "file", "admin.kubeconfig"].map(|name| directory.path().join(name));
    fs::write(&config, CONFIGURATION).unwrap();
    let flags = [
        "--ephemeral".to_owned(),
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--encryption-provider-config={}", config.display()),
    ];
    let _server = Server::start_with(directory.path(), &flags);
    let why = refusal(&snapshot(&["save", "--kubeconfig", kubeconfig.to_str().unwrap()], &[&file]));
    assert!(why.contains("the store is in memory, where values are not encrypted"), "{why}");
    assert!(!file.exists());
}

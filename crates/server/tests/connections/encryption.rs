//! The encryption configuration file, at the start and while the server runs. Upstream:
//! `test/integration/controlplane/transformation`.

use std::fs;
use std::path::Path;

use pintle_server::{Config, EncryptionFile, Running, Server};

use super::certificates::until;
use super::client::{create, get};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const KEY: &str = "a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=";
const OTHER_KEY: &str = "cXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXFxcXE=";

/// A configuration for all resources with these providers; the first one encrypts.
fn text(providers: &[(&str, &str, &str)]) -> String {
    let rows = providers.iter().map(|(method, name, key)| {
        format!("  - {method}: {{keys: [{{name: {name}, secret: {key}}}]}}\n")
    });
    format!(
        "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n\
         - resources: ['*.*']\n  providers:\n{}",
        rows.collect::<String>()
    )
}

/// Starts a server with its data and its encryption configuration in a directory.
async fn start(directory: &Path) -> Result<Running, pintle_server::Error> {
    let mut config = Config::ephemeral();
    config.ephemeral = false;
    config.data_dir = directory.join("data");
    config.encryption = Some(EncryptionFile { path: directory.join("encryption"), reloaded: true });
    Server::start(config).await
}

async fn create_config_map(server: &Running, name: &str) {
    let object = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{"a":"plaintext"}}}}"#
    );
    create(server, CONFIG_MAPS, &object).await;
}

/// The number of occurrences of a prefix in the store's files.
fn stored(directory: &Path, prefix: &str) -> usize {
    let files = ["store.journal", "store.redb"];
    let bytes = files.map(|file| fs::read(directory.join("data/store").join(file)).unwrap());
    bytes.concat().windows(prefix.len()).filter(|part| *part == prefix.as_bytes()).count()
}

/// The number of reloads with a status, from `/metrics`.
async fn reloads(server: &Running, status: &str) -> u64 {
    let (_, page) = get(server, "/metrics").await;
    let name = "apiserver_encryption_config_controller_automatic_reloads_total{";
    let status = format!("status=\"{status}\"");
    let line = page.lines().find(|line| line.starts_with(name) && line.contains(&status));
    line.map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

/// Upstream: TestEncryptionConfigHotReload, TestEncryptAll.
#[tokio::test(flavor = "multi_thread")]
async fn the_encryption_configuration_is_reloaded() {
    let directory = tempfile::tempdir().unwrap();
    let (path, file) = (directory.path(), directory.path().join("encryption"));
    fs::write(&file, text(&[("aesgcm", "one", KEY)])).unwrap();
    let server = start(path).await.unwrap();
    create_config_map(&server, "a").await;
    assert!(stored(path, "k8s:enc:aesgcm:v1:one:") > 0);

    // A truncated, an empty and an invalid file change nothing.
    let both = text(&[("secretbox", "two", OTHER_KEY), ("aesgcm", "one", KEY)]);
    for wrong in [&both[..both.len() - 20], "", &both.replace("secretbox", "box")] {
        let before = reloads(&server, "failure").await;
        fs::write(&file, wrong).unwrap();
        until(true, async || reloads(&server, "failure").await > before).await;
    }
    create_config_map(&server, "b").await;
    assert_eq!(stored(path, "k8s:enc:secretbox:"), 0);

    fs::write(&file, &both).unwrap();
    until(1, async || reloads(&server, "success").await).await;
    create_config_map(&server, "c").await;
    assert!(stored(path, "k8s:enc:secretbox:v1:two:") > 0);
    let (_, page) = get(&server, "/metrics").await;
    let name = "apiserver_encryption_config_controller_last_config_info{";
    let values: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with(name))
        .map(|line| line.rsplit(' ').next().unwrap())
        .collect();
    assert_eq!(values, ["1"], "only the current configuration has a series");
    for prefix in ["k8s:enc:aesgcm:v1:", "one:", "k8s:enc:secretbox:v1:", "two:"] {
        let sample = format!(
            "apiserver_storage_transformation_operations_total{{resource=\"configmaps\",status=\"OK\",\
             transformation_type=\"to_storage\",transformer_prefix=\"{prefix}\"}}"
        );
        assert!(page.contains(&sample), "{sample}");
    }
    server.shutdown().await;

    // The next start encrypts everything with the new key. Then the old key is not needed.
    start(path).await.unwrap().shutdown().await;
    assert_eq!(stored(path, "k8s:enc:aesgcm:"), 0);
    fs::write(&file, text(&[("secretbox", "two", OTHER_KEY)])).unwrap();
    let server = start(path).await.unwrap();
    assert!(get(&server, &format!("{CONFIG_MAPS}/a")).await.1.contains("plaintext"));
    server.shutdown().await;

    // A server with only the old key does not start.
    fs::write(&file, text(&[("aesgcm", "one", KEY)])).unwrap();
    let why = start(path).await.err().unwrap().to_string();
    assert!(why.contains("no matching prefix found"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_does_not_start_with_an_invalid_encryption_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("encryption");
    for (text, why) in [
        (None, "encryption-provider-config"),
        (Some(String::new()), "is empty"),
        (Some(text(&[])), "at least one resources[0].providers is required"),
        (Some(text(&[("aesgcm", "one", "AAAA")])), "expected one of [16 24 32]"),
    ] {
        if let Some(text) = text {
            fs::write(&file, text).unwrap();
        }
        let error = start(directory.path()).await.err().unwrap().to_string();
        assert!(error.starts_with("--encryption-provider-config"), "{error}");
        assert!(error.contains(why), "{error}");
    }
}

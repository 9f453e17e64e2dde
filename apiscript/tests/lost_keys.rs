//! Encrypted values in an etcd whose key a server does not have, and gets back while it runs.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use apiscript::Target;
use apiscript::http::Request;
use apiscript::kubeconfig::Cluster;
use pintle_testing::etcd::Database;
use pintle_testing::{Config, EncryptionFile, TestServer};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const TIMEOUT: Duration = Duration::from_secs(60);

/// An EncryptionConfiguration whose providers are these keys, the first for writing.
fn configuration(keys: &[char]) -> String {
    let providers: String = keys
        .iter()
        .map(|key| {
            let secret = key.to_string().repeat(42) + "A="; // 32 bytes in base64
            format!("  - aesgcm: {{keys: [{{name: key-{key}, secret: {secret}}}]}}\n")
        })
        .collect();
    format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n\
         resources:\n- resources: [secrets]\n  providers:\n{providers}"
    )
}

fn target(server: &TestServer) -> Result<Target> {
    Target::new(Cluster::from_text(server.kubeconfig(), Path::new("."))?)
}

fn ask(target: &Target, method: &str, path: &str, body: &str) -> Result<(u16, String)> {
    let request = Request {
        method: method.to_owned(),
        target: path.to_owned(),
        headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
        body: (!body.is_empty()).then(|| body.into()),
    };
    let response = target.connect(false)?.exchange(&request)?;
    Ok((response.head.status, String::from_utf8_lossy(&response.body).into_owned()))
}

fn create(target: &Target, name: &str) -> Result<()> {
    let secret = format!(r#"{{"metadata":{{"name":"{name}"}},"stringData":{{"a":"{name}"}}}}"#);
    let (code, body) = ask(target, "POST", SECRETS, &secret)?;
    ensure!(code == 201, "{code} {body}");
    Ok(())
}

/// Retries until the response has this code.
fn await_code(target: &Target, path: &str, expected: u16) -> Result<String> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let (code, body) = ask(target, "GET", path, "")?;
        if code == expected {
            return Ok(body);
        }
        ensure!(Instant::now() < deadline, "{path} stays {code}: {body}");
    }
}

/// A value that cannot be decrypted is an error, alone and in a list. When the configuration has
/// its key again, the value is served, and a watch resumes from a list.
#[test]
fn a_value_can_be_read_again_after_its_key_is_restored() -> Result<()> {
    let Some(database) = Database::find()? else { return Ok(()) };
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("encryption.yaml");
    let encryption = EncryptionFile { path: file.clone(), reloaded: true };
    let config =
        Config { etcd: Some(database.part()), encryption: Some(encryption), ..Config::ephemeral() };
    fs::write(&file, configuration(&['a']))?;
    let server = TestServer::start_with(config.clone())?;
    create(&target(&server)?, "first")?;
    server.stop();

    fs::write(&file, configuration(&['b']))?;
    let server = TestServer::start_with(config)?;
    let target = target(&server)?;
    create(&target, "second")?;
    let lost = await_code(&target, &format!("{SECRETS}/first"), 500)?;
    ensure!(lost.contains("cannot be read") && lost.contains("\"code\":500"), "{lost}");
    await_code(&target, SECRETS, 500)?;
    let (code, body) = ask(&target, "GET", &format!("{SECRETS}/second"), "")?;
    ensure!(code == 200, "the other value can be read: {code} {body}");

    let next = directory.path().join("next.yaml");
    fs::write(&next, configuration(&['b', 'a']))?;
    fs::rename(&next, &file)?;
    let found = await_code(&target, &format!("{SECRETS}/first"), 200)?;
    ensure!(found.contains(r#""a":"Zmlyc3Q=""#), "{found}");
    let list = await_code(&target, SECRETS, 200)?;
    ensure!(list.contains("Zmlyc3Q=") && list.contains("c2Vjb25k"), "{list}");
    let (_, revision) = list.split_once(r#""resourceVersion":""#).unwrap_or_default();
    let (revision, _) = revision.split_once('"').unwrap_or_default();
    create(&target, "third")?;
    let watch = format!("{SECRETS}?watch=true&timeoutSeconds=1&resourceVersion={revision}");
    let (code, events) = ask(&target, "GET", &watch, "")?;
    ensure!(code == 200 && events.contains("dGhpcmQ="), "{code} {events}");
    ensure!(!events.contains("Zmlyc3Q="), "what was listed is no event: {events}");
    Ok(())
}

//! The administrator's kubeconfig.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pintle_server::Config;
use pintle_value::{Value, yaml};

use super::Finding;

const CHECK: &str = "kubeconfig";
const REWRITE: &str = "restart the server, which writes the file again";

pub(super) fn check(config: &Config) -> Vec<Finding> {
    let Some(path) = config.stored_kubeconfig() else { return Vec::new() };
    let subject = &path.display();
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return vec![Finding::ok(CHECK, subject, "does not exist; the server writes it")];
        }
        Err(error) => {
            let advice = "run as the user of the server, or choose another --kubeconfig";
            return vec![Finding::error(CHECK, subject, error, advice)];
        }
    };
    let authority = fs::read_to_string(config.certificate_directory().join("ca.crt")).ok();
    let mut findings = Vec::new();
    match yaml::parse_strict(&bytes) {
        Err(error) => {
            let advice = "move the file away, and restart the server";
            findings.push(Finding::error(CHECK, subject, error, advice));
        }
        Ok(tree) => findings.extend(of_contents(&tree, config, &path, authority.as_deref())),
    }
    let mode =
        fs::metadata(&path).map(|file| file.permissions().mode() & 0o777).unwrap_or_default();
    if mode & 0o077 != 0 {
        let message = format!("other users may read its key (mode {mode:03o})");
        findings.push(Finding::warning(CHECK, subject, message, format!("chmod 600 {subject}")));
    }
    if findings.is_empty() {
        findings.push(Finding::ok(CHECK, subject, "belongs to this server"));
    }
    findings
}

/// Compares the file with the server's CA and port.
fn of_contents(
    tree: &Value,
    config: &Config,
    path: &Path,
    authority: Option<&str>,
) -> Vec<Finding> {
    let subject = &path.display();
    let clusters = tree.get("clusters").and_then(Value::as_array).unwrap_or_default();
    let Some(cluster) = clusters.first().and_then(|entry| entry.get("cluster")) else {
        let message = "it has no cluster";
        return vec![Finding::error(CHECK, subject, message, REWRITE)];
    };
    let mut findings = Vec::new();
    let data = cluster.str_at(&["certificate-authority-data"]).unwrap_or_default();
    let trusted = STANDARD.decode(data).unwrap_or_default();
    let is_given = config.tls_files.is_some(); // then clients trust that certificate
    if let Some(authority) = authority.filter(|_| !is_given)
        && trusted != authority.as_bytes()
    {
        let message = "it trusts another CA than the server's";
        findings.push(Finding::error(CHECK, subject, message, REWRITE));
    }
    let server = cluster.str_at(&["server"]).unwrap_or_default();
    let port = server.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    if config.secure_port != 0 && port != Some(config.secure_port) {
        let message = format!("it names {server}, and --secure-port is {}", config.secure_port);
        findings.push(Finding::warning(CHECK, subject, message, REWRITE));
    }
    findings
}

//! Writes kubeconfigs with inline certificates.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pintle_value::{Value, yaml};

use crate::Error;
use crate::pki::Credentials;

/// The name of cluster and context.
const CLUSTER: &str = "pintle";
/// The name of the user.
const USER: &str = "kubernetes-admin";

/// Refuses a path where a file exists that this program has not written.
pub(crate) fn check_target(path: &Path) -> Result<(), Error> {
    let is_own = match fs::read_to_string(path) {
        Ok(text) => is_own(&text),
        Err(why) if why.kind() == ErrorKind::NotFound => true,
        Err(why) if why.kind() == ErrorKind::InvalidData => false,
        Err(why) => return Err(Error::File { action: "read", path: path.to_owned(), why }),
    };
    if is_own {
        return Ok(());
    }
    let reason = format!(
        "{} was not written by Pintle and is left as it is; name another file, or remove it",
        path.display()
    );
    Err(Error::Flag { flag: "kubeconfig", reason })
}

/// Whether the kubeconfig is empty, or has only this program's cluster and user, and contexts of
/// them, which kubectl may have added.
fn is_own(text: &str) -> bool {
    if text.trim().is_empty() {
        return true;
    }
    let Ok(config) = yaml::parse(text.as_bytes()) else { return false };
    let all = |list: &str, is: &dyn Fn(&Value) -> bool| {
        let entries = config.get(list).and_then(Value::as_array);
        entries.is_some_and(|entries| !entries.is_empty() && entries.iter().all(is))
    };
    config.str_at(&["kind"]) == Some("Config")
        && all("clusters", &|entry| entry.str_at(&["name"]) == Some(CLUSTER))
        && all("users", &|entry| entry.str_at(&["name"]) == Some(USER))
        && all("contexts", &|entry| {
            entry.str_at(&["context", "cluster"]) == Some(CLUSTER)
                && entry.str_at(&["context", "user"]) == Some(USER)
        })
}

/// A kubeconfig for one cluster and one user.
pub fn kubeconfig(url: &str, ca_pem: &str, user: &Credentials) -> String {
    let ca = STANDARD.encode(ca_pem);
    let certificate = STANDARD.encode(&user.certificate_pem);
    let key = STANDARD.encode(&user.key_pem);
    format!(
        "\
apiVersion: v1
kind: Config
clusters:
- name: {CLUSTER}
  cluster:
    certificate-authority-data: {ca}
    server: {url}
contexts:
- name: {CLUSTER}
  context:
    cluster: {CLUSTER}
    user: {USER}
current-context: {CLUSTER}
preferences: {{}}
users:
- name: {USER}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
"
    )
}

#[cfg(test)]
mod tests;

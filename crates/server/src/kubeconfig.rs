//! The kubeconfig that lets somebody in, certificates and all.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::pki::Credentials;

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
- name: pintle
  cluster:
    certificate-authority-data: {ca}
    server: {url}
contexts:
- name: pintle
  context:
    cluster: pintle
    user: kubernetes-admin
current-context: pintle
preferences: {{}}
users:
- name: kubernetes-admin
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
"
    )
}

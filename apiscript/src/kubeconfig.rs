//! Reads a kubeconfig: the server's address, its CA, and the credentials.
//!
//! Only what a test needs: one context, client certificates or a bearer token, inline data or
//! files. A user with an exec plugin or an auth provider is an error.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, bail};
use base64::Engine as _;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde::Deserialize;

/// A server and the credentials for it.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// `https://host:port`, without a slash at the end.
    pub server: String,
    /// The name that the server's certificate must have, if it is not the host.
    pub tls_server_name: Option<String>,
    /// PEM of the CAs of the server's certificate.
    authorities: Vec<u8>,
    /// PEM of the client certificate chain and of its key.
    identity: Option<(Vec<u8>, Vec<u8>)>,
    /// A bearer token.
    pub token: Option<String>,
}

impl Cluster {
    /// Reads the current context of a kubeconfig file.
    pub fn from_file(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        Self::from_text(&text, folder).with_context(|| format!("in {}", path.display()))
    }

    /// Reads the current context of a kubeconfig; its relative paths start at `folder`.
    pub fn from_text(text: &str, folder: &Path) -> Result<Self> {
        let file: File = serde_saphyr::from_str(text).map_err(|e| anyhow!("{e}"))?;
        let wanted = &file.current_context;
        if wanted.is_empty() {
            bail!("no current-context is set");
        }
        let context = find(&file.contexts, wanted, "context")?.context.clone();
        let cluster = &find(&file.clusters, &context.cluster, "cluster")?.cluster;
        let nobody = UserBody::default();
        let user = match context.user.as_str() {
            "" => &nobody,
            name => &find(&file.users, name, "user")?.user,
        };
        if user.exec.is_some() || user.auth_provider.is_some() {
            bail!("user {:?} needs a program to log in: give a certificate or token", context.user);
        }
        let authorities = data(&cluster.ca_data, &cluster.ca_file, folder)?.unwrap_or_default();
        let certificate = data(&user.certificate_data, &user.certificate_file, folder)?;
        let key = data(&user.key_data, &user.key_file, folder)?;
        let token = match (&user.token, &user.token_file) {
            (Some(token), _) => Some(token.clone()),
            (None, Some(path)) => {
                let bytes =
                    std::fs::read_to_string(folder.join(path)).context("reading tokenFile")?;
                Some(bytes.trim().to_owned())
            }
            (None, None) => None,
        };
        Ok(Self {
            server: cluster.server.trim_end_matches('/').to_owned(),
            tls_server_name: cluster.tls_server_name.clone(),
            authorities,
            identity: certificate.zip(key),
            token,
        })
    }

    /// A server over plain HTTP, without authentication.
    pub fn plain(server: &str) -> Self {
        Self {
            server: server.trim_end_matches('/').to_owned(),
            tls_server_name: None,
            authorities: Vec::new(),
            identity: None,
            token: None,
        }
    }

    /// The TLS settings; without the client certificate when `anonymous`.
    pub fn tls(&self, anonymous: bool) -> Result<Arc<ClientConfig>> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&self.authorities) {
            roots.add(certificate.context("certificate-authority-data")?)?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let config = match &self.identity {
            Some((chain, key)) if !anonymous => {
                let chain = CertificateDer::pem_slice_iter(chain)
                    .collect::<Result<Vec<_>, _>>()
                    .context("client-certificate-data")?;
                let key = PrivateKeyDer::from_pem_slice(key).context("client-key-data")?;
                builder.with_client_auth_cert(chain, key)?
            }
            _ => builder.with_no_client_auth(),
        };
        Ok(Arc::new(config))
    }

    /// Whether the server speaks TLS.
    pub fn is_tls(&self) -> bool {
        self.server.starts_with("https://")
    }

    /// `host:port`, for connecting and for the `Host` header.
    pub fn authority(&self) -> Result<String> {
        let (rest, port) = match self.server.split_once("://") {
            Some(("https", rest)) => (rest, 443),
            Some(("http", rest)) => (rest, 80),
            _ => bail!("server {:?} is neither http:// nor https://", self.server),
        };
        let host = rest.split('/').next().unwrap_or_default();
        let has_port = host.rsplit_once(':').is_some_and(|(_, p)| p.parse::<u16>().is_ok());
        Ok(if has_port { host.to_owned() } else { format!("{host}:{port}") })
    }

    /// The name to check the server's certificate against.
    pub fn certificate_name(&self) -> Result<String> {
        if let Some(name) = &self.tls_server_name {
            return Ok(name.clone());
        }
        let authority = self.authority()?;
        let host = authority.rsplit_once(':').map_or(authority.as_str(), |(host, _)| host);
        Ok(host.trim_start_matches('[').trim_end_matches(']').to_owned())
    }
}

/// Inline base64 data or else a file's content.
fn data(inline: &Option<String>, path: &Option<PathBuf>, folder: &Path) -> Result<Option<Vec<u8>>> {
    if let Some(text) = inline {
        let bytes = base64::engine::general_purpose::STANDARD.decode(text.trim())?;
        return Ok(Some(bytes));
    }
    let Some(path) = path else { return Ok(None) };
    let path = folder.join(path);
    let bytes = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    Ok(Some(bytes))
}

fn find<'a, T: Named>(list: &'a [T], name: &str, what: &str) -> Result<&'a T> {
    list.iter()
        .find(|item| item.name() == name)
        .ok_or_else(|| anyhow!("there is no {what} {name:?}"))
}

trait Named {
    fn name(&self) -> &str;
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "current-context", default)]
    current_context: String,
    #[serde(default)]
    contexts: Vec<ContextEntry>,
    #[serde(default)]
    clusters: Vec<ClusterEntry>,
    #[serde(default)]
    users: Vec<UserEntry>,
}

#[derive(Deserialize)]
struct ContextEntry {
    name: String,
    context: ContextBody,
}

#[derive(Clone, Deserialize)]
struct ContextBody {
    cluster: String,
    #[serde(default)]
    user: String,
}

#[derive(Deserialize)]
struct ClusterEntry {
    name: String,
    cluster: ClusterBody,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct ClusterBody {
    server: String,
    tls_server_name: Option<String>,
    #[serde(rename = "certificate-authority-data")]
    ca_data: Option<String>,
    #[serde(rename = "certificate-authority")]
    ca_file: Option<PathBuf>,
}

#[derive(Deserialize)]
struct UserEntry {
    name: String,
    user: UserBody,
}

#[derive(Default, Deserialize)]
struct UserBody {
    #[serde(rename = "client-certificate-data")]
    certificate_data: Option<String>,
    #[serde(rename = "client-certificate")]
    certificate_file: Option<PathBuf>,
    #[serde(rename = "client-key-data")]
    key_data: Option<String>,
    #[serde(rename = "client-key")]
    key_file: Option<PathBuf>,
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<PathBuf>,
    exec: Option<serde_json::Value>,
    #[serde(rename = "auth-provider")]
    auth_provider: Option<serde_json::Value>,
}

impl Named for ContextEntry {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for ClusterEntry {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Named for UserEntry {
    fn name(&self) -> &str {
        &self.name
    }
}

//! The server's own PKI: a CA, a serving certificate and an administrator's certificate, generated
//! at the first start and reused later. Without a directory, keys and certificates live as long as
//! the process.
//!
//! File names are kubeadm's. Keys are ECDSA P-256; files are readable by their owner only.

mod authority;
pub(crate) mod der;
mod files;
mod followed;
mod inspection;
mod listener;
mod listing;
mod pem;
mod renewal;
mod signature;
mod signer;
mod validity;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;

use crate::Error;
use crate::config::NamedServingFiles;
pub(crate) use authority::Pair;
use authority::{Authority, CLUSTER, FRONT_PROXY, Profile};
pub(crate) use files::{make_private_directory, read, write_private};
pub(crate) use followed::Followed;
pub use inspection::CertificateProblem;
pub(crate) use inspection::inspect;
pub(crate) use listener::{Authorities, ListenerCertificates};
use listener::{ListenerFiles, Serving};
pub use listing::{ListedCertificate, list_certificates};
use renewal::ClientRenewal;
pub(crate) use renewal::{Change, Renewal};
pub(crate) use signature::is_signed;
pub use signer::Signer;
pub(crate) use signer::{proves_possession, signs_with_sha256};
#[cfg(test)]
use validity::{Validity, seconds};

/// The DNS names of the API server in a cluster and on this machine.
const DNS_NAMES: &[&str] = &[
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];
/// The loopback addresses.
const ADDRESSES: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

/// The configuration of certificates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// The directory of certificates; `None` keeps them in memory.
    pub(crate) directory: Option<PathBuf>,
    /// A serving certificate and its key, instead of the server's own.
    pub(crate) serving_files: Option<(PathBuf, PathBuf)>,
    /// Serving certificates and keys by the name that the client sends (SNI).
    pub(crate) named_files: Vec<NamedServingFiles>,
    /// Additional CAs of client certificates.
    pub(crate) client_ca_file: Option<PathBuf>,
    /// The CA of front proxies.
    pub(crate) front_proxy_ca_file: Option<PathBuf>,
    /// Whether front proxies must have certain names.
    pub(crate) front_proxies_are_named: bool,
    /// The DNS names in the serving certificate, besides [`DNS_NAMES`].
    pub(crate) serving_names: Vec<String>,
    /// The addresses in the serving certificate, besides [`ADDRESSES`].
    pub(crate) serving_addresses: Vec<IpAddr>,
}

/// Everything that TLS and kubeconfigs need.
pub(crate) struct Pki {
    /// The listener's certificates, and the CAs of clients.
    pub(crate) listener: ListenerCertificates,
    /// The server's own certificate as a front proxy, which is used unless flags name another one.
    pub(crate) front_proxy: OwnFrontProxy,
    /// The CA certificate that clients must trust, as PEM.
    pub(crate) ca_pem: String,
    /// The administrator's certificate and key, as PEM.
    pub(crate) admin: Credentials,
    /// The client certificate for kubelets that trust the server's CA.
    pub(crate) kubelet_client: RenewedCredentials,
    /// Signs certificates of clients.
    pub(crate) signer: Arc<Signer>,
    /// Renews and reloads the certificates while the server runs.
    pub(crate) renewal: Renewal,
}

/// Credentials of the server, which are renewed before they expire.
pub(crate) type RenewedCredentials = Arc<ArcSwap<Credentials>>;

/// The server's certificate as a front proxy, and its CA.
pub(crate) struct OwnFrontProxy {
    /// The CA, as PEM.
    pub(crate) ca_pem: String,
    /// The client certificate.
    pub(crate) client: RenewedCredentials,
}

impl OwnFrontProxy {
    /// The common name of the certificate; kubeadm's.
    pub(crate) const NAME: &str = "front-proxy-client";
}

/// A client certificate and its key, as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The certificate.
    pub certificate_pem: String,
    /// The private key.
    pub key_pem: String,
}

impl Credentials {
    /// Reads a client certificate and its key from the files that flags name.
    ///
    /// # Errors
    /// A file cannot be read or parsed, or the key is not the certificate's.
    pub fn read(certificate: &Path, key: &Path, flags: [&'static str; 2]) -> Result<Self, Error> {
        Pair::read(certificate, key, flags).map(|pair| pair.credentials())
    }
}

/// Reads the CA file that a flag names, as PEM. It must have at least one certificate, since an
/// empty bundle would mean the system's CAs.
///
/// # Errors
/// The file cannot be read, is no PEM, or has no certificate or an invalid one.
pub fn read_authorities(path: &Path, flag: &'static str) -> Result<String, Error> {
    let text = read(path).map_err(|error| error.of(flag))?;
    pem::certificates(path, &text).map_err(|error| error.of(flag))?;
    Ok(text)
}

impl Pki {
    /// Loads existing certificates and generates missing ones.
    pub(crate) fn prepare(wanted: &Wanted, now: SystemTime) -> Result<Self, Error> {
        if let Some(directory) = &wanted.directory {
            make_private_directory(directory).map_err(|error| error.of("cert-dir"))?;
        }
        let directory = wanted.directory.as_deref();
        let authority = Authority::prepare(&CLUSTER, directory, now)?;
        authority.warn(now);
        let front_proxy_authority = Authority::prepare(&FRONT_PROXY, directory, now)?;
        let admin = authority.pair(directory, &admin_profile(), now)?;
        let kubelet_client = authority.pair(directory, &kubelet_client_profile(), now)?;
        let front_proxy_client =
            front_proxy_authority.pair(directory, &front_proxy_client_profile(), now)?;
        let files = ListenerFiles::read(wanted)?;
        let serving = match Serving::given(wanted)? {
            Some(given) => given,
            None => {
                let profile = serving_profile(wanted);
                let pair = authority.pair(directory, &profile, now)?;
                Serving::Own { profile, pair }
            }
        };
        // Clients must trust the given certificates: a chain with its root, or a self-signed
        // certificate.
        let ca_pem = match &serving {
            Serving::Given(pair) => pair.value().certificate_pem.clone(),
            Serving::Own { .. } => authority.certificate_pem().to_owned(),
        };
        let signer = Arc::new(Signer::of(&authority)?);
        let renewal = Renewal {
            front_proxy_authority,
            directory: wanted.directory.clone(),
            files,
            serving,
            admin: (admin_profile(), admin.clone()),
            kubelet_client: ClientRenewal::new(kubelet_client_profile(), kubelet_client),
            front_proxy_client: ClientRenewal::new(
                front_proxy_client_profile(),
                front_proxy_client,
            ),
            authority,
        };
        Ok(Self {
            listener: renewal.listener()?,
            ca_pem,
            admin: admin.credentials(),
            kubelet_client: renewal.kubelet_client.credentials.clone(),
            front_proxy: OwnFrontProxy {
                ca_pem: renewal.front_proxy_authority.certificate_pem().to_owned(),
                client: renewal.front_proxy_client.credentials.clone(),
            },
            signer,
            renewal,
        })
    }
}

/// The PEM of the key that signs service account tokens: the stored one, or a new one.
pub(crate) fn signing_key_pem(directory: Option<&Path>) -> Result<String, Error> {
    let path = directory.map(|directory| directory.join("sa.key"));
    if let Some(pem) = path.as_deref().map(files::read_if_any).transpose()?.flatten() {
        return Ok(pem);
    }
    let key = rcgen::KeyPair::generate();
    let pem = key.map_err(|why| Error::MakeCertificate(why.to_string()))?.serialize_pem();
    if let Some(path) = path {
        files::write_private(&path, &pem)?;
    }
    Ok(pem)
}

fn serving_profile(wanted: &Wanted) -> Profile {
    let mut dns_names: Vec<String> = DNS_NAMES.iter().map(|name| (*name).to_owned()).collect();
    dns_names.extend(wanted.serving_names.iter().cloned());
    let mut addresses = ADDRESSES.to_vec();
    addresses.extend(&wanted.serving_addresses);
    Profile {
        file: "apiserver",
        common_name: "kube-apiserver",
        organization: "",
        dns_names,
        addresses,
    }
}

const fn admin_profile() -> Profile {
    Profile {
        file: "admin",
        common_name: "kubernetes-admin",
        organization: pintle_auth::MASTERS,
        dns_names: Vec::new(),
        addresses: Vec::new(),
    }
}

/// As kubeadm made it at first, the certificate is in `system:masters`: kubelets that delegate
/// authorization need no role binding for it.
const fn kubelet_client_profile() -> Profile {
    Profile {
        file: "apiserver-kubelet-client",
        common_name: "kube-apiserver-kubelet-client",
        organization: pintle_auth::MASTERS,
        dns_names: Vec::new(),
        addresses: Vec::new(),
    }
}

/// The client certificate for extension API servers.
const fn front_proxy_client_profile() -> Profile {
    Profile {
        file: OwnFrontProxy::NAME,
        common_name: OwnFrontProxy::NAME,
        organization: "",
        dns_names: Vec::new(),
        addresses: Vec::new(),
    }
}

#[cfg(test)]
mod tests;

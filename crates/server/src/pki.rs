//! The server's own certificates: an authority, a serving certificate and an administrator's, made at the
//! first start and used again later. Without a directory they live as long as the process.
//!
//! Names of files are kubeadm's. Keys are ECDSA P-256; files are readable by their owner only.

mod authority;
pub(crate) mod der;
mod files;
mod followed;
mod listener;
mod listing;
mod pem;
mod renewal;
mod signature;
mod signer;
mod validity;

use std::net::IpAddr;
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

/// The names under which the API server is known in a cluster, and on this machine.
const DNS_NAMES: &[&str] = &[
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];
/// Loopback, and the address of the service `default/kubernetes`.
const ADDRESSES: &[&str] = &["127.0.0.1", "::1", "10.0.0.1"];

/// What the configuration says about certificates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// Where certificates are kept; `None` keeps them in memory.
    pub(crate) directory: Option<PathBuf>,
    /// A serving certificate and its key, instead of one of our own.
    pub(crate) serving_files: Option<(PathBuf, PathBuf)>,
    /// Serving certificates and their keys by the names that clients ask for.
    pub(crate) named_files: Vec<NamedServingFiles>,
    /// Further authorities for client certificates.
    pub(crate) client_ca_file: Option<PathBuf>,
    /// The authority of front proxies.
    pub(crate) front_proxy_ca_file: Option<PathBuf>,
    /// Whether front proxies are told by their names, too.
    pub(crate) front_proxies_are_named: bool,
    /// The address that the server listens on.
    pub(crate) bind_address: Option<IpAddr>,
}

/// Everything that TLS and kubeconfigs need.
pub(crate) struct Pki {
    /// What the listener shows, and by which authorities it recognises clients.
    pub(crate) listener: ListenerCertificates,
    /// What the server is to extension API servers, unless files say it.
    pub(crate) front_proxy: OwnFrontProxy,
    /// What clients must trust, as PEM.
    pub(crate) ca_pem: String,
    /// The administrator's certificate and key, as PEM.
    pub(crate) admin: Credentials,
    /// Who the server is to kubelets that trust its authority.
    pub(crate) kubelet_client: RenewedCredentials,
    /// Makes certificates for others.
    pub(crate) signer: Arc<Signer>,
    /// Keeps all of them up to date while the server runs.
    pub(crate) renewal: Renewal,
}

/// Credentials of the server's own, which are replaced before they end.
pub(crate) type RenewedCredentials = Arc<ArcSwap<Credentials>>;

/// The server as a front proxy, and by which authority it is known as that.
pub(crate) struct OwnFrontProxy {
    /// The authority, as PEM.
    pub(crate) ca_pem: String,
    /// What the server shows.
    pub(crate) client: RenewedCredentials,
}

impl OwnFrontProxy {
    /// The name in its certificate; kubeadm's.
    pub(crate) const NAME: &str = "front-proxy-client";
}

/// A client certificate and its key, as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The certificate.
    pub certificate_pem: String,
    /// Its key, to be kept to oneself.
    pub key_pem: String,
}

impl Credentials {
    /// Reads the files of a client certificate and its key, which flags name.
    ///
    /// # Errors
    /// A file cannot be read or is none of these, or the key is not that of the certificate.
    pub fn read(certificate: &Path, key: &Path, flags: [&'static str; 2]) -> Result<Self, Error> {
        Pair::read(certificate, key, flags).map(|pair| pair.credentials())
    }
}

/// Reads the file of authorities that a flag names, as PEM. There is one at least: no authorities would stand
/// for the system's.
///
/// # Errors
/// The file cannot be read, or something in it is no certificate.
pub fn read_authorities(path: &Path, flag: &'static str) -> Result<String, Error> {
    let text = read(path).map_err(|error| error.of(flag))?;
    pem::certificates(path, &text).map_err(|error| error.of(flag))?;
    Ok(text)
}

impl Pki {
    /// Reads what is there and makes what is not.
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
                let profile = serving_profile(wanted.bind_address);
                let pair = authority.pair(directory, &profile, now)?;
                Serving::Own { profile, pair }
            }
        };
        // What is given is what clients must trust: a chain up to its root, or self-signed.
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

/// The key that signs the tokens of service accounts, as PEM: the one that is kept, or a new one.
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

fn serving_profile(bind_address: Option<IpAddr>) -> Profile {
    let mut addresses: Vec<IpAddr> =
        ADDRESSES.iter().filter_map(|address| address.parse().ok()).collect();
    // "Any address" is no address that a client can ask for.
    if let Some(address) = bind_address.filter(|address| !address.is_unspecified())
        && !addresses.contains(&address)
    {
        addresses.push(address);
    }
    Profile {
        file: "apiserver",
        common_name: "kube-apiserver",
        organization: "",
        dns_names: DNS_NAMES,
        addresses,
    }
}

const fn admin_profile() -> Profile {
    Profile {
        file: "admin",
        common_name: "kubernetes-admin",
        organization: pintle_auth::MASTERS,
        dns_names: &[],
        addresses: Vec::new(),
    }
}

/// As kubeadm had it first: no role need be bound for kubelets that ask this server what it may do.
const fn kubelet_client_profile() -> Profile {
    Profile {
        file: "apiserver-kubelet-client",
        common_name: "kube-apiserver-kubelet-client",
        organization: pintle_auth::MASTERS,
        dns_names: &[],
        addresses: Vec::new(),
    }
}

/// By which extension API servers know this one.
const fn front_proxy_client_profile() -> Profile {
    Profile {
        file: OwnFrontProxy::NAME,
        common_name: OwnFrontProxy::NAME,
        organization: "",
        dns_names: &[],
        addresses: Vec::new(),
    }
}

#[cfg(test)]
mod tests;

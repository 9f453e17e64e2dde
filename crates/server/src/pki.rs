//! The server's own certificates: an authority, a serving certificate and an administrator's, made at the
//! first start and used again later. Without a directory they live as long as the process.
//!
//! Names of files are kubeadm's. Keys are ECDSA P-256; files are readable by their owner only.

mod authority;
pub(crate) mod der;
mod files;
mod pem;
mod renewal;
mod signer;
mod validity;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

use crate::Error;
pub(crate) use authority::Pair;
use authority::{Authority, CLUSTER, FRONT_PROXY, Profile};
pub(crate) use files::{make_private_directory, read, write_private};
pub(crate) use renewal::Renewal;
pub use signer::Signer;
pub(crate) use signer::{proves_possession, signs_with_sha256};
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
    /// The serving certificate and its key.
    pub(crate) serving: Pair,
    /// Authorities for client certificates.
    pub(crate) client_authorities: RootCertStore,
    /// The same, as PEM.
    pub(crate) client_ca_pem: String,
    /// Authorities of front proxies that this server believes.
    pub(crate) front_proxy_authorities: RootCertStore,
    /// The same, as PEM.
    pub(crate) front_proxy_ca_pem: Option<String>,
    /// What the server is to extension API servers, unless files say it.
    pub(crate) front_proxy: OwnFrontProxy,
    /// What clients must trust, as PEM.
    pub(crate) ca_pem: String,
    /// The administrator's certificate and key, as PEM.
    pub(crate) admin: Credentials,
    /// Who the server is to kubelets that trust its authority.
    pub(crate) kubelet_client: Credentials,
    /// Makes certificates for others.
    pub(crate) signer: Arc<Signer>,
    /// Renews the serving certificate.
    pub(crate) renewal: Renewal,
}

/// The server as a front proxy, and by which authority it is known as that.
pub(crate) struct OwnFrontProxy {
    /// The authority, as PEM.
    pub(crate) ca_pem: String,
    /// What the server shows.
    pub(crate) client: Credentials,
}

impl OwnFrontProxy {
    /// The name in its certificate; kubeadm's.
    pub(crate) const NAME: &str = "front-proxy-client";

    fn prepare(directory: Option<&Path>, now: SystemTime) -> Result<Self, Error> {
        let authority = Authority::prepare(&FRONT_PROXY, directory, now)?;
        let profile = Profile {
            file: Self::NAME,
            common_name: Self::NAME,
            organization: "",
            dns_names: &[],
            addresses: Vec::new(),
        };
        let client = authority.pair(directory, &profile, now)?.credentials();
        Ok(Self { ca_pem: authority.certificate_pem().to_owned(), client })
    }
}

/// A client certificate and its key, as PEM.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The certificate.
    pub certificate_pem: String,
    /// Its key, to be kept to oneself.
    pub key_pem: String,
}

impl Pki {
    /// Reads what is there and makes what is not.
    pub(crate) fn prepare(wanted: &Wanted, now: SystemTime) -> Result<Self, Error> {
        if let Some(directory) = &wanted.directory {
            make_private_directory(directory).map_err(|error| error.of("cert-dir"))?;
        }
        let authority = Authority::prepare(&CLUSTER, wanted.directory.as_deref(), now)?;
        authority.warn(now);
        let admin = authority.pair(wanted.directory.as_deref(), &admin_profile(), now)?;
        let kubelet_client =
            authority.pair(wanted.directory.as_deref(), &kubelet_client_profile(), now)?;
        let front_proxy = OwnFrontProxy::prepare(wanted.directory.as_deref(), now)?;
        let mut renewed = None;
        let (serving, ca_pem) = match &wanted.serving_files {
            None => {
                let profile = serving_profile(wanted.bind_address);
                let pair = authority.pair(wanted.directory.as_deref(), &profile, now)?;
                renewed = Some((profile, pair.clone()));
                (pair, authority.certificate_pem().to_owned())
            }
            Some((certificate, key)) => {
                // What is given is what clients must trust: a chain up to its root, or self-signed.
                let pair = Pair::read(certificate, key)?;
                warn_if_invalid(certificate, &pair.chain()?, now);
                let pem = pair.certificate_pem.clone();
                (pair, pem)
            }
        };
        let mut client_authorities = RootCertStore::empty();
        client_authorities.add_parsable_certificates([authority.certificate_der()?]);
        let mut client_ca_pem = authority.certificate_pem().to_owned();
        if let Some(path) = &wanted.client_ca_file {
            let (text, certificates) = authorities(path, "client-ca-file")?;
            warn_if_invalid(path, &certificates, now);
            client_authorities.add_parsable_certificates(certificates);
            client_ca_pem.push_str(&text);
        }
        let mut front_proxy_authorities = RootCertStore::empty();
        let mut front_proxy_ca_pem = None;
        if let Some(path) = &wanted.front_proxy_ca_file {
            let (text, certificates) = authorities(path, "requestheader-client-ca-file")?;
            warn_if_invalid(path, &certificates, now);
            front_proxy_authorities.add_parsable_certificates(certificates);
            front_proxy_ca_pem = Some(text);
            let is_clients = |authority| client_authorities.roots.contains(authority);
            if !wanted.front_proxies_are_named
                && front_proxy_authorities.roots.iter().any(is_clients)
            {
                return Err(every_client_a_front_proxy());
            }
        }
        Ok(Self {
            serving,
            client_authorities,
            client_ca_pem,
            front_proxy_authorities,
            front_proxy_ca_pem,
            ca_pem,
            admin: admin.credentials(),
            kubelet_client: kubelet_client.credentials(),
            front_proxy,
            signer: Arc::new(Signer::of(&authority)?),
            renewal: Renewal { authority, directory: wanted.directory.clone(), serving: renewed },
        })
    }
}

/// Why an authority of clients must not be one of front proxies, without more.
fn every_client_a_front_proxy() -> Error {
    let reason = "it and --client-ca-file, or the server's own authority, contain overlapping certificates; \
                  --requestheader-allowed-names must be specified to ensure regular client certificates \
                  cannot set authenticating proxy headers for arbitrary users";
    Error::Flag { flag: "requestheader-client-ca-file", reason: reason.to_owned() }
}

/// Tells of certificates that were given and are not valid: they are whoever's who gave them.
fn warn_if_invalid(path: &Path, certificates: &[CertificateDer<'_>], now: SystemTime) {
    for validity in certificates.iter().filter_map(Validity::of) {
        if let Some(problem) = validity.problem(seconds(now)) {
            tracing::warn!(file = %path.display(), "a certificate is not valid: {problem}");
        }
    }
}

/// The authorities in the file that a flag names: its text, and the certificates in it.
fn authorities(
    path: &Path,
    flag: &'static str,
) -> Result<(String, Vec<CertificateDer<'static>>), Error> {
    let read = || {
        let text = files::read(path)?;
        let certificates = pem::certificates(path, &text)?;
        Ok((text, certificates))
    };
    read().map_err(|error: Error| error.of(flag))
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

#[cfg(test)]
mod tests;

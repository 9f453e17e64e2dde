//! Chooses the serving certificate: by the server name that the client sends (SNI), or, if it sends
//! none, by the server's address (upstream: apiserver/pkg/server/dynamiccertificates,
//! named_certificates.go and tlsconfig.go).

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::certified;
use crate::Error;
use crate::pki::ListenerCertificates;

/// The certificates to choose from.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    /// By address or name in lower case; the first label of a name may be `*`.
    by_name: Arc<HashMap<String, Arc<CertifiedKey>>>,
    /// The certificate of other names.
    serving: Arc<CertifiedKey>,
    /// The certificates of `--tls-sni-cert-key`, in its order.
    others: Arc<[Arc<CertifiedKey>]>,
    /// The certificate for clients without SNI.
    nameless: Arc<CertifiedKey>,
}

impl Choice {
    /// # Errors
    /// A key does not match its certificate.
    pub(super) fn new(certificates: &ListenerCertificates) -> Result<Self, Error> {
        let serving = Arc::new(certified(&certificates.serving)?);
        let mut others = Vec::new();
        let (mut of_certificates, mut explicit) = (HashMap::new(), HashMap::new());
        for (names, pair) in &certificates.named {
            let certified = Arc::new(certified(pair)?);
            others.push(certified.clone());
            // The first pair with a name wins.
            for name in names {
                explicit.entry(name.to_ascii_lowercase()).or_insert_with(|| certified.clone());
            }
            if names.is_empty() {
                for name in names_of(&certified) {
                    let name = name.to_ascii_lowercase();
                    of_certificates.entry(name).or_insert_with(|| certified.clone());
                }
            }
        }
        of_certificates.extend(explicit);
        let (by_name, others) = (Arc::new(of_certificates), others.into());
        Ok(Self { by_name, others, nameless: serving.clone(), serving })
    }

    /// The choice for connections to each address that a pair names.
    pub(super) fn by_address(&self) -> Vec<(IpAddr, Self)> {
        let of_name = |(name, certified): (&String, &Arc<CertifiedKey>)| {
            let address = name.parse().ok()?;
            Some((address, Self { nameless: certified.clone(), ..self.clone() }))
        };
        self.by_name.iter().filter_map(of_name).collect()
    }

    fn named(&self, name: &str) -> &Arc<CertifiedKey> {
        let name = name.to_ascii_lowercase();
        if let Some(certified) = self.by_name.get(&name) {
            return certified;
        }
        let wildcard = name.split_once('.').map(|(_, rest)| format!("*.{rest}"));
        if let Some(certified) = wildcard.and_then(|wildcard| self.by_name.get(&wildcard)) {
            return certified;
        }
        let mut all = [&self.serving].into_iter().chain(&*self.others);
        all.find(|certified| is_for(certified, &name)).unwrap_or(&self.serving)
    }
}

impl ResolvesServerCert for Choice {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(hello.server_name().map_or(&self.nameless, |name| self.named(name)).clone())
    }
}

/// Whether a certificate is valid for a name.
fn is_for(certified: &CertifiedKey, name: &str) -> bool {
    let (Some(leaf), Ok(name)) = (certified.cert.first(), ServerName::try_from(name)) else {
        return false;
    };
    let Ok(leaf) = ParsedCertificate::try_from(leaf) else { return false };
    rustls::client::verify_server_name(&leaf, &name).is_ok()
}

/// The names of a certificate: its DNS names, and its common name if that is a host name. Its
/// addresses do not count, as SNI has no addresses.
fn names_of(certified: &CertifiedKey) -> Vec<String> {
    let Some(Ok((_, leaf))) = certified.cert.first().map(|leaf| X509Certificate::from_der(leaf))
    else {
        return Vec::new();
    };
    let common_name = leaf.subject().iter_common_name().last().and_then(|name| name.as_str().ok());
    let is_host = |name: &&str| {
        let host = name.strip_prefix("*.").unwrap_or(name);
        name.parse::<IpAddr>().is_err()
            && (*name == "*" || pintle_meta::names::dns1123_subdomain(host).is_empty())
    };
    let mut names: Vec<String> =
        common_name.filter(is_host).map(str::to_owned).into_iter().collect();
    if let Ok(Some(extension)) = leaf.subject_alternative_name() {
        names.extend(extension.value.general_names.iter().filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            _ => None,
        }));
    }
    names
}

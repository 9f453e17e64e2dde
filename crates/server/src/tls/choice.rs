//! Which serving certificate a client is shown: by the name that it asks for, or by the server's address
//! where it asks for none (upstream: apiserver/pkg/server/dynamiccertificates, named_certificates.go and
//! tlsconfig.go).

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
    /// By the name in lower case, `*` in place of its first label, or an address.
    by_name: Arc<HashMap<String, Arc<CertifiedKey>>>,
    /// For names that no other certificate is for.
    serving: Arc<CertifiedKey>,
    /// Those of pairs with names, in their order.
    others: Arc<[Arc<CertifiedKey>]>,
    /// For clients that ask for no name.
    nameless: Arc<CertifiedKey>,
}

impl Choice {
    /// # Errors
    /// A pair is none.
    pub(super) fn new(certificates: &ListenerCertificates) -> Result<Self, Error> {
        let serving = Arc::new(certified(&certificates.serving)?);
        let mut others = Vec::new();
        let (mut of_certificates, mut explicit) = (HashMap::new(), HashMap::new());
        for (names, pair) in &certificates.named {
            let certified = Arc::new(certified(pair)?);
            others.push(certified.clone());
            // The first pair that has a name is shown for it.
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

    /// The choices at addresses that are names of pairs.
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

/// Whether a client that asks for a name takes a certificate for it.
fn is_for(certified: &CertifiedKey, name: &str) -> bool {
    let (Some(leaf), Ok(name)) = (certified.cert.first(), ServerName::try_from(name)) else {
        return false;
    };
    let Ok(leaf) = ParsedCertificate::try_from(leaf) else { return false };
    rustls::client::verify_server_name(&leaf, &name).is_ok()
}

/// The names that a certificate is shown for: its common name, unless that is an address or no name of a
/// host, and its DNS names. Its addresses are none: clients do not ask for addresses.
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

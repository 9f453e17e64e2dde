//! The listener's certificates and the CAs of clients. They are replaced when files change and when
//! the server renews its own.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

use super::authority::{Authority, Pair, Profile};
use super::followed::Followed;
use super::validity::{Validity, seconds};
use super::{Wanted, files, pem};
use crate::Error;

/// The certificates of the listener at one time.
#[derive(Clone)]
pub(crate) struct ListenerCertificates {
    /// The serving certificate and its key.
    pub(crate) serving: Pair,
    /// Further pairs with their names (SNI). A pair without names is for the names of its
    /// certificate.
    pub(crate) named: Vec<(Vec<String>, Pair)>,
    /// The CAs of clients.
    pub(crate) clients: Authorities,
    /// The CAs of front proxies; `None` if there are none.
    pub(crate) front_proxies: Option<Authorities>,
}

/// CAs.
#[derive(Clone, Debug)]
pub(crate) struct Authorities {
    /// As PEM.
    pub(crate) pem: String,
    certificates: Vec<CertificateDer<'static>>,
    /// The validity of each certificate.
    validity: Vec<Validity>,
}

impl Authorities {
    pub(crate) fn new(
        pem: String,
        certificates: impl IntoIterator<Item = CertificateDer<'static>>,
    ) -> Self {
        let mut authorities = Self { pem, certificates: Vec::new(), validity: Vec::new() };
        authorities.extend(certificates);
        authorities
    }

    /// Adds certificates, except for those that cannot be parsed.
    fn extend(&mut self, certificates: impl IntoIterator<Item = CertificateDer<'static>>) {
        for certificate in certificates {
            if let Some(validity) = Validity::of(&certificate) {
                self.certificates.push(certificate);
                self.validity.push(validity);
            }
        }
    }

    /// The CAs with such a validity, as TLS needs them.
    pub(crate) fn roots(&self, has: impl Fn(Validity) -> bool) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        let with_validity = self.certificates.iter().zip(&self.validity);
        let wanted = with_validity.filter(|(_, validity)| has(**validity));
        roots.add_parsable_certificates(wanted.map(|(certificate, _)| certificate.clone()));
        roots
    }

    /// Whether all CAs are valid at a time.
    pub(crate) fn are_valid_at(&self, unix_seconds: i64) -> bool {
        self.validity.iter().all(|validity| validity.problem(unix_seconds).is_none())
    }

    /// The last second at which the same CAs are valid as at this one.
    pub(crate) fn unchanged_until(&self, unix_seconds: i64) -> i64 {
        let ends = self.validity.iter().flat_map(|validity| [validity.from - 1, validity.until]);
        ends.filter(|end| *end >= unix_seconds).min().unwrap_or(i64::MAX)
    }
}

/// The source of the serving certificate.
pub(super) enum Serving {
    /// Read from files.
    Given(Followed<Pair>),
    /// Issued by the server's CA with this profile.
    Own { profile: Profile, pair: Pair },
}

impl Serving {
    /// Reads the files that flags name; `None` if there are none.
    pub(super) fn given(wanted: &Wanted) -> Result<Option<Self>, Error> {
        let given = wanted.serving_files.clone();
        let given = given.map(|files| pair(files, ["tls-cert-file", "tls-private-key-file"]));
        Ok(given.transpose()?.map(Self::Given))
    }

    /// The current pair.
    pub(super) const fn pair(&self) -> &Pair {
        match self {
            Self::Given(followed) => followed.value(),
            Self::Own { pair, .. } => pair,
        }
    }

    /// Whether it is read from files.
    pub(super) const fn is_given(&self) -> bool {
        matches!(self, Self::Given(_))
    }

    /// Reloads changed files; true if there were any.
    pub(super) fn refresh(&mut self) -> bool {
        match self {
            Self::Given(followed) => followed.refresh(),
            Self::Own { .. } => false,
        }
    }
}

/// The contents of the other files that flags name.
pub(super) struct ListenerFiles {
    named: Vec<(Vec<String>, Followed<Pair>)>,
    clients: Option<Followed<Authorities>>,
    front_proxies: Option<Followed<Authorities>>,
    front_proxies_are_named: bool,
}

impl ListenerFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// One of them cannot be used; the error names its flag.
    pub(super) fn read(wanted: &Wanted) -> Result<Self, Error> {
        let named = wanted.named_files.iter().map(|named| {
            let files = (named.certificate.clone(), named.key.clone());
            Ok((named.names.clone(), pair(files, [SNI, SNI])?))
        });
        Ok(Self {
            named: named.collect::<Result<_, Error>>()?,
            clients: authorities(wanted.client_ca_file.as_deref(), "client-ca-file")?,
            front_proxies: authorities(wanted.front_proxy_ca_file.as_deref(), FRONT_PROXY_CA)?,
            front_proxies_are_named: wanted.front_proxies_are_named,
        })
    }

    /// Whether no flag names such a file.
    pub(super) fn is_empty(&self) -> bool {
        self.named.is_empty() && self.clients.is_none() && self.front_proxies.is_none()
    }

    /// Reloads changed files; true if there were any.
    pub(super) fn refresh(&mut self) -> bool {
        let mut is_changed = false;
        for (_, pair) in &mut self.named {
            is_changed |= pair.refresh();
        }
        for authorities in self.clients.iter_mut().chain(&mut self.front_proxies) {
            is_changed |= authorities.refresh();
        }
        is_changed
    }

    /// Combines the contents of the files with the serving pair and the server's CA.
    ///
    /// # Errors
    /// A CA of clients is also one of front proxies, and front proxies may have any name.
    pub(super) fn with(
        &self,
        serving: &Pair,
        authority: &Authority,
    ) -> Result<ListenerCertificates, Error> {
        let pem = authority.certificate_pem().to_owned();
        let mut clients = Authorities::new(pem, [authority.certificate_der()?]);
        if let Some(given) = &self.clients {
            clients.pem.push_str(&given.value().pem);
            clients.extend(given.value().certificates.iter().cloned());
        }
        let front_proxies = self.front_proxies.as_ref().map(|given| given.value().clone());
        let of_clients = clients.roots(|_| true).roots;
        let mut of_proxies = front_proxies.iter().flat_map(|given| given.roots(|_| true).roots);
        if !self.front_proxies_are_named && of_proxies.any(|one| of_clients.contains(&one)) {
            return Err(every_client_a_front_proxy());
        }
        let named = self.named.iter().map(|(names, pair)| (names.clone(), pair.value().clone()));
        Ok(ListenerCertificates {
            serving: serving.clone(),
            named: named.collect(),
            clients,
            front_proxies,
        })
    }
}

const SNI: &str = "tls-sni-cert-key";
const FRONT_PROXY_CA: &str = "requestheader-client-ca-file";

fn pair(
    (certificate, key): (PathBuf, PathBuf),
    flags: [&'static str; 2],
) -> Result<Followed<Pair>, Error> {
    Followed::new(vec![certificate.clone(), key.clone()], move || {
        let pair = Pair::read(&certificate, &key, flags)?;
        warn_if_invalid(&certificate, &pair.chain()?);
        Ok(pair)
    })
}

fn authorities(
    path: Option<&Path>,
    flag: &'static str,
) -> Result<Option<Followed<Authorities>>, Error> {
    let Some(path) = path.map(Path::to_owned) else { return Ok(None) };
    let followed = Followed::new(vec![path.clone()], move || {
        let text = files::read(&path).map_err(|error| error.of(flag))?;
        let certificates = pem::certificates(&path, &text).map_err(|error| error.of(flag))?;
        warn_if_invalid(&path, &certificates);
        Ok(Authorities::new(text, certificates))
    });
    followed.map(Some)
}

/// The error of a client CA that is also the front-proxy CA without allowed names: every client
/// could name any user.
fn every_client_a_front_proxy() -> Error {
    let reason = "it and --client-ca-file, or the server's own authority, contain overlapping certificates; \
                  --requestheader-allowed-names must be specified to ensure regular client certificates \
                  cannot set authenticating proxy headers for arbitrary users";
    Error::Flag { flag: FRONT_PROXY_CA, reason: reason.to_owned() }
}

/// Warns of given certificates that are not valid now.
fn warn_if_invalid(path: &Path, certificates: &[CertificateDer<'_>]) {
    let now = seconds(SystemTime::now());
    for validity in certificates.iter().filter_map(Validity::of) {
        if let Some(problem) = validity.problem(now) {
            tracing::warn!(file = %path.display(), "a certificate is not valid: {problem}");
        }
    }
}

//! Front proxies: who shows a certificate of the right authority says in headers who asks
//! (`--requestheader-…`, AUTHN-02).

use std::sync::Arc;

use http::HeaderMap;
use pintle_auth::User;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::config::RequestHeader;
use crate::query::percent_decode;

/// Who may say who asks, and how.
pub(crate) struct FrontProxy {
    verifier: Arc<dyn ClientCertVerifier>,
    headers: RequestHeader,
}

impl FrontProxy {
    pub(crate) const fn new(verifier: Arc<dyn ClientCertVerifier>, headers: RequestHeader) -> Self {
        Self { verifier, headers }
    }

    /// Whether the owner of a certificate is a front proxy.
    pub(super) fn trusts(&self, leaf: &CertificateDer<'_>, others: &[CertificateDer<'_>]) -> bool {
        let names = &self.headers.allowed_names;
        let is_named = || {
            let Ok((_, leaf)) = X509Certificate::from_der(leaf) else { return false };
            let name = leaf.subject().iter_common_name().find_map(|name| name.as_str().ok());
            name.is_some_and(|name| names.iter().any(|allowed| allowed == name))
        };
        self.verifier.verify_client_cert(leaf, others, UnixTime::now()).is_ok()
            && (names.is_empty() || is_named())
    }

    /// The user that headers name, if they name one.
    pub(super) fn user(&self, headers: &HeaderMap) -> Option<User> {
        let first = |names: &[String]| {
            let mut values = names.iter().filter_map(|name| headers.get(name.as_str()));
            values.find_map(|value| value.to_str().ok().filter(|value| !value.is_empty()))
        };
        let name = first(&self.headers.username_headers)?;
        let groups = self.headers.group_headers.iter().flat_map(|name| headers.get_all(name));
        let groups = groups.filter_map(|value| value.to_str().ok()).filter(|v| !v.is_empty());
        let user = User {
            name: name.to_owned(),
            uid: first(&self.headers.uid_headers).unwrap_or_default().to_owned(),
            groups: groups.map(str::to_owned).collect(),
            extra: self.extra(headers),
        };
        Some(user.authenticated())
    }

    fn extra(&self, headers: &HeaderMap) -> Vec<(String, Vec<String>)> {
        let mut extra = Vec::new();
        for prefix in &self.headers.extra_header_prefixes {
            collect_extra(headers, &prefix.to_ascii_lowercase(), &mut extra);
        }
        extra
    }
}

/// The values of all headers that begin with a prefix (in lower case), by what follows it, sorted.
pub(super) fn collect_extra(
    headers: &HeaderMap,
    prefix: &str,
    extra: &mut Vec<(String, Vec<String>)>,
) {
    for name in headers.keys() {
        let Some(key) = name.as_str().strip_prefix(prefix) else { continue };
        let key = percent_decode(key).map_or_else(|| key.to_owned(), |key| key.into_owned());
        let values = headers.get_all(name).iter();
        let values: Vec<_> =
            values.filter_map(|value| value.to_str().ok()).map(str::to_owned).collect();
        match extra.binary_search_by(|(other, _)| other.cmp(&key)) {
            Ok(at) => extra[at].1.extend(values),
            Err(at) => extra.insert(at, (key, values)),
        }
    }
}

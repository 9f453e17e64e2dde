//! Front proxies: a client whose certificate is from the front-proxy CA names the user in headers
//! (`--requestheader-…`, AUTHN-02).

use std::borrow::Cow;
use std::sync::Arc;

use http::HeaderMap;
use pintle_auth::User;
use rustls::pki_types::CertificateDer;

use super::chain::Chain;
use crate::config::RequestHeader;
use crate::header_text::text;
use crate::query::percent_decode;
use crate::tls::Verifier;

/// The verifier of front proxies, and their headers.
pub(crate) struct FrontProxy {
    verifier: Arc<Verifier>,
    headers: RequestHeader,
}

impl FrontProxy {
    pub(crate) const fn new(verifier: Arc<Verifier>, headers: RequestHeader) -> Self {
        Self { verifier, headers }
    }

    /// The headers that name the user.
    pub(super) const fn headers(&self) -> &RequestHeader {
        &self.headers
    }

    /// The certificate's chain, if the name of the certificate is allowed for front proxies.
    pub(super) fn chain(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
    ) -> Option<Chain> {
        let names = &self.headers.allowed_names;
        let is_named = || {
            let name = pintle_auth::certificate::common_name(leaf);
            name.is_ok_and(|name| names.contains(&name))
        };
        (names.is_empty() || is_named()).then(|| Chain::new(&self.verifier, leaf, others))
    }

    /// The user that the headers name, if there is one.
    pub(super) fn user(&self, headers: &HeaderMap) -> Option<User> {
        let first = |names: &[String]| {
            let values = names.iter().filter_map(|name| headers.get(name.as_str()));
            values.map(text).find(|value| !value.is_empty())
        };
        let name = first(&self.headers.username_headers)?;
        let groups = self.headers.group_headers.iter().flat_map(|name| headers.get_all(name));
        let groups = groups.map(text).filter(|value| !value.is_empty());
        let user = User {
            name: name.into_owned(),
            uid: first(&self.headers.uid_headers).unwrap_or_default().into_owned(),
            groups: groups.map(Cow::into_owned).collect(),
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

/// Adds to `extra` the values of all headers with a prefix (in lower case). The key is the rest of
/// the header's name, and `extra` is sorted by key.
pub(super) fn collect_extra(
    headers: &HeaderMap,
    prefix: &str,
    extra: &mut Vec<(String, Vec<String>)>,
) {
    for name in headers.keys() {
        let Some(key) = name.as_str().strip_prefix(prefix) else { continue };
        let key = percent_decode(key).map_or_else(|| key.to_owned(), |key| key.into_owned());
        let values = headers.get_all(name).iter().map(|value| text(value).into_owned());
        match extra.binary_search_by(|(other, _)| other.cmp(&key)) {
            Ok(at) => extra[at].1.extend(values),
            Err(at) => extra.insert(at, (key, values.collect())),
        }
    }
}

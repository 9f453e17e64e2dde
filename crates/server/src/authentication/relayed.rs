//! Removes credentials from the headers of forwarded requests: the client's credentials are for
//! this server alone, and its claims about users mean nothing to other servers.

use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_PROTOCOL};

use super::Authentication;
use crate::config::RequestHeader;
use crate::header_text;
use crate::websocket::BEARER_PREFIX;

/// The prefix of impersonation headers.
const IMPERSONATION_PREFIX: &str = "impersonate-";

impl Authentication {
    /// The headers without credentials, impersonation and front-proxy headers.
    pub(crate) fn without_credentials(&self, headers: &HeaderMap) -> HeaderMap {
        let configured = self.front_proxy.as_ref().map(|proxy| proxy.headers());
        let standard = RequestHeader::default();
        let names_user = |name: &HeaderName| {
            let name = name.as_str();
            name == AUTHORIZATION
                || name.starts_with(IMPERSONATION_PREFIX)
                || [Some(&standard), configured]
                    .into_iter()
                    .flatten()
                    .any(|h| h.has_user_header(name))
        };
        let mut relayed = HeaderMap::with_capacity(headers.len());
        for (name, value) in headers.iter().filter(|(name, _)| !names_user(name)) {
            match *name {
                SEC_WEBSOCKET_PROTOCOL => {
                    relayed.extend(without_token(value).map(|value| (name.clone(), value)));
                }
                _ => {
                    relayed.append(name.clone(), value.clone());
                }
            }
        }
        relayed
    }
}

impl RequestHeader {
    /// True for a header that carries or names a user.
    fn has_user_header(&self, name: &str) -> bool {
        let lists = [&self.username_headers, &self.uid_headers, &self.group_headers];
        let is_it = |known: &String| known.eq_ignore_ascii_case(name);
        let begins = |prefix: &String| {
            name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        };
        lists.into_iter().flatten().any(is_it) || self.extra_header_prefixes.iter().any(begins)
    }
}

/// The subprotocols without the bearer token.
fn without_token(value: &HeaderValue) -> Option<HeaderValue> {
    let text = header_text::text(value);
    let names = text.split(',').map(str::trim).filter(|name| !name.starts_with(BEARER_PREFIX));
    let names = names.collect::<Vec<_>>().join(", ");
    HeaderValue::from_str(&names).ok().filter(|names| !names.is_empty())
}

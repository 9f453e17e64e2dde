//! Authentication: the user whom a front proxy names, the holder of the connection's client
//! certificate, the holder of a token, or the anonymous user; tried in this order, as upstream
//! does.
//!
//! The TLS handshake requests a client certificate, does not require one, and accepts every chain.
//! The chain is verified at each request with the current CAs ([`chain`]), so that an invalid one
//! gets a 401 that says why instead of a broken connection, as in upstream.

mod chain;
pub(crate) mod external;
mod front_proxy;
pub(crate) mod impersonation;
mod relayed;
#[cfg(test)]
mod tests;
pub(crate) mod tokens;

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use pintle_auth::token::Authenticated;
use pintle_auth::{Error, User, certificate};
use pintle_registry::Registry;
use pintle_registry::request::Now;
use rustls::pki_types::CertificateDer;

pub(crate) use front_proxy::FrontProxy;
pub(crate) use tokens::Tokens;

use crate::tls::Verifier;
use crate::{header_text, websocket};
use chain::Chain;

/// The client certificate of a connection.
pub(crate) struct Peer {
    certificate: Option<Certificate>,
    /// Its chain, if it is that of a front proxy: then headers name the user.
    front_proxy: Option<Chain>,
}

/// A client certificate.
struct Certificate {
    chain: Chain,
    /// The user that it names; `None` if it names none.
    holder: Result<Option<Arc<User>>, Error>,
}

impl Certificate {
    /// Returns the certificate's user if the chain is valid now.
    fn user(&self, now: Now) -> Result<Option<&Arc<User>>, Error> {
        self.chain.check(now)?;
        self.holder.as_ref().map(Option::as_ref).map_err(Clone::clone)
    }
}

/// The authenticators, with their configuration.
pub(crate) struct Authentication {
    /// Verifies client certificates; `None` without a CA for them.
    pub(crate) verifier: Option<Arc<Verifier>>,
    /// Authenticates front proxies; `None` without a CA for them.
    pub(crate) front_proxy: Option<FrontProxy>,
    /// The token authenticators.
    pub(crate) tokens: Tokens,
    /// The anonymous user; `None` if anonymous requests are refused.
    pub(crate) anonymous: Option<Arc<User>>,
    /// The paths that allow anonymous requests; all if empty.
    pub(crate) anonymous_paths: Vec<String>,
}

impl Peer {
    /// The remaining validity of the certificate in seconds, if it is valid.
    pub(crate) fn certificate_remaining_seconds(&self, now: Now) -> Option<i64> {
        let certificate = self.certificate.as_ref()?;
        let holds = certificate.user(now).is_ok_and(|user| user.is_some());
        holds.then(|| certificate.chain.remaining_seconds(now))
    }
}

impl Authentication {
    /// Reads the chain that the client sent in the handshake.
    pub(crate) fn peer(&self, chain: Option<&[CertificateDer<'_>]>) -> Peer {
        let Some([leaf, others @ ..]) = chain else {
            return Peer { certificate: None, front_proxy: None };
        };
        let verifier = self.verifier.as_ref();
        let front_proxy = self.front_proxy.as_ref();
        Peer {
            certificate: verifier.map(|verifier| Certificate {
                chain: Chain::new(verifier, leaf, others),
                holder: certificate::holder(leaf).map(|holder| holder.map(Arc::new)),
            }),
            front_proxy: front_proxy.and_then(|proxy| proxy.chain(leaf, others)),
        }
    }

    /// Authenticates a request. One valid credential is enough. If there are only invalid ones, the
    /// request is refused and never anonymous (AUTHN-03).
    pub(crate) async fn user(
        &self,
        peer: &Peer,
        (headers, path): (&HeaderMap, &str),
        now: Now,
        registry: &Registry,
    ) -> Result<Authenticated, Error> {
        let without_token = |user| Authenticated::new(user, Vec::new());
        let mut refusal = None;
        if let (Some(chain), Some(proxy)) = (&peer.front_proxy, &self.front_proxy) {
            match (chain.check(now), proxy.user(headers)) {
                (Ok(()), Some(user)) => return Ok(without_token(Arc::new(user))),
                (Ok(()), None) => {}
                (Err(error), _) => refusal = Some(error),
            }
        }
        match peer.certificate.as_ref().map(|certificate| certificate.user(now)) {
            Some(Ok(Some(user))) => return Ok(without_token(user.clone())),
            Some(Err(error)) => refusal = Some(error),
            Some(Ok(None)) | None => {}
        }
        let among_subprotocols = websocket::bearer_token(headers)?;
        if let Some(token) = bearer_token(headers)?.or(among_subprotocols.as_deref()) {
            let audiences = self.tokens.api_audiences();
            return self.tokens.authenticate(token, audiences, now, registry).await;
        }
        match refusal {
            Some(error) => Err(error),
            None => self.anonymous_at(path).map(without_token).ok_or(Error::Missing),
        }
    }

    /// The anonymous user, if the path allows it.
    fn anonymous_at(&self, path: &str) -> Option<Arc<User>> {
        let paths = &self.anonymous_paths;
        let is_open = paths.is_empty() || paths.iter().any(|open| open == path);
        self.anonymous.clone().filter(|_| is_open)
    }

    /// Authenticates a token for a TokenReview. `audiences` are the requested ones; empty means
    /// those of the API.
    pub(crate) async fn review(
        &self,
        token: &str,
        audiences: &[String],
        now: Now,
        registry: &Registry,
    ) -> Result<Authenticated, Error> {
        let audiences = if audiences.is_empty() { self.tokens.api_audiences() } else { audiences };
        self.tokens.authenticate(token, audiences, now, registry).await
    }
}

/// A warning if the `Authorization` header holds a token in the wrong form, which is ignored.
pub(crate) fn misplaced_token(headers: &HeaderMap) -> Option<&'static str> {
    let value = headers.get(AUTHORIZATION).map(header_text::text)?;
    let (scheme, rest) = value.trim().split_once(' ')?;
    let is_misplaced = scheme.eq_ignore_ascii_case("bearer") && rest.starts_with(' ');
    is_misplaced.then_some(
        "the provided Authorization header contains extra space before the bearer token, and is \
         ignored",
    )
}

/// The token of the `Authorization` header, if there is one. Every valid token is UTF-8.
fn bearer_token(headers: &HeaderMap) -> Result<Option<&str>, Error> {
    let Some(value) = headers.get(AUTHORIZATION) else { return Ok(None) };
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => Ok(token_in(text)),
        Err(_) if token_in(&header_text::text(value)).is_some() => Err(Error::Token),
        Err(_) => Ok(None),
    }
}

fn token_in(authorization: &str) -> Option<&str> {
    let (scheme, rest) = authorization.trim().split_once(' ')?;
    let token = rest.split(' ').next().unwrap_or_default();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

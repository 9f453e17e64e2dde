//! Who is behind a request: whom a front proxy says, the holder of the connection's client certificate,
//! the holder of a token, or nobody in particular; in this order, as upstream asks.
//!
//! A client certificate is asked for and not demanded, and one that does not hold ends in a 401 that says
//! so rather than in a broken connection (as upstream does it). So the handshake lets every chain pass,
//! and the chain is verified here at the requests, by the authorities of the time ([`chain`]).

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

/// What is known of the other end of a connection.
pub(crate) struct Peer {
    certificate: Option<Certificate>,
    /// Its chain, if it is a front proxy's where it holds: then headers say who asks.
    front_proxy: Option<Chain>,
}

/// A client certificate.
struct Certificate {
    chain: Chain,
    /// Whose it is; nobody's where it names none.
    holder: Result<Option<Arc<User>>, Error>,
}

impl Certificate {
    /// Whose it is, if it holds.
    fn user(&self, now: Now) -> Result<Option<&Arc<User>>, Error> {
        self.chain.check(now)?;
        self.holder.as_ref().map(Option::as_ref).map_err(Clone::clone)
    }
}

/// Finds out who asks.
pub(crate) struct Authentication {
    /// Verifies chains of client certificates; `None` where no authority for them is known.
    pub(crate) verifier: Option<Arc<Verifier>>,
    /// Who may say who asks; `None` where nobody may.
    pub(crate) front_proxy: Option<FrontProxy>,
    /// The tokens that are known.
    pub(crate) tokens: Tokens,
    /// Who comes without credentials; `None` where nobody may.
    pub(crate) anonymous: Option<Arc<User>>,
    /// The paths for which one may come without credentials; all where there are none.
    pub(crate) anonymous_paths: Vec<String>,
}

impl Peer {
    /// For how long its certificate is still valid, in seconds, where it has one that holds.
    pub(crate) fn certificate_remaining_seconds(&self, now: Now) -> Option<i64> {
        let certificate = self.certificate.as_ref()?;
        let holds = certificate.user(now).is_ok_and(|user| user.is_some());
        holds.then(|| certificate.chain.remaining_seconds(now))
    }
}

impl Authentication {
    /// Looks at the chain that the other end of a connection gave.
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

    /// Who makes a request. One credential that holds is enough; one that does not hold is an error,
    /// never anonymity (AUTHN-03).
    pub(crate) async fn user(
        &self,
        peer: &Peer,
        (headers, path): (&HeaderMap, &str),
        now: Now,
        registry: &Registry,
    ) -> Result<Arc<User>, Error> {
        let mut refusal = None;
        if let (Some(chain), Some(proxy)) = (&peer.front_proxy, &self.front_proxy) {
            match (chain.check(now), proxy.user(headers)) {
                (Ok(()), Some(user)) => return Ok(Arc::new(user)),
                (Ok(()), None) => {}
                (Err(error), _) => refusal = Some(error),
            }
        }
        match peer.certificate.as_ref().map(|certificate| certificate.user(now)) {
            Some(Ok(Some(user))) => return Ok(user.clone()),
            Some(Err(error)) => refusal = Some(error),
            Some(Ok(None)) | None => {}
        }
        let among_subprotocols = websocket::bearer_token(headers)?;
        if let Some(token) = bearer_token(headers)?.or(among_subprotocols.as_deref()) {
            let audiences = self.tokens.api_audiences();
            return Ok(self.tokens.authenticate(token, audiences, now, registry).await?.user);
        }
        match refusal {
            Some(error) => Err(error),
            None => self.anonymous_at(path).ok_or(Error::Missing),
        }
    }

    /// Who comes without credentials to a path, if anybody may.
    fn anonymous_at(&self, path: &str) -> Option<Arc<User>> {
        let paths = &self.anonymous_paths;
        let is_open = paths.is_empty() || paths.iter().any(|open| open == path);
        self.anonymous.clone().filter(|_| is_open)
    }

    /// Whose a token is, for a review; `audiences` are those that it is to be for, none for the API's.
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

/// What to say of an `Authorization` header that holds a token in the wrong place, which is ignored.
pub(crate) fn misplaced_token(headers: &HeaderMap) -> Option<&'static str> {
    let said = headers.get(AUTHORIZATION).map(header_text::text)?;
    let (scheme, rest) = said.trim().split_once(' ')?;
    let is_misplaced = scheme.eq_ignore_ascii_case("bearer") && rest.starts_with(' ');
    is_misplaced.then_some(
        "the provided Authorization header contains extra space before the bearer token, and is \
         ignored",
    )
}

/// The token in an `Authorization` header, if it holds one. All tokens that are known are UTF-8.
fn bearer_token(headers: &HeaderMap) -> Result<Option<&str>, Error> {
    let Some(said) = headers.get(AUTHORIZATION) else { return Ok(None) };
    match std::str::from_utf8(said.as_bytes()) {
        Ok(text) => Ok(token_in(text)),
        Err(_) if token_in(&header_text::text(said)).is_some() => Err(Error::Token),
        Err(_) => Ok(None),
    }
}

fn token_in(authorization: &str) -> Option<&str> {
    let (scheme, rest) = authorization.trim().split_once(' ')?;
    let token = rest.split(' ').next().unwrap_or_default();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

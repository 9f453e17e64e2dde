//! Who is behind a request: whom a front proxy says, the holder of the connection's client certificate,
//! the holder of a token, or nobody in particular; in this order, as upstream asks.
//!
//! A client certificate is asked for and not demanded, and one that does not hold ends in a 401 that says
//! so rather than in a broken connection (as upstream does it). So the handshake lets every chain pass,
//! and the chain is verified here, for each connection and again when a certificate of it ends.

mod chain;
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
use rustls::server::danger::ClientCertVerifier;

pub(crate) use front_proxy::FrontProxy;
pub(crate) use tokens::Tokens;

use crate::{header_text, websocket};
use chain::Chain;

/// What is known of the other end of a connection.
pub(crate) struct Peer {
    credential: Credential,
    /// Its chain, if it is a front proxy's, whose headers say who asks.
    front_proxy: Option<Chain>,
}

enum Credential {
    /// None was given.
    None,
    /// A certificate, and the chain that it is trusted for.
    Certificate { user: Arc<User>, chain: Chain },
    /// A certificate that does not hold.
    Refused(Error),
}

/// Finds out who asks.
pub(crate) struct Authentication {
    /// Verifies chains of client certificates; `None` where no authority for them is known.
    pub(crate) verifier: Option<Arc<dyn ClientCertVerifier>>,
    /// Who may say who asks; `None` where nobody may.
    pub(crate) front_proxy: Option<FrontProxy>,
    /// The tokens that are known.
    pub(crate) tokens: Tokens,
    /// Who comes without credentials; `None` where nobody may.
    pub(crate) anonymous: Option<Arc<User>>,
}

impl Peer {
    /// For how long its certificate is still valid, in seconds, where it has one that holds.
    pub(crate) const fn certificate_remaining_seconds(&self, now: Now) -> Option<i64> {
        match &self.credential {
            Credential::Certificate { chain, .. } => Some(chain.remaining_seconds(now)),
            Credential::None | Credential::Refused(_) => None,
        }
    }
}

impl Authentication {
    /// Looks at the chain that the other end of a connection gave.
    pub(crate) fn peer(&self, chain: Option<&[CertificateDer<'_>]>, now: Now) -> Peer {
        let Some([leaf, others @ ..]) = chain else {
            return Peer { credential: Credential::None, front_proxy: None };
        };
        let front_proxy = self.front_proxy.as_ref();
        Peer {
            credential: self.credential(leaf, others, now),
            front_proxy: front_proxy.and_then(|proxy| proxy.chain(leaf, others, now)),
        }
    }

    fn credential(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: Now,
    ) -> Credential {
        let Some(verifier) = &self.verifier else { return Credential::None };
        let chain = match Chain::verify(verifier, leaf, others, now) {
            Ok(chain) => chain,
            Err(error) => return Credential::Refused(error),
        };
        match certificate::holder(leaf) {
            Err(error) => Credential::Refused(error),
            Ok(None) => Credential::None,
            Ok(Some(user)) => Credential::Certificate { user: Arc::new(user), chain },
        }
    }

    /// Who makes a request. One credential that holds is enough; one that does not hold is an error,
    /// never anonymity (AUTHN-03).
    pub(crate) fn user(
        &self,
        peer: &Peer,
        headers: &HeaderMap,
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
        match &peer.credential {
            Credential::Certificate { user, chain } => match chain.check(now) {
                Ok(()) => return Ok(user.clone()),
                Err(error) => refusal = Some(error),
            },
            Credential::Refused(error) => refusal = Some(error.clone()),
            Credential::None => {}
        }
        let among_subprotocols = websocket::bearer_token(headers)?;
        if let Some(token) = bearer_token(headers)?.or(among_subprotocols.as_deref()) {
            let audiences = self.tokens.api_audiences();
            return Ok(self.tokens.authenticate(token, audiences, now, registry)?.user);
        }
        match refusal {
            Some(error) => Err(error),
            None => self.anonymous.clone().ok_or(Error::Missing),
        }
    }

    /// Whose a token is, for a review; `audiences` are those that it is to be for, none for the API's.
    pub(crate) fn review(
        &self,
        token: &str,
        audiences: &[String],
        now: Now,
        registry: &Registry,
    ) -> Result<Authenticated, Error> {
        let audiences = if audiences.is_empty() { self.tokens.api_audiences() } else { audiences };
        self.tokens.authenticate(token, audiences, now, registry)
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

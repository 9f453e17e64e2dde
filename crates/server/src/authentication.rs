//! Who is behind a request: whom a front proxy says, the holder of the connection's client certificate,
//! the holder of a token, or nobody in particular; in this order, as upstream asks.
//!
//! A client certificate is asked for and not demanded, and one that does not hold ends in a 401 that says
//! so rather than in a broken connection (as upstream does it). So the handshake lets every chain pass,
//! and the chain is verified here, once for each connection.

mod front_proxy;
pub(crate) mod impersonation;
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
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;

pub(crate) use front_proxy::FrontProxy;
pub(crate) use tokens::Tokens;

use crate::websocket;

/// What is known of the other end of a connection.
pub(crate) struct Peer {
    credential: Credential,
    /// Whether it is a front proxy, whose headers say who asks.
    is_front_proxy: bool,
}

enum Credential {
    /// None was given.
    None,
    /// A certificate that holds until a time.
    Certificate { user: Arc<User>, not_after_unix_seconds: i64 },
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

impl Authentication {
    /// Looks at the chain that the other end of a connection gave.
    pub(crate) fn peer(&self, chain: Option<&[CertificateDer<'_>]>) -> Peer {
        let Some([leaf, others @ ..]) = chain else {
            return Peer { credential: Credential::None, is_front_proxy: false };
        };
        let is_front_proxy =
            self.front_proxy.as_ref().is_some_and(|proxy| proxy.trusts(leaf, others));
        Peer { credential: self.credential(leaf, others), is_front_proxy }
    }

    fn credential(&self, leaf: &CertificateDer<'_>, others: &[CertificateDer<'_>]) -> Credential {
        let Some(verifier) = &self.verifier else { return Credential::None };
        if let Err(error) = verifier.verify_client_cert(leaf, others, UnixTime::now()) {
            return Credential::Refused(Error::Untrusted(error.to_string()));
        }
        match certificate::holder(leaf) {
            Err(error) => Credential::Refused(error),
            Ok(None) => Credential::None,
            Ok(Some(holder)) => Credential::Certificate {
                user: Arc::new(holder.user),
                not_after_unix_seconds: holder.not_after_unix_seconds,
            },
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
        if peer.is_front_proxy
            && let Some(user) = self.front_proxy.as_ref().and_then(|proxy| proxy.user(headers))
        {
            return Ok(Arc::new(user));
        }
        let mut refusal = None;
        match &peer.credential {
            Credential::Certificate { user, not_after_unix_seconds } => {
                if now.unix_seconds() <= *not_after_unix_seconds {
                    return Ok(user.clone());
                }
                refusal = Some(Error::Untrusted("it has expired".to_owned()));
            }
            Credential::Refused(error) => refusal = Some(error.clone()),
            Credential::None => {}
        }
        let among_subprotocols = websocket::bearer_token(headers)?;
        if let Some(token) = bearer_token(headers).or(among_subprotocols.as_deref()) {
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
    let (scheme, rest) = headers.get(AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    let is_misplaced = scheme.eq_ignore_ascii_case("bearer") && rest.starts_with(' ');
    is_misplaced.then_some(
        "the provided Authorization header contains extra space before the bearer token, and is \
         ignored",
    )
}

/// The token in an `Authorization` header, if it holds one.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, rest) = headers.get(AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    let token = rest.split(' ').next().unwrap_or_default();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

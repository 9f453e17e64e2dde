//! Who is behind a request: the holder of the connection's client certificate, or nobody in particular.
//!
//! A client certificate is asked for and not demanded, and one that does not hold ends in a 401 that says
//! so rather than in a broken connection (as upstream does it). So the handshake lets every chain pass,
//! and the chain is verified here, once for each connection.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use pintle_auth::{Error, User, certificate};
use pintle_registry::request::Now;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;

/// What is known of the other end of a connection.
pub(crate) struct Peer {
    credential: Credential,
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
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    /// Who comes without credentials; `None` where nobody may.
    anonymous: Option<Arc<User>>,
}

impl Authentication {
    /// With the verifier of client certificates, and whether one may come without credentials.
    pub(crate) fn new(verifier: Option<Arc<dyn ClientCertVerifier>>, anonymous: bool) -> Self {
        Self { verifier, anonymous: anonymous.then(|| Arc::new(User::anonymous())) }
    }

    /// Looks at the chain that the other end of a connection gave.
    pub(crate) fn peer(&self, chain: Option<&[CertificateDer<'_>]>) -> Peer {
        let credential = match (chain, &self.verifier) {
            (None | Some([]), _) | (_, None) => Credential::None,
            (Some([leaf, others @ ..]), Some(verifier)) => {
                match verifier.verify_client_cert(leaf, others, UnixTime::now()) {
                    Err(error) => Credential::Refused(Error::Untrusted(error.to_string())),
                    Ok(_) => match certificate::holder(leaf) {
                        Err(error) => Credential::Refused(error),
                        Ok(None) => Credential::None,
                        Ok(Some(holder)) => Credential::Certificate {
                            user: Arc::new(holder.user),
                            not_after_unix_seconds: holder.not_after_unix_seconds,
                        },
                    },
                }
            }
        };
        Peer { credential }
    }

    /// Who makes a request. A credential that does not hold is an error, never anonymity (AUTHN-03).
    pub(crate) fn user(
        &self,
        peer: &Peer,
        headers: &HeaderMap,
        now: Now,
    ) -> Result<Arc<User>, Error> {
        match &peer.credential {
            Credential::Refused(error) => return Err(error.clone()),
            Credential::Certificate { user, not_after_unix_seconds } => {
                if now.unix_seconds() > *not_after_unix_seconds {
                    return Err(Error::Untrusted("it has expired".to_owned()));
                }
                return Ok(user.clone());
            }
            Credential::None => {}
        }
        if bearer_token(headers).is_some() {
            return Err(Error::Token); // no kind of token is known yet
        }
        self.anonymous.clone().ok_or(Error::Missing)
    }
}

/// The token in an `Authorization` header, if it holds one.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn user(anonymous: bool, authorization: &'static str) -> Result<String, Error> {
        let authentication = Authentication::new(None, anonymous);
        let mut headers = HeaderMap::new();
        if !authorization.is_empty() {
            headers.insert(AUTHORIZATION, HeaderValue::from_static(authorization));
        }
        let peer = authentication.peer(None);
        let user = authentication.user(&peer, &headers, Now { unix_micros: 0 })?;
        Ok(user.name.clone())
    }

    #[test]
    fn who_has_no_credentials_is_anonymous_or_refused() {
        assert_eq!(user(true, ""), Ok("system:anonymous".to_owned()));
        assert_eq!(user(false, ""), Err(Error::Missing));
    }

    #[test]
    fn a_token_that_is_not_known_is_never_anonymous() {
        // AUTHN-03
        assert_eq!(user(true, "Bearer abc"), Err(Error::Token));
        assert_eq!(user(true, "bearer abc"), Err(Error::Token));
        assert_eq!(user(true, "Basic abc"), Ok("system:anonymous".to_owned()));
    }

    #[test]
    fn a_certificate_holds_until_it_expires() {
        let authentication = Authentication::new(None, true);
        let user = Arc::new(User { name: "jane".to_owned(), ..User::default() });
        let credential = Credential::Certificate { user, not_after_unix_seconds: 100 };
        let peer = Peer { credential };
        let at = |seconds: i64| {
            let now = Now { unix_micros: seconds * 1_000_000 };
            authentication.user(&peer, &HeaderMap::new(), now).map(|user| user.name.clone())
        };
        assert_eq!(at(100), Ok("jane".to_owned()));
        assert!(at(101).is_err());
    }
}

//! Parses a token (RFC 7519, compact form), and checks what every token must satisfy.

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use pintle_meta::quote::quote;
use pintle_value::{Map, Value, json};

use super::keys::{Algorithm, KeySet};

/// The maximum size of a token in bytes.
const TOKEN_BYTES_MAX: usize = 64 * 1024;
/// The leeway of `nbf` in seconds, since clocks differ.
const NOT_BEFORE_LEEWAY_SECONDS: i64 = 60;
/// Google's old issuer name, and its present URL.
const GOOGLE: [&str; 2] = ["accounts.google.com", "https://accounts.google.com"];
/// The claims that decide whether a token is valid. Go matches their names in any case: a token
/// with one of them in two cases would be interpreted differently by different servers, so it is
/// refused.
const REGISTERED: [&str; 5] = ["iss", "aud", "exp", "nbf", "_claim_names"];
/// Ignores trailing bits, as Go does.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

/// A token whose claims are not verified.
#[derive(Debug)]
pub struct WebToken<'t> {
    /// The signed bytes: header and claims.
    message: &'t str,
    header: &'t str,
    claims: Map,
    signature: &'t str,
}

/// The requirements of an issuer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demands<'d> {
    pub(super) audiences: &'d [String],
    pub(super) algorithms: &'d [Algorithm],
}

/// The signature data of a token's header.
#[derive(Debug, PartialEq, Eq)]
pub struct Signing {
    algorithm: Algorithm,
    /// `""` if the header has no key ID.
    key_id: String,
    signature: Vec<u8>,
}

impl<'t> WebToken<'t> {
    /// Parses a token; `None` if it is no JSON Web Token, is too large, or has a registered claim
    /// twice.
    pub fn parse(token: &'t str) -> Option<Self> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let (message, signature) = token.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        let Value::Object(claims) = json::parse(&decode(claims).ok()?).ok()? else { return None };
        let is_ambiguous = |name: &&str| named(&claims, name).count() > 1;
        if REGISTERED.iter().any(is_ambiguous) {
            return None;
        }
        Some(Self { message, header, claims, signature })
    }

    /// The claimed issuer.
    pub fn issuer(&self) -> &str {
        match self.registered("iss").and_then(Value::as_str).unwrap_or_default() {
            name if name == GOOGLE[0] => GOOGLE[1],
            name => name,
        }
    }

    /// The claims; use them only after verification.
    pub(super) const fn claims(&self) -> &Map {
        &self.claims
    }

    /// Checks everything that needs no key: types of claims, audience, times, algorithm.
    ///
    /// # Errors
    /// The reason why the token is invalid.
    pub(super) fn check(
        &self,
        demands: Demands<'_>,
        now_unix_seconds: i64,
    ) -> Result<Signing, String> {
        let malformed = |why: String| format!("oidc: malformed jwt: {why}");
        let header = decode(self.header).and_then(|header| read_object(&header));
        let header = header.map_err(malformed)?;
        let signature = decode(self.signature).map_err(malformed)?;
        let name = member(&header, "alg").map_err(malformed)?;
        let key_id = member(&header, "kid").map_err(malformed)?.to_owned();
        check_embedded_key(&header).map_err(malformed)?;
        self.check_types()?;
        self.check_sources()?;
        self.check_audience(demands.audiences)?;
        self.check_times(now_unix_seconds)?;
        let algorithm = Algorithm::parse(name).filter(|one| demands.algorithms.contains(one));
        let Some(algorithm) = algorithm else {
            let expected = demands.algorithms.iter().map(|one| quote(one.name()));
            let expected = expected.collect::<Vec<_>>().join(" ");
            return Err(format!(
                "oidc: id token signed with unsupported algorithm, expected [{expected}] got {}",
                quote(name)
            ));
        };
        if !extensions_are_known(&header) {
            return Err(
                "failed to verify signature: failed to verify id token signature".to_owned()
            );
        }
        Ok(Signing { algorithm, key_id, signature })
    }

    /// Whether one of the keys signed the token.
    pub(super) fn is_signed(&self, by: &Signing, keys: &KeySet) -> bool {
        keys.has_signed((by.algorithm, &by.key_id), self.message.as_bytes(), &by.signature)
    }

    /// A registered claim.
    fn registered(&self, name: &str) -> Option<&Value> {
        named(&self.claims, name).next()
    }

    fn check_types(&self) -> Result<(), String> {
        let wrong = |name: &str, wanted: &str| {
            Err(format!("oidc: failed to unmarshal claims: {name} must be {wanted}"))
        };
        for name in ["iss", "sub", "nonce", "at_hash"] {
            if !matches!(self.registered(name), None | Some(Value::Null | Value::String(_))) {
                return wrong(name, "a string");
            }
        }
        let is_audience = match self.registered("aud") {
            Some(Value::Array(all)) => all.iter().all(is_string_or_null),
            one => one.is_none_or(is_string_or_null),
        };
        if !is_audience {
            return wrong("aud", "a string or a list of strings");
        }
        for name in ["exp", "iat", "nbf"] {
            match self.registered(name) {
                None => {}
                Some(Value::Null) if name == "nbf" => {}
                Some(time) if seconds(time).is_some() => {}
                Some(_) => return wrong(name, "a number of seconds"),
            }
        }
        Ok(())
    }

    /// Checks that each distributed claim has a source (OpenID Connect Core, 5.6.2).
    fn check_sources(&self) -> Result<(), String> {
        let names = match self.registered("_claim_names") {
            None | Some(Value::Null) => return Ok(()),
            Some(Value::Object(names)) => names,
            Some(_) => {
                return Err(
                    "oidc: failed to unmarshal claims: _claim_names must be an object".to_owned()
                );
            }
        };
        let sources = self.registered("_claim_sources").and_then(Value::as_object);
        let is_known = |source: &Value| {
            source.as_str().is_some_and(|name| sources.is_some_and(|all| all.contains_key(name)))
        };
        match names.iter().all(|(_, source)| is_known(source)) {
            true => Ok(()),
            false => Err("oidc: source does not exist".to_owned()),
        }
    }

    fn check_audience(&self, audiences: &[String]) -> Result<(), String> {
        let own = match self.registered("aud") {
            Some(Value::Array(all)) => {
                all.iter().map(|one| one.as_str().unwrap_or_default()).collect()
            }
            Some(one) => vec![one.as_str().unwrap_or_default()],
            None => Vec::new(),
        };
        if own.iter().any(|own| audiences.iter().any(|known| known == own)) {
            return Ok(());
        }
        let list = |all: Vec<&str>| {
            let quoted: Vec<_> = all.into_iter().map(quote).collect();
            quoted.join(" ")
        };
        let expected = match audiences {
            [one] => quote(one),
            all => format!("in [{}]", list(all.iter().map(String::as_str).collect())),
        };
        Err(format!("oidc: expected audience {expected} got [{}]", list(own)))
    }

    fn check_times(&self, now_unix_seconds: i64) -> Result<(), String> {
        let time = |name| self.registered(name).and_then(seconds);
        // A token without `exp` counts as expired, as in upstream's library.
        if time("exp").unwrap_or(i64::MIN) < now_unix_seconds {
            return Err("oidc: token is expired".to_owned());
        }
        let not_before = time("nbf").unwrap_or(i64::MIN);
        if now_unix_seconds.saturating_add(NOT_BEFORE_LEEWAY_SECONDS) < not_before {
            return Err("oidc: current time before the nbf (not before) time".to_owned());
        }
        Ok(())
    }
}

/// The claims of a name, in any case.
fn named<'c>(claims: &'c Map, name: &str) -> impl Iterator<Item = &'c Value> {
    let named = claims.iter().filter(move |(key, _)| key.eq_ignore_ascii_case(name));
    named.map(|(_, value)| value)
}

/// Decodes base64. Line breaks in it are ignored, as in Go.
fn decode(part: &str) -> Result<Vec<u8>, String> {
    let part: Vec<u8> = part.bytes().filter(|byte| !b"\r\n".contains(byte)).collect();
    BASE64.decode(part).map_err(|why| why.to_string())
}

fn read_object(bytes: &[u8]) -> Result<Map, String> {
    match json::parse(bytes).map_err(|why| why.to_string())? {
        Value::Object(members) => Ok(members),
        _ => Err("the header must be an object".to_owned()),
    }
}

/// A text member of the header; `""` if absent.
fn member<'h>(header: &'h Map, name: &str) -> Result<&'h str, String> {
    match header.get(name) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(format!("{name} must be a string")),
    }
}

/// Refuses a secret or private key in the header. Embedded public keys are ignored: only the
/// issuer's keys verify.
fn check_embedded_key(header: &Map) -> Result<(), String> {
    let Some(key) = header.get("jwk").filter(|key| !key.is_null()) else { return Ok(()) };
    let is_public = matches!(key.str_at(&["kty"]), Some("RSA" | "EC" | "OKP"));
    match is_public && key.get("d").is_none() {
        true => Ok(()),
        false => Err("the embedded key must be a public key".to_owned()),
    }
}

/// Whether all critical header parameters are known (RFC 7515, section 4.1.11).
fn extensions_are_known(header: &Map) -> bool {
    let is_known = |name: &Value| name.as_str() == Some("b64");
    let are_known = match header.get("crit") {
        None => true,
        Some(Value::Array(names)) => names.iter().all(is_known),
        Some(_) => false,
    };
    are_known && header.get("b64").is_none_or(|b64| b64.as_bool() == Some(true))
}

const fn is_string_or_null(value: &Value) -> bool {
    matches!(value, Value::String(_) | Value::Null)
}

/// Parses seconds since 1970, which may have a fraction and may be in a text, as Go does. A time
/// outside Go's range counts as long past.
fn seconds(time: &Value) -> Option<i64> {
    let of_float = |seconds: f64| match seconds.abs() < 9.2e18 {
        true => seconds as i64,
        false => i64::MIN,
    };
    match time {
        Value::Int(seconds) => Some(*seconds),
        Value::Float(seconds) => Some(of_float(*seconds)),
        Value::String(text) => {
            let is_number = text.bytes().all(|byte| b"0123456789+-.eE".contains(&byte));
            let whole = text.parse().ok();
            whole.or_else(|| text.parse().ok().map(of_float)).filter(|_| is_number)
        }
        _ => None,
    }
}

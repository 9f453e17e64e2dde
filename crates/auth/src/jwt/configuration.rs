//! AuthenticationConfiguration, and the flags `--oidc-…`, which are equivalent to one issuer.
//!
//! [`reader`] checks the structure of the file and its issuers, [`claims`] the rules and mappings
//! of claims.

mod claims;
mod reader;

use std::collections::BTreeMap;

use pintle_meta::{User, field};
use pintle_value::{Map, Path, Value};

use super::keys::{Algorithm, KeySet};
use super::mapping::Mapping;
use super::token::{Demands, Signing, WebToken};
use crate::Error;
use reader::{Reader, Shape};

/// The supported versions of the file. They do not differ.
const VERSIONS: [&str; 3] = [
    "apiserver.config.k8s.io/v1",
    "apiserver.config.k8s.io/v1beta1",
    "apiserver.config.k8s.io/v1alpha1",
];
const KIND: &str = "AuthenticationConfiguration";

/// The issuers, and the settings of anonymous requests.
#[derive(Debug, Default)]
pub struct Configuration {
    pub issuers: Vec<Issuer>,
    /// `None` if the file has no such settings.
    pub anonymous: Option<Anonymous>,
}

/// The settings of anonymous requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anonymous {
    pub enabled: bool,
    /// The paths that allow anonymous requests; all if empty.
    pub paths: Vec<String>,
}

/// The egress selection of an issuer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Egress {
    ControlPlane,
    Cluster,
}

/// A trusted OpenID provider.
#[derive(Debug)]
pub struct Issuer {
    /// The value of `iss`.
    pub url: String,
    /// The URL of the discovery document, if the document is not below the issuer's URL.
    pub discovery_url: Option<String>,
    /// The CAs that may have signed the certificate of the issuer's server, in PEM; if empty, the
    /// system's CAs.
    pub authorities_pem: String,
    /// `None` for a direct connection.
    pub egress: Option<Egress>,
    audiences: Vec<String>,
    algorithms: Vec<Algorithm>,
    mapping: Mapping,
}

/// The flags `--oidc-…`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OidcFlags {
    pub issuer_url: String,
    pub client_id: String,
    /// The contents of the CA file.
    pub authorities_pem: String,
    pub username_claim: String,
    pub username_prefix: String,
    pub groups_claim: String,
    pub groups_prefix: String,
    pub signing_algorithms: Vec<String>,
    pub required_claims: BTreeMap<String, String>,
}

impl Issuer {
    /// The URL of the issuer's discovery document.
    pub fn discovery(&self) -> String {
        let own = || format!("{}/.well-known/openid-configuration", self.url.trim_end_matches('/'));
        self.discovery_url.clone().unwrap_or_else(own)
    }

    /// Checks everything that needs no key; returns how the token is signed.
    ///
    /// # Errors
    /// The reason why the token is invalid.
    pub fn check(&self, token: &WebToken<'_>, now_unix_seconds: i64) -> Result<Signing, String> {
        let demands = Demands { audiences: &self.audiences, algorithms: &self.algorithms };
        token.check(demands, now_unix_seconds)
    }

    /// The user of a [checked](Self::check) token; `None` if no key of the set signed it.
    ///
    /// # Errors
    /// The reason why the claims map to no user.
    pub fn user(
        &self,
        token: &WebToken<'_>,
        signing: &Signing,
        keys: &KeySet,
    ) -> Option<Result<User, String>> {
        token.is_signed(signing, keys).then(|| self.mapping.user(token.claims()))
    }
}

impl OidcFlags {
    /// The issuer of the flags; `disallowed` are the issuers of service account tokens.
    ///
    /// # Errors
    /// The errors of flags, with upstream's texts.
    pub fn issuer(&self, disallowed: &[String]) -> Result<Issuer, Error> {
        let prefix = match self.username_prefix.as_str() {
            "" if self.username_claim != "email" => format!("{}#", self.issuer_url),
            "-" => String::new(),
            prefix => prefix.to_owned(),
        };
        let claim = |name: &str, prefix: &str| Value::from([("claim", name), ("prefix", prefix)]);
        let mut mappings = Map::new();
        mappings.insert("username", claim(&self.username_claim, &prefix));
        if !self.groups_claim.is_empty() {
            mappings.insert("groups", claim(&self.groups_claim, &self.groups_prefix));
        }
        let rules = self.required_claims.iter().map(|(claim, value)| {
            Value::from([("claim", claim.as_str()), ("requiredValue", value.as_str())])
        });
        let issuer = Value::from([
            ("url", Value::from(self.issuer_url.as_str())),
            ("audiences", Value::Array(vec![self.client_id.as_str().into()])),
            ("certificateAuthority", Value::from(self.authorities_pem.as_str())),
        ]);
        let authenticator = Value::from([
            ("issuer", issuer),
            ("claimMappings", Value::Object(mappings)),
            ("claimValidationRules", Value::Array(rules.collect())),
        ]);
        let algorithms = self.signing_algorithms.iter().map(|name| {
            let known = Algorithm::parse(name);
            known.ok_or_else(|| Error::Mode(format!("oidc: unsupported signing alg: {name:?}")))
        });
        let algorithms = algorithms.collect::<Result<Vec<_>, _>>()?;
        let mut reader = Reader { disallowed, ..Reader::default() };
        let found = reader.issuer(&authenticator, &Path::new("jwt").index(0));
        let found = found.filter(|_| reader.errors.is_empty());
        let mut issuer = found.ok_or_else(|| invalid(&reader.errors))?;
        issuer.algorithms = algorithms;
        Ok(issuer)
    }
}

impl Configuration {
    /// Parses an AuthenticationConfiguration; `disallowed` are the issuers of service account
    /// tokens.
    ///
    /// # Errors
    /// The errors, with upstream's texts.
    pub fn read(file: &Value, disallowed: &[String]) -> Result<Self, Error> {
        let text = |member: &str| file.str_at(&[member]).unwrap_or_default();
        if text("kind") != KIND || !VERSIONS.contains(&text("apiVersion")) {
            let (kind, version) = (text("kind"), text("apiVersion"));
            let why = format!("no kind {kind:?} is registered for version {version:?}");
            return Err(Error::Mode(why));
        }
        let mut reader = Reader { disallowed, ..Reader::default() };
        reader.only(
            file,
            &Path::root(),
            &[
                ("apiVersion", Shape::Text),
                ("kind", Shape::Text),
                ("jwt", Shape::Objects),
                ("anonymous", Shape::Object),
            ],
        );
        let issuers = reader.issuers(file);
        let anonymous = reader.anonymous(file);
        if !reader.malformed.is_empty() {
            return Err(Error::Mode(reader.malformed.join(", ")));
        }
        if !reader.unknown.is_empty() {
            let unknown = reader.unknown.join(", ");
            return Err(Error::Mode(format!("strict decoding error: {unknown}")));
        }
        if !reader.errors.is_empty() {
            return Err(invalid(&reader.errors));
        }
        Ok(Self { issuers, anonymous })
    }
}

fn invalid(errors: &[field::Error]) -> Error {
    Error::Mode(format!("invalid authentication configuration: {}", field::aggregate(errors)))
}

//! AuthenticationConfiguration, and the flags `--oidc-…`, which are equivalent to one issuer.

use std::collections::BTreeMap;

use pintle_cel::Url;
use pintle_meta::field::{self, Errors};
use pintle_meta::{User, validation};
use pintle_value::{Map, Path, Value};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use super::keys::{Algorithm, KeySet};
use super::mapping::{self, Input, Mapping, Rule, Source};
use super::token::{Demands, Signing, WebToken};
use crate::Error;

/// The supported versions of the file. They do not differ.
const VERSIONS: [&str; 3] = [
    "apiserver.config.k8s.io/v1",
    "apiserver.config.k8s.io/v1beta1",
    "apiserver.config.k8s.io/v1alpha1",
];
const KIND: &str = "AuthenticationConfiguration";
/// The maximum number of issuers.
const ISSUERS_MAX: usize = 64;

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

/// Parses a configuration and collects its errors.
#[derive(Default)]
struct Reader<'c> {
    disallowed: &'c [String],
    unknown: Vec<String>,
    /// Members of a wrong type.
    malformed: Vec<String>,
    errors: Errors,
}

/// The type of a member.
#[derive(Clone, Copy)]
enum Shape {
    Text,
    Texts,
    Bool,
    Object,
    Objects,
}

impl Shape {
    fn fits(self, value: &Value) -> bool {
        let all =
            |fits: fn(&Value) -> bool| value.as_array().is_some_and(|all| all.iter().all(fits));
        match self {
            Self::Text => value.as_str().is_some(),
            Self::Texts => all(|one| one.as_str().is_some()),
            Self::Bool => value.as_bool().is_some(),
            Self::Object => value.as_object().is_some(),
            Self::Objects => all(|one| one.as_object().is_some()),
        }
    }

    const fn noun(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Texts => "a list of strings",
            Self::Bool => "true or false",
            Self::Object => "an object",
            Self::Objects => "a list of objects",
        }
    }
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value.str_at(&[member]).unwrap_or_default()
}

fn list<'v>(value: &'v Value, member: &str) -> &'v [Value] {
    value.get(member).and_then(Value::as_array).unwrap_or_default()
}

impl Reader<'_> {
    /// Reports unknown members and wrong types.
    fn only(&mut self, value: &Value, at: &Path, known: &[(&str, Shape)]) {
        let Some(members) = value.as_object() else {
            return self.malformed.push(format!("{} must be an object", at.as_str()));
        };
        for (name, value) in members.iter() {
            let at = at.field(name);
            match known.iter().find(|(known, _)| known == name) {
                None => self.unknown.push(format!("unknown field {:?}", at.as_str())),
                Some((_, shape)) if value.is_null() || shape.fits(value) => {}
                Some((_, shape)) => {
                    self.malformed.push(format!("{} must be {}", at.as_str(), shape.noun()));
                }
            }
        }
    }

    fn invalid(&mut self, at: &Path, value: &str, why: impl Into<String>) {
        self.errors.push(field::Error::invalid(at, &value.into(), why));
    }

    fn required(&mut self, at: &Path, why: &str) {
        self.errors.push(field::Error::required(at, why));
    }

    fn duplicate(&mut self, at: &Path, value: &str) {
        self.errors.push(field::Error::duplicate(at, &value.into()));
    }

    fn issuers(&mut self, file: &Value) -> Vec<Issuer> {
        let at = Path::new("jwt");
        let listed = list(file, "jwt");
        if listed.len() > ISSUERS_MAX {
            self.errors.push(field::Error::too_many(&at, listed.len(), ISSUERS_MAX));
            return Vec::new();
        }
        let mut all: Vec<Issuer> = Vec::new();
        for (index, one) in listed.iter().enumerate() {
            let at = at.index(index);
            let known = [
                ("issuer", Shape::Object),
                ("claimValidationRules", Shape::Objects),
                ("claimMappings", Shape::Object),
                ("userValidationRules", Shape::Objects),
            ];
            self.only(one, &at, &known);
            let Some(issuer) = self.issuer(one, &at) else { continue };
            if all.iter().any(|other| other.url == issuer.url) {
                self.duplicate(&at.field("issuer").field("url"), &issuer.url);
            }
            let discovery_url = issuer.discovery_url.as_deref();
            if let Some(url) = discovery_url
                && all.iter().any(|other| other.discovery_url.as_deref() == discovery_url)
            {
                self.duplicate(&at.field("issuer").field("discoveryURL"), url);
            }
            all.push(issuer);
        }
        all
    }

    fn anonymous(&mut self, file: &Value) -> Option<Anonymous> {
        let at = Path::new("anonymous");
        let section = file.get("anonymous").filter(|section| !section.is_null())?;
        self.only(section, &at, &[("enabled", Shape::Bool), ("conditions", Shape::Objects)]);
        let enabled = section.get("enabled").and_then(Value::as_bool) == Some(true);
        let at = at.field("conditions");
        let conditions = list(section, "conditions");
        let mut paths = Vec::new();
        for (index, condition) in conditions.iter().enumerate() {
            self.only(condition, &at.index(index), &[("path", Shape::Text)]);
            paths.push(text(condition, "path").to_owned());
        }
        if !enabled && !paths.is_empty() {
            let why = "enabled should be set to true when conditions are defined";
            // Upstream shows the name of its Go member.
            let shown = paths.iter().map(|path| Value::from([("Path", path.as_str())]));
            let shown = Value::Array(shown.collect());
            self.errors.push(field::Error::invalid(&at, &shown, why));
        }
        Some(Anonymous { enabled, paths })
    }

    fn issuer(&mut self, one: &Value, at: &Path) -> Option<Issuer> {
        let (of_issuer, empty) = (at.field("issuer"), Value::object());
        let section = one.get("issuer").unwrap_or(&empty);
        let known = [
            ("url", Shape::Text),
            ("discoveryURL", Shape::Text),
            ("certificateAuthority", Shape::Text),
            ("audiences", Shape::Texts),
            ("audienceMatchPolicy", Shape::Text),
            ("egressSelectorType", Shape::Text),
        ];
        self.only(section, &of_issuer, &known);
        let (url, discovery_url) = (text(section, "url"), text(section, "discoveryURL"));
        self.urls(url, discovery_url, &of_issuer);
        let audiences = self.audiences(section, &of_issuer);
        let authorities_pem = text(section, "certificateAuthority");
        self.authorities(authorities_pem, &of_issuer.field("certificateAuthority"));
        let egress = self.egress(section, &of_issuer);
        let mut mapping = Mapping::default();
        let mut uses_email_verified = self.claim_rules(one, at, &mut mapping);
        self.mappings(one, at, &mut mapping, &mut uses_email_verified);
        self.user_rules(one, at, &mut mapping);
        Some(Issuer {
            url: url.to_owned(),
            discovery_url: (!discovery_url.is_empty()).then(|| discovery_url.to_owned()),
            authorities_pem: authorities_pem.to_owned(),
            egress,
            audiences,
            algorithms: Algorithm::ALL.map(|(_, algorithm)| algorithm).into(),
            mapping,
        })
    }

    fn urls(&mut self, url: &str, discovery_url: &str, at: &Path) {
        let of_url = at.field("url");
        if url.is_empty() {
            self.required(&of_url, "");
        } else {
            if self.disallowed.iter().any(|other| other == url) {
                let mut all: Vec<&str> = self.disallowed.iter().map(String::as_str).collect();
                all.sort_unstable();
                let all = all.join(" ");
                let why = format!("URL must not overlap with disallowed issuers: [{all}]");
                self.invalid(&of_url, url, why);
            }
            self.url(url, &of_url);
        }
        if discovery_url.is_empty() {
            return;
        }
        let of_discovery = at.field("discoveryURL");
        if !url.is_empty() && url.trim_end_matches('/') == discovery_url.trim_end_matches('/') {
            self.invalid(&of_discovery, discovery_url, "discoveryURL must be different from URL");
        }
        self.url(discovery_url, &of_discovery);
    }

    fn url(&mut self, text: &str, at: &Path) {
        let url = match Url::parse(text) {
            Ok(url) => url,
            Err(why) => return self.invalid(at, text, why),
        };
        let rules = [
            (url.scheme() == "https", "URL scheme must be https"),
            (!url.has_user(), "URL must not contain a username or password"),
            (url.written_query().is_empty(), "URL must not contain a query"),
            (url.fragment().is_empty(), "URL must not contain a fragment"),
        ];
        for (_, why) in rules.into_iter().filter(|(holds, _)| !holds) {
            self.invalid(at, text, why);
        }
    }

    fn audiences(&mut self, section: &Value, at: &Path) -> Vec<String> {
        let of_list = at.field("audiences");
        let mut all: Vec<String> = Vec::new();
        for (index, audience) in list(section, "audiences").iter().enumerate() {
            let audience = audience.as_str().unwrap_or_default();
            if audience.is_empty() {
                self.required(&of_list.index(index), "");
            }
            if all.iter().any(|other| other == audience) {
                self.duplicate(&of_list.index(index), audience);
            }
            all.push(audience.to_owned());
        }
        if all.is_empty() {
            let why = format!("at least one {} is required", of_list.as_str());
            self.required(&of_list, &why);
            return all;
        }
        let policy = text(section, "audienceMatchPolicy");
        let of_policy = at.field("audienceMatchPolicy");
        if all.len() > 1 && policy != "MatchAny" {
            let why = "audienceMatchPolicy must be MatchAny for multiple audiences";
            self.invalid(&of_policy, policy, why);
        } else if !policy.is_empty() && policy != "MatchAny" {
            let why = "audienceMatchPolicy must be empty or MatchAny for single audience";
            self.invalid(&of_policy, policy, why);
        }
        all
    }

    fn authorities(&mut self, pem: &str, at: &Path) {
        let has_one = || CertificateDer::pem_slice_iter(pem.as_bytes()).any(|one| one.is_ok());
        if !pem.is_empty() && !has_one() {
            let why = "data does not contain any valid RSA or ECDSA certificates";
            self.invalid(at, "<omitted>", why);
        }
    }

    fn egress(&mut self, section: &Value, at: &Path) -> Option<Egress> {
        match text(section, "egressSelectorType") {
            "" => None,
            "controlplane" => Some(Egress::ControlPlane),
            "cluster" => Some(Egress::Cluster),
            other => {
                let why = "egress selector must be either controlplane or cluster";
                self.invalid(&at.field("egressSelectorType"), other, why);
                None
            }
        }
    }

    /// Parses the rules for claims. Returns true if one of them uses `claims.email_verified`.
    fn claim_rules(&mut self, one: &Value, at: &Path, mapping: &mut Mapping) -> bool {
        let at = at.field("claimValidationRules");
        let mut uses_email_verified = false;
        let mut seen: Vec<&str> = Vec::new();
        for (index, rule) in list(one, "claimValidationRules").iter().enumerate() {
            let at = at.index(index);
            self.only(
                rule,
                &at,
                &[
                    ("claim", Shape::Text),
                    ("requiredValue", Shape::Text),
                    ("expression", Shape::Text),
                    ("message", Shape::Text),
                ],
            );
            let (claim, value) = (text(rule, "claim"), text(rule, "requiredValue"));
            let (expression, message) = (text(rule, "expression"), text(rule, "message"));
            match (claim, expression) {
                ("", "") => self.required(&at, "claim or expression is required"),
                (claim, "") => {
                    if !message.is_empty() {
                        let why = "may not be specified when claim is set";
                        self.invalid(&at.field("message"), message, why);
                    }
                    if mapping.required.iter().any(|(other, _)| other == claim) {
                        self.duplicate(&at.field("claim"), claim);
                    }
                    mapping.required.push((claim.to_owned(), value.to_owned()));
                }
                ("", expression) => {
                    if !value.is_empty() {
                        let why = "may not be specified when expression is set";
                        self.invalid(&at.field("requiredValue"), value, why);
                    }
                    let at = at.field("expression");
                    if seen.contains(&expression) {
                        self.duplicate(&at, expression);
                        continue;
                    }
                    seen.push(expression);
                    let rule = self.rule(expression, message, Input::Claims, &at);
                    uses_email_verified |= rule.is_some() && uses(expression, "email_verified");
                    mapping.claim_rules.extend(rule);
                }
                _ => self.invalid(&at, claim, "claim and expression can't both be set"),
            }
        }
        uses_email_verified
    }

    fn user_rules(&mut self, one: &Value, at: &Path, mapping: &mut Mapping) {
        let at = at.field("userValidationRules");
        let mut seen: Vec<&str> = Vec::new();
        for (index, rule) in list(one, "userValidationRules").iter().enumerate() {
            self.only(
                rule,
                &at.index(index),
                &[("expression", Shape::Text), ("message", Shape::Text)],
            );
            let at = at.index(index).field("expression");
            let expression = text(rule, "expression");
            if expression.is_empty() {
                self.required(&at, "");
            } else if seen.contains(&expression) {
                self.duplicate(&at, expression);
            } else {
                seen.push(expression);
                let rule = self.rule(expression, text(rule, "message"), Input::User, &at);
                mapping.user_rules.extend(rule);
            }
        }
    }

    fn rule(&mut self, expression: &str, message: &str, about: Input, at: &Path) -> Option<Rule> {
        match mapping::compile(expression, about, true) {
            Ok(expression) => Some(Rule { expression, message: message.to_owned() }),
            Err(why) => {
                self.invalid(at, expression, why);
                None
            }
        }
    }

    fn mappings(
        &mut self,
        one: &Value,
        at: &Path,
        mapping: &mut Mapping,
        uses_email_verified: &mut bool,
    ) {
        let (at, empty) = (at.field("claimMappings"), Value::object());
        let section = one.get("claimMappings").unwrap_or(&empty);
        self.only(
            section,
            &at,
            &[
                ("username", Shape::Object),
                ("groups", Shape::Object),
                ("uid", Shape::Object),
                ("extra", Shape::Objects),
            ],
        );
        let of = |member: &str| section.get(member).unwrap_or(&empty);
        mapping.username = self.prefixed(of("username"), &at.field("username"), true);
        mapping.groups = self.prefixed(of("groups"), &at.field("groups"), false);
        mapping.uid = self.uid(of("uid"), &at.field("uid"));
        let expression = text(of("username"), "expression");
        *uses_email_verified |= uses(expression, "email_verified");
        for (index, one) in list(section, "extra").iter().enumerate() {
            let expression = text(one, "valueExpression");
            *uses_email_verified |= uses(expression, "email_verified");
            self.extra(one, &at.field("extra").index(index), mapping);
        }
        if uses(expression, "email") && !*uses_email_verified {
            let why = "claims.email_verified must be used in claimMappings.username.expression or \
                       claimMappings.extra[*].valueExpression or \
                       claimValidationRules[*].expression when claims.email is used in \
                       claimMappings.username.expression";
            self.invalid(&at.field("username").field("expression"), expression, why);
        }
    }

    fn prefixed(&mut self, section: &Value, at: &Path, is_required: bool) -> Source {
        self.only(
            section,
            at,
            &[("claim", Shape::Text), ("prefix", Shape::Text), ("expression", Shape::Text)],
        );
        let prefix = section.get("prefix").and_then(Value::as_str);
        match (text(section, "claim"), text(section, "expression")) {
            ("", "") if is_required => self.required(at, "claim or expression is required"),
            ("", "") => {}
            ("", expression) => {
                if let Some(prefix) = prefix {
                    let why = "may not be specified when expression is set";
                    self.invalid(&at.field("prefix"), prefix, why);
                }
                return self.expression(expression, &at.field("expression"));
            }
            (name, "") => match prefix {
                Some(prefix) => {
                    return Source::Claim { name: name.to_owned(), prefix: prefix.to_owned() };
                }
                None => {
                    let why = "prefix is required when claim is set. It can be set to an empty \
                               string to disable prefixing";
                    self.required(&at.field("prefix"), why);
                }
            },
            _ => self.invalid(at, "", "claim and expression can't both be set"),
        }
        Source::None
    }

    fn uid(&mut self, section: &Value, at: &Path) -> Source {
        self.only(section, at, &[("claim", Shape::Text), ("expression", Shape::Text)]);
        match (text(section, "claim"), text(section, "expression")) {
            ("", "") => Source::None,
            ("", expression) => self.expression(expression, &at.field("expression")),
            (name, "") => Source::Claim { name: name.to_owned(), prefix: String::new() },
            _ => {
                self.invalid(at, "", "claim and expression can't both be set");
                Source::None
            }
        }
    }

    fn expression(&mut self, expression: &str, at: &Path) -> Source {
        match mapping::compile(expression, Input::Claims, false) {
            Ok(expression) => Source::Expression(expression),
            Err(why) => {
                self.invalid(at, expression, why);
                Source::None
            }
        }
    }

    fn extra(&mut self, section: &Value, at: &Path, mapping: &mut Mapping) {
        self.only(section, at, &[("key", Shape::Text), ("valueExpression", Shape::Text)]);
        let (key, of_key) = (text(section, "key"), at.field("key"));
        self.errors.extend(validation::domain_prefixed_path(key, &of_key));
        if key != key.to_lowercase() {
            self.invalid(&of_key, key, "must be lowercase");
        }
        let domain = key.split_once('/').map_or("", |(domain, _)| domain);
        let is_below = |parent: &str| {
            domain.strip_suffix(parent).is_some_and(|sub| sub.is_empty() || sub.ends_with('.'))
        };
        if is_below("kubernetes.io") || is_below("k8s.io") {
            let why = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use";
            self.invalid(&of_key, key, why);
        }
        if mapping.extra.iter().any(|(other, _)| other == key) {
            return self.duplicate(&of_key, key);
        }
        let (expression, at) = (text(section, "valueExpression"), at.field("valueExpression"));
        if expression.is_empty() {
            return self.required(&at, "");
        }
        match mapping::compile(expression, Input::Claims, false) {
            Ok(expression) => mapping.extra.push((key.to_owned(), expression)),
            Err(why) => self.invalid(&at, expression, why),
        }
    }
}

/// True if an expression selects the claim.
fn uses(expression: &str, claim: &str) -> bool {
    !expression.is_empty() && pintle_cel::selects(expression, "claims", claim)
}

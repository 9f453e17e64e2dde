//! The reader of an AuthenticationConfiguration: the structure of the file, its issuers with their
//! URLs and audiences, and the settings of anonymous requests. It collects all errors.

use pintle_cel::Url;
use pintle_meta::field::{self, Errors};
use pintle_value::{Path, Value};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use super::{Anonymous, Egress, Issuer};
use crate::jwt::keys::Algorithm;
use crate::jwt::mapping::Mapping;

/// The maximum number of issuers.
const ISSUERS_MAX: usize = 64;

/// Parses a configuration and collects its errors.
#[derive(Default)]
pub(super) struct Reader<'c> {
    pub(super) disallowed: &'c [String],
    pub(super) unknown: Vec<String>,
    /// Members of a wrong type.
    pub(super) malformed: Vec<String>,
    pub(super) errors: Errors,
}

/// The type of a member.
#[derive(Clone, Copy)]
pub(super) enum Shape {
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

pub(super) fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value.str_at(&[member]).unwrap_or_default()
}

pub(super) fn list<'v>(value: &'v Value, member: &str) -> &'v [Value] {
    value.get(member).and_then(Value::as_array).unwrap_or_default()
}

impl Reader<'_> {
    /// Reports unknown members and wrong types.
    pub(super) fn only(&mut self, value: &Value, at: &Path, known: &[(&str, Shape)]) {
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

    pub(super) fn invalid(&mut self, at: &Path, value: &str, why: impl Into<String>) {
        self.errors.push(field::Error::invalid(at, &value.into(), why));
    }

    pub(super) fn required(&mut self, at: &Path, why: &str) {
        self.errors.push(field::Error::required(at, why));
    }

    pub(super) fn duplicate(&mut self, at: &Path, value: &str) {
        self.errors.push(field::Error::duplicate(at, &value.into()));
    }

    pub(super) fn issuers(&mut self, file: &Value) -> Vec<Issuer> {
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

    pub(super) fn anonymous(&mut self, file: &Value) -> Option<Anonymous> {
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

    pub(super) fn issuer(&mut self, one: &Value, at: &Path) -> Option<Issuer> {
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
}

//! The configured authorizers in order, from flags or an AuthorizationConfiguration.

use std::path::{Path as FilePath, PathBuf};
use std::time::Duration;

use pintle_meta::field::{self, Errors};
use pintle_meta::{duration, names};
use pintle_value::{Path, Value};

pub use crate::conditions::Conditions;
use crate::review::ReviewVersion;
use crate::{Decision, Error, Mode};

/// The supported versions of the file. They do not differ.
const VERSIONS: [&str; 3] = [
    "apiserver.config.k8s.io/v1",
    "apiserver.config.k8s.io/v1beta1",
    "apiserver.config.k8s.io/v1alpha1",
];
const KIND: &str = "AuthorizationConfiguration";
/// The maximum timeout of a webhook.
const TIMEOUT_MAX: Duration = Duration::from_secs(30);
/// The maximum number of match conditions of a webhook.
const CONDITIONS_MAX: usize = 64;
/// The default cache time of allow decisions.
pub const AUTHORIZED_TTL: Duration = Duration::from_secs(300);
/// The default cache time of other decisions.
pub const UNAUTHORIZED_TTL: Duration = Duration::from_secs(30);

const WEBHOOK_MEMBERS: [&str; 10] = [
    "authorizedTTL",
    "cacheAuthorizedRequests",
    "cacheUnauthorizedRequests",
    "connectionInfo",
    "failurePolicy",
    "matchConditionSubjectAccessReviewVersion",
    "matchConditions",
    "subjectAccessReviewVersion",
    "timeout",
    "unauthorizedTTL",
];

/// A configured authorizer.
#[derive(Debug)]
pub struct Configured {
    pub mode: Mode,
    /// Its name in metrics.
    pub name: String,
    /// Set for the mode Webhook only.
    pub webhook: Option<Webhook>,
}

/// A configured webhook.
#[derive(Debug)]
pub struct Webhook {
    /// The kubeconfig of the webhook.
    pub kubeconfig: PathBuf,
    pub version: ReviewVersion,
    /// The timeout of a call.
    pub timeout: Duration,
    /// The cache time of allow decisions; zero disables the cache.
    pub authorized_ttl: Duration,
    /// The cache time of other decisions.
    pub unauthorized_ttl: Duration,
    /// The decision if the webhook does not answer or a condition fails.
    pub on_failure: Decision,
    pub conditions: Conditions,
}

impl Configured {
    /// An authorizer that is no webhook.
    pub fn of(mode: Mode) -> Self {
        Self { mode, name: mode.name().to_lowercase(), webhook: None }
    }
}

/// Parses an AuthorizationConfiguration. Besides webhooks it must have all types of `required`.
///
/// # Errors
/// The errors, with upstream's texts.
pub fn read(file: &Value, required: &[Mode]) -> Result<Vec<Configured>, Error> {
    let refuse = |why: String| Err(Error::Mode(why));
    let text = |member: &str| file.str_at(&[member]).unwrap_or_default();
    if text("kind") != KIND || !VERSIONS.contains(&text("apiVersion")) {
        let (kind, version) = (text("kind"), text("apiVersion"));
        return refuse(format!("no kind {kind:?} is registered for version {version:?}"));
    }
    let mut reader = Reader::default();
    reader.only(file, &Path::root(), &["apiVersion", "kind", "authorizers"]);
    let all = reader.authorizers(file);
    if !reader.unknown.is_empty() {
        return refuse(format!("strict decoding error: {}", reader.unknown.join(", ")));
    }
    if !reader.errors.is_empty() {
        return refuse(field::aggregate(&reader.errors));
    }
    check_modes(&all, required)?;
    Ok(all)
}

/// Checks that authorizers other than webhooks have the names of their modes, and that each mode
/// of `required` is there.
fn check_modes(all: &[Configured], required: &[Mode]) -> Result<(), Error> {
    let others = || all.iter().filter(|one| one.webhook.is_none());
    let mut wrong: Vec<String> = others()
        .filter(|one| one.name != one.mode.name().to_lowercase())
        .map(|Configured { mode, name, .. }| {
            let mode = mode.name();
            format!("expected name {} for authorizer {mode} instead of {name}", mode.to_lowercase())
        })
        .collect();
    let is_there = |mode: &Mode| others().any(|one| one.mode == *mode);
    let missing: Vec<_> =
        required.iter().filter(|mode| !is_there(mode)).map(|m| m.name()).collect();
    if !missing.is_empty() {
        wrong.push(format!("missing required types: [{}]", missing.join(" ")));
    }
    match wrong.as_slice() {
        [] => Ok(()),
        [why] => Err(Error::Mode(why.clone())),
        all => Err(Error::Mode(format!("[{}]", all.join(", ")))),
    }
}

/// Collects errors.
#[derive(Default)]
struct Reader {
    unknown: Vec<String>,
    errors: Errors,
}

impl Reader {
    /// Reports unknown members.
    fn only(&mut self, value: &Value, at: &Path, known: &[&str]) {
        let members = value.as_object().into_iter().flat_map(|members| members.keys());
        for name in members.filter(|name| !known.contains(&name.as_str())) {
            self.unknown.push(format!("unknown field {:?}", at.field(name).as_str()));
        }
    }

    fn authorizers(&mut self, file: &Value) -> Vec<Configured> {
        let at = Path::new("authorizers");
        let listed = file.get("authorizers").and_then(Value::as_array).unwrap_or_default();
        if listed.is_empty() {
            let why = "at least one authorization mode must be defined";
            self.errors.push(field::Error::required(&at, why));
        }
        let mut all: Vec<Configured> = Vec::new();
        for (index, one) in listed.iter().enumerate() {
            let at = at.index(index);
            self.only(one, &at, &["type", "name", "webhook"]);
            if let Some(configured) = self.authorizer(one, &at, &all) {
                all.push(configured);
            }
        }
        all
    }

    fn authorizer(&mut self, one: &Value, at: &Path, before: &[Configured]) -> Option<Configured> {
        let text = |member: &str| one.str_at(&[member]).unwrap_or_default();
        let (ty, name) = (text("type"), text("name"));
        let of_type = at.field("type");
        if ty.is_empty() {
            self.errors.push(field::Error::required(&of_type, ""));
            return None;
        }
        let Some(mode) = Mode::ALL.into_iter().find(|mode| mode.name() == ty) else {
            let known = Mode::ALL.map(Mode::name);
            self.errors.push(field::Error::not_supported(&of_type, &ty.into(), &known));
            return None;
        };
        if mode != Mode::Webhook && before.iter().any(|other| other.mode == mode) {
            self.errors.push(field::Error::duplicate(&of_type, &ty.into()));
            return None;
        }
        self.name(name, &at.field("name"), before);
        let webhook = one.get("webhook").filter(|webhook| !webhook.is_null());
        let webhook = match (mode, webhook) {
            (Mode::Webhook, Some(webhook)) => Some(self.webhook(webhook, at)?),
            (Mode::Webhook, None) => {
                let why = "required when type=Webhook";
                self.errors.push(field::Error::required(&at.field("webhook"), why));
                return None;
            }
            (_, Some(_)) => {
                let why = "may only be specified when type=Webhook";
                self.errors.push(field::Error::invalid(
                    &at.field("webhook"),
                    &"non-null".into(),
                    why,
                ));
                None
            }
            (_, None) => None,
        };
        Some(Configured { mode, name: name.to_owned(), webhook })
    }

    fn name(&mut self, name: &str, at: &Path, before: &[Configured]) {
        let wrong = names::dns1123_subdomain(name);
        if name.is_empty() {
            self.errors.push(field::Error::required(at, ""));
        } else if before.iter().any(|other| other.name == name) {
            self.errors.push(field::Error::duplicate(at, &name.into()));
        } else if !wrong.is_empty() {
            let why = format!("authorizer name is invalid: {}", wrong.join(", "));
            self.errors.push(field::Error::invalid(at, &name.into(), why));
        }
    }

    /// Parses a webhook. Validation errors leave `webhook` out of their paths, as upstream's do.
    fn webhook(&mut self, section: &Value, at: &Path) -> Option<Webhook> {
        self.only(section, &at.field("webhook"), &WEBHOOK_MEMBERS);
        let timeout = self.duration(section, at, "timeout", None);
        if timeout > TIMEOUT_MAX {
            let shown = duration::format(i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX));
            let why = "must be > 0s and <= 30s";
            self.errors.push(field::Error::invalid(&at.field("timeout"), &shown.into(), why));
        }
        let authorized_ttl = self.duration(section, at, "authorizedTTL", Some(AUTHORIZED_TTL));
        let unauthorized_ttl =
            self.duration(section, at, "unauthorizedTTL", Some(UNAUTHORIZED_TTL));
        let is_cached = |member| section.get(member).and_then(Value::as_bool) != Some(false);
        let cached_for = |ttl, member| if is_cached(member) { ttl } else { Duration::ZERO };
        let version = self.one_of(section, at, "subjectAccessReviewVersion", &["v1", "v1beta1"]);
        let on_failure = self.one_of(section, at, "failurePolicy", &["NoOpinion", "Deny"]);
        let kubeconfig = self.kubeconfig(section, at);
        let conditions = self.conditions(section, at);
        Some(Webhook {
            kubeconfig: kubeconfig?,
            version: ReviewVersion::parse(&version?)?,
            timeout,
            authorized_ttl: cached_for(authorized_ttl, "cacheAuthorizedRequests"),
            unauthorized_ttl: cached_for(unauthorized_ttl, "cacheUnauthorizedRequests"),
            on_failure: if on_failure? == "Deny" { Decision::Deny } else { Decision::NoOpinion },
            conditions,
        })
    }

    /// Parses a positive duration.
    fn duration(
        &mut self,
        section: &Value,
        at: &Path,
        member: &str,
        usual: Option<Duration>,
    ) -> Duration {
        let at = at.field(member);
        let Some(value) = section.get(member).filter(|value| !value.is_null()) else {
            if usual.is_none() {
                self.errors.push(field::Error::required(&at, ""));
            }
            return usual.unwrap_or_default();
        };
        let nanoseconds = duration::parse(value.as_str().unwrap_or_default());
        match nanoseconds.map(u64::try_from) {
            Ok(Ok(0)) => {
                // Upstream's defaults do not distinguish zero from absent.
                if usual.is_none() {
                    self.errors.push(field::Error::required(&at, ""));
                }
                usual.unwrap_or_default()
            }
            Ok(Ok(nanoseconds)) => Duration::from_nanos(nanoseconds),
            Ok(Err(_)) => {
                self.errors.push(field::Error::invalid(&at, value, "must be > 0s"));
                Duration::ZERO
            }
            Err(why) => {
                self.errors.push(field::Error::invalid(&at, value, why.to_string()));
                Duration::ZERO
            }
        }
    }

    fn one_of(
        &mut self,
        section: &Value,
        at: &Path,
        member: &str,
        known: &[&str],
    ) -> Option<String> {
        let at = at.field(member);
        let value = section.str_at(&[member]).unwrap_or_default();
        if value.is_empty() {
            self.errors.push(field::Error::required(&at, ""));
            return None;
        }
        if !known.contains(&value) {
            self.errors.push(field::Error::not_supported(&at, &value.into(), known));
            return None;
        }
        Some(value.to_owned())
    }

    fn kubeconfig(&mut self, section: &Value, at: &Path) -> Option<PathBuf> {
        let at = at.field("connectionInfo");
        let empty = Value::object();
        let info = section.get("connectionInfo").unwrap_or(&empty);
        self.only(info, &at, &["type", "kubeConfigFile"]);
        let ty = self.one_of(info, &at, "type", &["InClusterConfig", "KubeConfigFile"])?;
        if ty == "InClusterConfig" {
            let why = "this server is the one that such a configuration would ask";
            self.errors.push(field::Error::forbidden(&at.field("type"), why));
            return None;
        }
        let at = at.field("kubeConfigFile");
        let path = info.str_at(&["kubeConfigFile"]).unwrap_or_default();
        if path.is_empty() {
            self.errors.push(field::Error::required(&at, ""));
            return None;
        }
        if !FilePath::new(path).is_absolute() {
            self.errors.push(field::Error::invalid(&at, &path.into(), "must be an absolute path"));
            return None;
        }
        Some(PathBuf::from(path))
    }

    fn conditions(&mut self, section: &Value, at: &Path) -> Conditions {
        let listed = section.get("matchConditions").and_then(Value::as_array).unwrap_or_default();
        let version = "matchConditionSubjectAccessReviewVersion";
        match section.str_at(&[version]).unwrap_or_default() {
            "" if !listed.is_empty() => {
                let why = "required if match conditions are specified";
                self.errors.push(field::Error::required(&at.field(version), why));
            }
            "" | "v1" => {}
            other => {
                let error = field::Error::not_supported(&at.field(version), &other.into(), &["v1"]);
                self.errors.push(error);
            }
        }
        let at = at.field("matchConditions");
        let mut conditions = Conditions::default();
        if listed.len() > CONDITIONS_MAX {
            self.errors.push(field::Error::too_many(&at, listed.len(), CONDITIONS_MAX));
            return conditions;
        }
        let mut seen: Vec<&str> = Vec::new();
        for (index, condition) in listed.iter().enumerate() {
            self.only(condition, &at.index(index), &["expression"]);
            let at = at.index(index).field("expression");
            let expression = condition.str_at(&["expression"]).unwrap_or_default();
            if expression.trim().is_empty() {
                self.errors.push(field::Error::required(&at, ""));
            } else if seen.contains(&expression) {
                self.errors.push(field::Error::duplicate(&at, &expression.into()));
            } else if let Err(why) = conditions.add(expression) {
                self.errors.push(field::Error::invalid(&at, &expression.into(), why));
            }
            seen.push(expression);
        }
        conditions
    }
}

#[cfg(test)]
mod tests;

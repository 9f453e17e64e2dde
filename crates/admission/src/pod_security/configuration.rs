//! The configuration of PodSecurity: defaults for namespaces without labels, and exemptions
//! (upstream: `PodSecurityConfiguration`).

use pintle_meta::{field, names};
use pintle_registry::admission::Attributes;
use pintle_value::{Path, Str, Value};

use super::policy::{Level, Policies, Policy, Version};
use crate::matching::texts;
use crate::strict::{self, Format, MemberType};

const FORMAT: Format = &[
    ("defaults", MemberType::Object),
    ("defaults.enforce", MemberType::Text),
    ("defaults.enforce-version", MemberType::Text),
    ("defaults.audit", MemberType::Text),
    ("defaults.audit-version", MemberType::Text),
    ("defaults.warn", MemberType::Text),
    ("defaults.warn-version", MemberType::Text),
    ("exemptions", MemberType::Object),
    ("exemptions.usernames", MemberType::Texts),
    ("exemptions.namespaces", MemberType::Texts),
    ("exemptions.runtimeClasses", MemberType::Texts),
];

/// The configuration. By default nothing is exempt, and namespaces without labels are privileged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    pub(super) usual: Policies,
    users: Vec<Str>,
    namespaces: Vec<Str>,
    runtime_classes: Vec<Str>,
}

impl Configuration {
    /// Parses a `PodSecurityConfiguration`.
    pub fn read(configuration: &Value) -> Result<Self, String> {
        strict::check(configuration, FORMAT)?;
        let defaults = configuration.get("defaults").unwrap_or(&Value::Null);
        let policy = |mode: &str| {
            let (level, version) = (default_of(defaults, mode), format!("{mode}-version"));
            let wrong = |field: &str, text: &str, why: &str| {
                format!("defaults.{field}: Invalid value: {text:?}: {why}")
            };
            let level = Level::parse(level).ok_or_else(|| {
                wrong(mode, level, "must be one of privileged, baseline, restricted")
            })?;
            let text = match default_of(defaults, &version) {
                "privileged" | "" => "latest",
                text => text,
            };
            let version = Version::parse(text)
                .ok_or_else(|| wrong(&version, text, "must be \"latest\" or \"v1.x\""))?;
            Ok::<Policy, String>(Policy { level, version })
        };
        let exemptions = configuration.get("exemptions").unwrap_or(&Value::Null);
        check_exempt(exemptions)?;
        Ok(Self {
            usual: Policies {
                enforce: policy("enforce")?,
                audit: policy("audit")?,
                warn: policy("warn")?,
            },
            users: texts(exemptions, "usernames"),
            namespaces: texts(exemptions, "namespaces"),
            runtime_classes: texts(exemptions, "runtimeClasses"),
        })
    }

    /// The reason why a pod or template is exempt, with upstream's text; `None` if it is checked.
    pub(super) fn exemption(&self, write: &Attributes<'_>, pod: &Value) -> Option<&'static str> {
        let class = pod.str_at(&["spec", "runtimeClassName"]).unwrap_or_default();
        if self.exempts_namespace(write.namespace) {
            Some("namespace")
        } else if self.users.iter().any(|user| *user == *write.user.name) {
            Some("user")
        } else {
            let is_exempt = self.runtime_classes.iter().any(|exempt| exempt == class);
            is_exempt.then_some("runtimeClass")
        }
    }

    /// Whether the pods of a namespace are exempt.
    pub(super) fn exempts_namespace(&self, namespace: &str) -> bool {
        self.namespaces.iter().any(|exempt| exempt == namespace)
    }
}

/// Returns the reasons why a name is invalid; none if it is valid.
type Rule<'a> = &'a dyn Fn(&str) -> Vec<String>;

/// Refuses invalid and duplicate names of exemptions (upstream: `validateNamespaces` and siblings).
fn check_exempt(exemptions: &Value) -> Result<(), String> {
    let named = |name: &str| {
        if name.is_empty() { vec!["username must not be empty".into()] } else { Vec::new() }
    };
    let rules: [(&str, Rule<'_>); 3] = [
        ("namespaces", &names::dns1123_label),
        ("runtimeClasses", &names::dns1123_subdomain),
        ("usernames", &named),
    ];
    let mut errors = Vec::new();
    for (member, rule) in rules {
        let all = texts(exemptions, member);
        for (index, name) in all.iter().enumerate() {
            let path = Path::new("exemptions").field(member).index(index);
            let (why, value) = (rule(name), Value::from(&**name));
            if !why.is_empty() {
                errors.push(field::Error::invalid(&path, &value, why.join(", ")));
            } else if all[..index].contains(name) {
                errors.push(field::Error::duplicate(&path, &value));
            }
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(field::aggregate(&errors)) }
}

/// A default level or version; privileged if absent.
fn default_of<'a>(defaults: &'a Value, member: &str) -> &'a str {
    match defaults.str_at(&[member]) {
        None | Some("") => "privileged",
        Some(text) => text,
    }
}

//! The policies of a namespace: a level and a version for each mode (enforce, audit, warn), from
//! its labels.

use std::fmt;

use pintle_meta::field;
use pintle_value::{Path, Value};

/// The prefix of the labels.
pub(super) const PREFIX: &str = "pod-security.kubernetes.io/";

/// The level of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Privileged,
    Baseline,
    Restricted,
}

/// The version of a policy: the minor of a `v1.x`, or the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    Minor(i64),
    Latest,
}

/// A policy: `restricted:v1.30`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) level: Level,
    pub(super) version: Version,
}

/// The policies of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policies {
    pub(super) enforce: Policy,
    pub(super) audit: Policy,
    pub(super) warn: Policy,
}

/// The labels of a mode.
struct ModeLabels {
    /// The level, which may be unknown.
    level: Option<Result<Level, Unknown>>,
    version: Option<Version>,
}

struct Unknown;

/// The newest minor release of these standards.
const NEWEST: i64 = 36;

pub(super) const PRIVILEGED: Policy = Policy { level: Level::Privileged, version: Version::Latest };

impl Default for Policies {
    fn default() -> Self {
        Self { enforce: PRIVILEGED, audit: PRIVILEGED, warn: PRIVILEGED }
    }
}

impl Policies {
    /// Parses labels, with `usual` as defaults, and returns their errors. An invalid level is
    /// enforced as `restricted`, and counts as `privileged` for audit and warnings. An invalid
    /// version is `latest` (upstream: `PolicyToEvaluate`).
    pub(super) fn of<'a>(
        usual: Self,
        label: impl Fn(&str) -> Option<&'a str>,
    ) -> (Self, field::Errors) {
        let mut errors = field::Errors::new();
        let [enforced, audited, warned] =
            ["enforce", "audit", "warn"].map(|mode| ModeLabels::of(mode, &label, &mut errors));
        let enforce = enforced.policy(usual.enforce, Level::Restricted);
        let audit = audited.policy(usual.audit, Level::Privileged);
        let mut warn = warned.policy(usual.warn, Level::Privileged);
        // Without a level for warnings, users of workloads are warned by the enforced policy, if a
        // label sets it and it is stricter than the default.
        let follows = warned.level.is_none() && matches!(enforced.level, Some(Ok(_)));
        if follows && enforce.level > warn.level {
            warn.level = enforce.level;
            warn.version = warned.version.unwrap_or(enforce.version);
        }
        (Self { enforce, audit, warn }, errors)
    }

    /// Whether all modes are privileged.
    pub(super) fn are_privileged(&self) -> bool {
        [self.enforce, self.audit, self.warn].into_iter().all(Policy::is_privileged)
    }
}

impl ModeLabels {
    fn of<'a>(
        mode: &str,
        label: &impl Fn(&str) -> Option<&'a str>,
        errors: &mut field::Errors,
    ) -> Self {
        let mut read = |key: String, is_known: &dyn Fn(&str) -> bool, why: &str| {
            let text = label(&key)?;
            if !is_known(text) {
                let path = Path::new("metadata").field("labels").key(&key);
                errors.push(field::Error::invalid(&path, &Value::from(text), why));
            }
            Some(text)
        };
        let level = read(
            format!("{PREFIX}{mode}"),
            &|text| Level::parse(text).is_some(),
            "must be one of privileged, baseline, restricted",
        );
        let version = read(
            format!("{PREFIX}{mode}-version"),
            &|text| Version::parse(text).is_some(),
            "must be \"latest\" or \"v1.x\"",
        );
        Self {
            level: level.map(|text| Level::parse(text).ok_or(Unknown)),
            version: version.map(|text| Version::parse(text).unwrap_or(Version::Latest)),
        }
    }

    fn policy(&self, usual: Policy, unknown: Level) -> Policy {
        let level = match self.level {
            None => usual.level,
            Some(Ok(level)) => level,
            Some(Err(Unknown)) => unknown,
        };
        Policy { level, version: self.version.unwrap_or(usual.version) }
    }
}

impl Policy {
    /// Whether it is privileged.
    pub(super) fn is_privileged(self) -> bool {
        self.level == Level::Privileged
    }

    /// The metric labels of level and version. Versions after [`NEWEST`] are all `future`, and a
    /// privileged policy is always `latest`.
    pub(super) fn labels(self) -> [String; 2] {
        let version = match self.version {
            Version::Minor(minor) if !self.is_privileged() && minor > NEWEST => "future".to_owned(),
            version if !self.is_privileged() => version.to_string(),
            _ => Version::Latest.to_string(),
        };
        [self.level.to_string(), version]
    }
}

impl Level {
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "privileged" => Some(Self::Privileged),
            "baseline" => Some(Self::Baseline),
            "restricted" => Some(Self::Restricted),
            _ => None,
        }
    }
}

impl Version {
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text == "latest" {
            return Some(Self::Latest);
        }
        let minor = text.strip_prefix("v1.")?;
        let is_number = minor.bytes().all(|byte| byte.is_ascii_digit());
        let is_plain = minor == "0" || !minor.starts_with('0');
        minor.parse().ok().filter(|_| is_number && is_plain).map(Self::Minor)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Minor(minor) => write!(f, "v1.{minor}"),
            Self::Latest => f.write_str("latest"),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.level, self.version)
    }
}

//! The configuration of ImagePolicyWebhook (upstream:
//! `plugin/pkg/admission/imagepolicy/config.go`). Its format has no version.

use std::path::PathBuf;
use std::time::Duration;

use pintle_meta::duration;
use pintle_value::Value;

const MINUTE: Duration = Duration::from_secs(60);

/// The configuration of the webhook, of the cache and of failures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImagePolicy {
    /// The kubeconfig with the webhook's address and this server's credentials.
    pub kubeconfig: PathBuf,
    /// The cache time of verdicts that allow.
    allow_ttl: Duration,
    /// The cache time of other verdicts.
    deny_ttl: Duration,
    /// The delay before the first retry.
    pub(super) retry_backoff: Duration,
    /// Whether images may run when the webhook fails.
    pub(super) default_allow: bool,
}

/// A duration member: its unit, bounds and default.
struct Length {
    member: &'static str,
    unit: Duration,
    least: Duration,
    most: Duration,
    default: Duration,
}

const ALLOW_TTL: Length = Length {
    member: "allowTTL",
    unit: Duration::from_secs(1),
    least: Duration::from_secs(1),
    most: MINUTE.saturating_mul(30),
    default: MINUTE.saturating_mul(5),
};
const DENY_TTL: Length =
    Length { member: "denyTTL", default: Duration::from_secs(30), ..ALLOW_TTL };
const RETRY_BACKOFF: Length = Length {
    member: "retryBackoff",
    unit: Duration::from_millis(1),
    least: Duration::from_nanos(1),
    most: MINUTE.saturating_mul(5),
    default: Duration::from_millis(500),
};

impl ImagePolicy {
    /// Reads the configuration.
    ///
    /// # Errors
    /// Describes the first invalid member.
    pub(crate) fn read(configuration: &Value) -> Result<Self, String> {
        const MEMBERS: [&str; 5] =
            ["kubeConfigFile", "allowTTL", "denyTTL", "retryBackoff", "defaultAllow"];
        let policy = configuration.get("imagePolicy").unwrap_or(&Value::Null);
        let members = policy.as_object().into_iter().flat_map(pintle_value::Map::iter);
        if let Some((unknown, _)) =
            members.into_iter().find(|(name, _)| !MEMBERS.contains(&name.as_str()))
        {
            return Err(format!("imagePolicy: unknown field {unknown:?}"));
        }
        let kubeconfig = policy.str_at(&["kubeConfigFile"]).unwrap_or_default();
        if kubeconfig.is_empty() {
            return Err("imagePolicy.kubeConfigFile: Required value".to_owned());
        }
        let default_allow = match policy.get("defaultAllow") {
            None | Some(Value::Null) => false,
            Some(value) => value.as_bool().ok_or("imagePolicy.defaultAllow: must be a boolean")?,
        };
        Ok(Self {
            kubeconfig: kubeconfig.into(),
            retry_backoff: RETRY_BACKOFF.read(policy)?,
            allow_ttl: ALLOW_TTL.read(policy)?,
            deny_ttl: DENY_TTL.read(policy)?,
            default_allow,
        })
    }

    /// The cache time of a verdict.
    pub(super) const fn ttl(&self, allowed: bool) -> Duration {
        if allowed { self.allow_ttl } else { self.deny_ttl }
    }
}

impl Length {
    fn read(&self, policy: &Value) -> Result<Duration, String> {
        let wrong = |why: String| format!("imagePolicy.{}: {why}", self.member);
        let count = match policy.get(self.member) {
            None | Some(Value::Null | Value::Int(0)) => return Ok(self.default),
            Some(Value::Int(-1)) => return Ok(Duration::ZERO),
            Some(Value::Int(count)) => *count,
            Some(_) => return Err(wrong("must be a number".to_owned())),
        };
        let length = u32::try_from(count).ok().map(|count| self.unit.saturating_mul(count));
        let bounds = self.least..=self.most;
        length.filter(|length| bounds.contains(length)).ok_or_else(|| {
            let shown = |length: Duration| {
                duration::format(i64::try_from(length.as_nanos()).unwrap_or(i64::MAX))
            };
            let got = i64::try_from(self.unit.as_nanos()).unwrap_or(1).saturating_mul(count);
            let (least, most, got) = (shown(self.least), shown(self.most), duration::format(got));
            wrong(format!("valid value is between {least} and {most}, got {got}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use pintle_value::yaml;

    use super::*;

    /// Upstream: `plugin/pkg/admission/imagepolicy/config_test.go`.
    #[test]
    fn lengths_have_defaults_and_bounds() {
        let read = |members: &str| {
            let text = format!("imagePolicy: {{kubeConfigFile: k, {members}}}");
            let policy = ImagePolicy::read(&yaml::parse(text.as_bytes()).unwrap())?;
            let seconds = [policy.allow_ttl, policy.deny_ttl, policy.retry_backoff];
            Ok::<_, String>(seconds.map(|length| length.as_secs_f64()))
        };
        assert_eq!(read(""), Ok([300.0, 30.0, 0.5]));
        assert_eq!(
            read("allowTTL: 1, denyTTL: 1800, retryBackoff: 300000"),
            Ok([1.0, 1800.0, 300.0])
        );
        assert_eq!(read("allowTTL: -1, denyTTL: -1"), Ok([0.0, 0.0, 0.5]));
        for (members, expected) in [
            ("allowTTL: 1801", "allowTTL: valid value is between 1s and 30m0s, got 30m1s"),
            ("denyTTL: -2", "denyTTL: valid value is between 1s and 30m0s, got -2s"),
            (
                "retryBackoff: 300001",
                "retryBackoff: valid value is between 1ns and 5m0s, got 5m0.001s",
            ),
            ("allowTTL: x", "allowTTL: must be a number"),
            ("defaultAllow: 1", "defaultAllow: must be a boolean"),
            ("kubeConfig: x", "unknown field \"kubeConfig\""),
        ] {
            let wrong = read(members).unwrap_err();
            let wrong = wrong.trim_start_matches("imagePolicy").trim_start_matches(['.', ':', ' ']);
            assert_eq!(wrong, expected, "{members}");
        }
    }
}

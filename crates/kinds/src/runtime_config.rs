//! `--runtime-config`: which built-in API versions and resources are on (GRP-06 … GRP-10).

use pintle_meta::version;

use crate::emulation::{Emulation, introduced_later};
use crate::features::Features;
use crate::{generated, removed};

/// An error in `--runtime-config`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The key has no known form.
    #[error("runtime-config invalid key {0}")]
    Key(String),
    /// The value is not a boolean.
    #[error("invalid value of {key}: {value}, it must be true or false")]
    Value {
        /// The key.
        key: String,
        /// The value of the key.
        value: String,
    },
    /// The group does not exist.
    #[error("unknown api groups {0}")]
    Group(String),
    /// The group exists, and never had this version.
    #[error("group version {0} that has not been registered")]
    Version(String),
    /// Resources are named in lower case.
    #[error(
        "invalid key {key}: group/version/resource and resource is always lowercase plural, \
         not {resource:?}"
    )]
    Resource {
        /// The key.
        key: String,
        /// The resource in it.
        resource: String,
    },
    /// The resource is newer than the emulated release.
    #[error(
        "cannot enable resource {group_version}, Resource={resource} in runtime-config because it is \
         introduced at 1.{introduced} after the current version 1.{current}. Consider setting \
         --runtime-config-emulation-forward-compatible=true"
    )]
    LaterResource {
        /// Its group and version.
        group_version: String,
        /// The resource.
        resource: String,
        /// The minor release that introduced it.
        introduced: u32,
        /// The minor release that the server acts as.
        current: u32,
    },
    /// All resources of the version are newer than the emulated release.
    #[error(
        "cannot enable version {group_version} in runtime-config because all the resources have been \
         introduced after the current version 1.{current}. Consider setting \
         --runtime-config-emulation-forward-compatible=true"
    )]
    LaterVersion {
        /// The group and version.
        group_version: String,
        /// The minor release that the server acts as.
        current: u32,
    },
    /// No resource would be served.
    #[error("invalid runtime-config with only api/all=false")]
    Nothing,
}

/// The settings that change which built-in APIs are on. By default stable versions are on, and
/// beta, alpha and removed versions are off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeConfig {
    /// `api/all`, `api/ga`, `api/beta`, `api/alpha`, in this order.
    stages: [Option<bool>; STAGES.len()],
    /// `api/legacy`: versions that v1.36 serves no longer.
    legacy: bool,
    /// `group/version`
    versions: Vec<(String, String, bool)>,
    /// `group/version/resource`
    resources: Vec<(String, String, String, bool)>,
    /// The enabled features. A resource of another feature is not served, whatever the flag says.
    features: Features,
    /// The release whose resources are served.
    emulation: Emulation,
}

const STAGES: [&str; 4] = ["api/all", "api/ga", "api/beta", "api/alpha"];

impl RuntimeConfig {
    /// Reads the flag's values; each is a list of `key[=true|false]` with commas between. Of
    /// several settings with the same key the last holds, as in upstream's map.
    pub fn parse<'a>(flags: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        let mut config = Self::default();
        for setting in flags.into_iter().flat_map(|flag| flag.split(',')) {
            let setting = setting.trim();
            if !setting.is_empty() {
                config.set(setting)?;
            }
        }
        let only_all = Self { stages: [Some(false), None, None, None], ..Self::default() };
        if config == only_all { Err(Error::Nothing) } else { Ok(config) }
    }

    /// Returns the configuration with these features.
    #[must_use]
    pub fn with(self, features: Features) -> Self {
        Self { features, ..self }
    }

    /// Returns the configuration for a server that emulates a release.
    #[must_use]
    pub fn emulating(self, emulation: Emulation) -> Self {
        Self { emulation, ..self }
    }

    /// Returns an error if a setting enables a resource that is newer than the emulated release.
    pub fn check(&self) -> Result<(), Error> {
        let current = self.emulation.minor;
        for row in generated::resources() {
            let (group, version, resource) = (row.group, row.version, row.plural);
            let Some(introduced) = introduced_later(self.emulation, group, version, resource)
            else {
                continue;
            };
            if !self.features.bring(group, resource) || self.brings_forward(row) {
                continue;
            }
            let group_version = format!("{group}/{version}");
            if self.setting_of_resource(group, version, resource) == Some(true) {
                let resource = resource.to_owned();
                return Err(Error::LaterResource { group_version, resource, introduced, current });
            }
            let mut of_version = generated::resources().iter().filter(|other| {
                (other.group, other.version) == (group, version)
                    && self.serves(group, version, other.plural, other.on)
            });
            if self.setting_of_version(group, version) == Some(true) && of_version.next().is_none()
            {
                return Err(Error::LaterVersion { group_version, current });
            }
        }
        Ok(())
    }

    /// True if a resource that is newer than the emulated release is served nevertheless.
    fn brings_forward(&self, row: &generated::Resource) -> bool {
        let Emulation { forward_compatible, runtime_config_forward_compatible, .. } =
            self.emulation;
        let is_named = || self.setting(row.group, row.version, row.plural) == Some(true);
        let is_earlier = |other: &&generated::Resource| {
            (other.group, other.plural) == (row.group, row.plural)
                && !other.version.contains("alpha")
                && version::cmp(other.version, row.version).is_gt()
        };
        let mut earlier = generated::resources().iter().filter(is_earlier);
        (runtime_config_forward_compatible && is_named())
            || (forward_compatible
                && !row.version.contains("alpha")
                && earlier.any(|o| self.serves(o.group, o.version, o.plural, o.on)))
    }

    /// Every version of every kind, with all features.
    #[cfg(test)]
    pub(crate) fn everything() -> Self {
        Self { stages: [Some(true), None, None, None], ..Self::default() }
            .with(crate::Feature::ALL.into_iter().collect())
    }

    /// The features that are on.
    pub fn features(&self) -> Features {
        self.features
    }

    fn set(&mut self, setting: &str) -> Result<(), Error> {
        let (key, value) = setting.split_once('=').unwrap_or((setting, "true"));
        let (key, value) = (key.trim(), value.trim());
        let on = truth(value)
            .ok_or_else(|| Error::Value { key: key.to_owned(), value: value.to_owned() })?;
        if let Some(stage) = STAGES.iter().position(|stage| *stage == key) {
            self.stages[stage] = Some(on);
            return Ok(());
        }
        let (group, version, resource) = match *key.split('/').collect::<Vec<_>>() {
            // The core group has no name; its path begins with `api`.
            ["api", "legacy"] => {
                self.legacy = on;
                return Ok(());
            }
            [version] | ["api", version] => ("", version, None),
            ["api", version, resource] => ("", version, Some(resource)),
            [group, version] => (group, version, None),
            [group, version, resource] => (group, version, Some(resource)),
            _ => return Err(Error::Key(key.to_owned())),
        };
        if !knows(group, version)? {
            return Ok(());
        }
        match resource {
            None => self.versions.push((group.to_owned(), version.to_owned(), on)),
            Some(resource) if resource.to_lowercase() != resource => {
                return Err(Error::Resource { key: key.to_owned(), resource: resource.to_owned() });
            }
            Some(resource) => {
                let setting = (group.to_owned(), version.to_owned(), resource.to_owned(), on);
                self.resources.push(setting);
            }
        }
        Ok(())
    }

    /// Whether a resource is served whose default is `on`. The most specific key decides: the
    /// resource, then its version, then the version's stage, then `api/all`.
    pub(crate) fn serves(&self, group: &str, version: &str, resource: &str, on: bool) -> bool {
        let setting = self.setting(group, version, resource);
        let setting = setting.or(self.stages[stage(version)]).or(self.stages[0]);
        if !self.features.bring(group, resource) {
            return false;
        }
        if introduced_later(self.emulation, group, version, resource).is_none() {
            return setting.unwrap_or(on);
        }
        let mut rows = generated::resources().iter();
        let row = rows.find(|r| (r.group, r.version, r.plural) == (group, version, resource));
        setting != Some(false) && row.is_some_and(|row| self.brings_forward(row))
    }

    /// The key that switches a resource off; `None` if no key does.
    pub fn disabling_key(&self, group: &str, version: &str, resource: &str) -> Option<String> {
        let (of_version, stage) = (format!("{group}/{version}"), stage(version));
        let of_resource = format!("{of_version}/{resource}");
        let (key, on) = [
            (of_resource, self.setting_of_resource(group, version, resource)),
            (of_version, self.setting_of_version(group, version)),
            (STAGES[stage].to_owned(), self.stages[stage]),
            (STAGES[0].to_owned(), self.stages[0]),
        ]
        .into_iter()
        .find_map(|(key, setting)| Some((key, setting?)))?;
        (!on).then_some(key)
    }

    /// True if a resource is served in a removed version. Keys for stages such as `api/beta` do
    /// not enable removed versions.
    pub(crate) fn serves_removed(&self, group: &str, version: &str, resource: &str) -> bool {
        self.setting(group, version, resource).unwrap_or(self.legacy)
    }

    /// The value for a resource, or else for its version.
    fn setting(&self, group: &str, version: &str, resource: &str) -> Option<bool> {
        let of_resource = self.setting_of_resource(group, version, resource);
        of_resource.or_else(|| self.setting_of_version(group, version))
    }

    fn setting_of_resource(&self, group: &str, version: &str, resource: &str) -> Option<bool> {
        let mut settings = self.resources.iter().rev();
        let is_it = |(g, v, r, _): &&(String, String, String, bool)| {
            (g.as_str(), v.as_str(), r.as_str()) == (group, version, resource)
        };
        settings.find(is_it).map(|setting| setting.3)
    }

    fn setting_of_version(&self, group: &str, version: &str) -> Option<bool> {
        let mut settings = self.versions.iter().rev();
        let is_it =
            |(g, v, _): &&(String, String, bool)| (g.as_str(), v.as_str()) == (group, version);
        settings.find(is_it).map(|setting| setting.2)
    }
}

/// The stage of a version, in [`STAGES`].
fn stage(version: &str) -> usize {
    if version.contains("alpha") {
        3
    } else if version.contains("beta") {
        2
    } else {
        1
    }
}

/// Parses a boolean as Go does; a key without a value is `true`.
fn truth(value: &str) -> Option<bool> {
    match value {
        "" | "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Groups and versions that upstream's scheme has and v1.36 does not serve: naming one is not an
/// error, and has an effect only if it is a removed version that Pintle has.
const NOT_SERVED: &[(&str, &[&str])] = &[
    ("admission.k8s.io", &["v1", "v1beta1"]),
    ("admissionregistration.k8s.io", &["v1alpha1", "v1beta1"]),
    ("apps", &["v1beta1", "v1beta2"]),
    ("authentication.k8s.io", &["v1alpha1", "v1beta1"]),
    ("authorization.k8s.io", &["v1beta1"]),
    ("batch", &["v1beta1"]),
    ("certificates.k8s.io", &["v1alpha1"]),
    ("discovery.k8s.io", &["v1beta1"]),
    ("events.k8s.io", &["v1beta1"]),
    ("extensions", &["v1beta1"]),
    ("flowcontrol.apiserver.k8s.io", &["v1beta1", "v1beta2", "v1beta3"]),
    ("imagepolicy.k8s.io", &["v1alpha1"]),
    ("networking.k8s.io", &["v1beta1"]),
    ("node.k8s.io", &["v1alpha1", "v1beta1"]),
    ("policy", &["v1beta1"]),
    ("rbac.authorization.k8s.io", &["v1alpha1", "v1beta1"]),
    ("scheduling.k8s.io", &["v1beta1"]),
    ("storage.k8s.io", &["v1alpha1", "v1beta1"]),
];

/// Groups of which upstream accepts every version, because other schemes than its main one have
/// them.
const OF_OTHER_SCHEMES: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// Whether a version can be enabled or disabled; an error if it cannot be named.
fn knows(group: &str, version: &str) -> Result<bool, Error> {
    let group_version = || {
        let slash = if group.is_empty() { "" } else { "/" };
        format!("{group}{slash}{version}")
    };
    let of_group = || generated::resources().iter().filter(|row| row.group == group);
    let not_served = NOT_SERVED.iter().find(|(name, _)| *name == group);
    let removed = || removed::all().any(|row| (row.group, row.form.version) == (group, version));
    if of_group().any(|row| row.version == version) || removed() {
        return Ok(true);
    }
    if not_served.is_some_and(|(_, versions)| versions.contains(&version))
        || OF_OTHER_SCHEMES.contains(&group)
    {
        return Ok(false);
    }
    if not_served.is_none() && of_group().next().is_none() {
        return Err(Error::Group(group_version()));
    }
    Err(Error::Version(group_version()))
}

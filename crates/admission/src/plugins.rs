//! The plugins that run and their order: `--enable-admission-plugins`,
//! `--disable-admission-plugins`, with kube-apiserver's names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_registry::admission::Admission;

use crate::configuration::Configuration;
use crate::declared_features::NodeDeclaredFeatures;
use crate::default_class::{INGRESS, STORAGE};
use crate::event_rate::EventRateLimit;
use crate::image_policy::ImagePolicy;
use crate::images::AlwaysPullImages;
use crate::limits::LimitRanger;
use crate::measured::Measured;
use crate::measures::Measures;
use crate::node_selector::PodNodeSelector;
use crate::nodes::TaintNodesByCondition;
use crate::permissions::Permissions;
use crate::pod_groups::{JobValidation, WorkloadExists};
use crate::pod_security::PodSecurity;
use crate::policies::{Mutating, Validating};
use crate::priority::Priority;
use crate::quota::ResourceQuota;
use crate::resize::PodResize;
use crate::rows::{self, ALL, Row};
use crate::runtime_class::RuntimeClass;
use crate::storage::{ClaimResize, POD_GROUP_PROTECTION, STORAGE_PROTECTION};
use crate::tolerations::{DefaultTolerationSeconds, ExtendedResourceToleration};
use crate::topology::PodTopologyLabels;
use crate::{NamespaceLifecycle, refusals, service_account};

/// The plugins that run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plugins {
    on: Vec<&'static str>,
    configuration: Configuration,
}

/// The plugins that are accepted and do nothing.
const WITHOUT_EFFECT: [&str; 1] = ["NamespaceAutoProvision"];
/// Protective plugins that are not implemented. If a flag enables one of them, the server refuses
/// to start, instead of running without the protection.
const MISSING: [&str; 1] = ["PodTolerationRestriction"];

/// An unknown plugin, one that is both enabled and disabled (with upstream's text), one that is not
/// implemented, or one without its configuration.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PluginError {
    #[error("--{flag}: plugin {name:?} is unknown; the plugins are {}", all_names())]
    Unknown { flag: &'static str, name: String },
    #[error("[{0}] in --{ENABLE} and --{DISABLE} overlapped")]
    Both(String),
    #[error(
        "--{ENABLE}: plugin {0:?} is not implemented yet; remove it to start the server without its \
         protection"
    )]
    Missing(&'static str),
    #[error(
        "--{ENABLE}: couldn't init admission plugin {name:?}: {why}; configure it in --admission-control-config-file"
    )]
    Unconfigured { name: &'static str, why: &'static str },
}

const ENABLE: &str = "enable-admission-plugins";
const DISABLE: &str = "disable-admission-plugins";

/// The names of all plugins, for an error.
fn all_names() -> String {
    let mut names: Vec<&str> = ALL.iter().map(|row| row.name).collect();
    names.sort_unstable();
    names.join(", ")
}

impl Default for Plugins {
    fn default() -> Self {
        let on = ALL.iter().filter(|row| row.usual).map(|row| row.name).collect();
        Self { on, configuration: Configuration::default() }
    }
}

impl Plugins {
    /// The default plugins, with enabled ones and without disabled ones.
    pub fn parse<'a>(
        on: impl IntoIterator<Item = &'a str>,
        off: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, PluginError> {
        let (on, off) = (known(ENABLE, on)?, known(DISABLE, off)?);
        if let Some(missing) = on.iter().find(|name| MISSING.contains(name)) {
            return Err(PluginError::Missing(missing));
        }
        let mut both: Vec<&str> = on.iter().copied().filter(|name| off.contains(name)).collect();
        if !both.is_empty() {
            both.sort_unstable();
            return Err(PluginError::Both(both.join(" ")));
        }
        let runs = |row: &&Row| on.contains(&row.name) || (row.usual && !off.contains(&row.name));
        let on = ALL.iter().filter(runs).map(|row| row.name).collect();
        Ok(Self { on, configuration: Configuration::default() })
    }

    /// Adds the configuration.
    ///
    /// # Errors
    /// An enabled plugin lacks a required configuration.
    pub fn configured(self, configuration: Configuration) -> Result<Self, PluginError> {
        let lacks = |name, why| Err(PluginError::Unconfigured { name, why });
        if self.has("EventRateLimit") && configuration.event_limits.is_empty() {
            return lacks("EventRateLimit", "limits: Invalid value: null: must not be empty");
        }
        if self.has("ImagePolicyWebhook") && configuration.image_policy.is_none() {
            return lacks("ImagePolicyWebhook", "no config specified");
        }
        Ok(Self { configuration, ..self })
    }

    /// The configuration of ImagePolicyWebhook, if the plugin is enabled.
    pub fn image_policy(&self) -> Option<&ImagePolicy> {
        self.configuration.image_policy.as_ref().filter(|_| self.has("ImagePolicyWebhook"))
    }

    /// The kubeconfig with the credentials for the webhooks of MutatingAdmissionWebhook or
    /// ValidatingAdmissionWebhook, if the plugin is enabled and has one.
    pub fn webhook_kubeconfig(&self, plugin: &str) -> Option<&Path> {
        let kubeconfig = self.configuration.webhook_kubeconfigs.get(plugin);
        kubeconfig.filter(|_| self.has(plugin)).map(PathBuf::as_path)
    }

    /// The names of plugins that are accepted and do nothing, for a warning.
    pub fn without_effect<'a>(
        names: impl IntoIterator<Item = &'a str>,
    ) -> impl Iterator<Item = &'a str> {
        names.into_iter().filter(|name| WITHOUT_EFFECT.contains(name))
    }

    /// Whether a plugin runs.
    pub fn has(&self, name: &str) -> bool {
        self.on.contains(&name)
    }

    /// The enabled plugins in order: those of this crate, and `others` by name. Policies authorize
    /// users with `permissions`. The plugins that call webhooks are made by `Webhooks::measured`
    /// instead.
    pub fn in_order(
        &self,
        entropy: fn(&mut [u8]),
        permissions: &Arc<dyn Permissions>,
        measures: &Arc<Measures>,
        others: impl IntoIterator<Item = (&'static str, Box<dyn Admission>)>,
    ) -> impl Iterator<Item = Box<dyn Admission>> {
        let configuration = self.configuration.pod_security.clone();
        let pod_security = PodSecurity { configuration, measures: measures.clone() };
        let event_rate = EventRateLimit::new(&self.configuration.event_limits);
        let own: [(&str, Box<dyn Admission>); 29] = [
            ("NamespaceLifecycle", Box::new(NamespaceLifecycle)),
            ("NamespaceExists", Box::new(refusals::NAMESPACE_EXISTS)),
            ("LimitPodHardAntiAffinityTopology", Box::new(refusals::LIMIT_ANTI_AFFINITY)),
            ("LimitRanger", Box::new(LimitRanger::default())),
            ("ServiceAccount", Box::new(service_account::ServiceAccount { entropy })),
            ("TaintNodesByCondition", Box::new(TaintNodesByCondition)),
            ("AlwaysPullImages", Box::new(AlwaysPullImages)),
            ("PodNodeSelector", Box::new(PodNodeSelector)),
            ("PodSecurity", Box::new(pod_security)),
            ("Priority", Box::new(Priority::default())),
            ("DefaultTolerationSeconds", Box::new(DefaultTolerationSeconds)),
            ("EventRateLimit", Box::new(event_rate)),
            ("ExtendedResourceToleration", Box::new(ExtendedResourceToleration)),
            ("DefaultStorageClass", Box::new(STORAGE)),
            ("StorageObjectInUseProtection", Box::new(STORAGE_PROTECTION)),
            ("PodGroupProtection", Box::new(POD_GROUP_PROTECTION)),
            ("PersistentVolumeClaimResize", Box::new(ClaimResize)),
            ("RuntimeClass", Box::new(RuntimeClass)),
            ("DefaultIngressClass", Box::new(INGRESS)),
            ("DenyServiceExternalIPs", Box::new(refusals::DENY_EXTERNAL_IPS)),
            ("PodTopologyLabels", Box::new(PodTopologyLabels)),
            ("PodGroupWorkloadExists", Box::new(WorkloadExists)),
            ("NodeDeclaredFeatureValidator", Box::new(NodeDeclaredFeatures)),
            ("JobValidation", Box::new(JobValidation)),
            ("PodResizeValidator", Box::new(PodResize)),
            (
                "MutatingAdmissionPolicy",
                Box::new(Mutating::new(permissions.clone(), measures.clone())),
            ),
            (
                "ValidatingAdmissionPolicy",
                Box::new(Validating::new(permissions.clone(), measures.clone())),
            ),
            (
                "ResourceQuota",
                Box::new(ResourceQuota::new(self.configuration.limited_resources.clone())),
            ),
            ("AlwaysDeny", Box::new(refusals::ALWAYS_DENY)),
        ];
        let all = own.into_iter().chain(others);
        let known =
            all.map(|(name, plugin)| (rows::row(name).expect("each plugin has a row"), plugin));
        let mut plugins: Vec<_> = known.filter(|(row, _)| self.has(row.name)).collect();
        plugins.sort_by_key(|(row, _)| row.index());
        let measures = measures.clone();
        plugins.into_iter().map(move |(row, plugin)| -> Box<dyn Admission> {
            Box::new(Measured::new(row, plugin, &measures))
        })
    }
}

fn known<'a>(
    flag: &'static str,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<&'static str>, PluginError> {
    let names = names.into_iter().map(str::trim).filter(|name| !name.is_empty());
    let find = |name: &str| {
        let unknown = || PluginError::Unknown { flag, name: name.to_owned() };
        rows::row(name).map(|row| row.name).ok_or_else(unknown)
    };
    names.map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_change_the_default_plugins() {
        let usual = Plugins::default();
        assert!(usual.has("ServiceAccount") && !usual.has("AlwaysPullImages"));
        let changed = Plugins::parse(["AlwaysPullImages", ""], ["ServiceAccount"]).unwrap();
        assert!(!changed.has("ServiceAccount") && changed.has("AlwaysPullImages"));
        assert_eq!(Plugins::parse([], []), Ok(usual));
    }

    #[test]
    fn unknown_and_contradictory_names_are_refused() {
        for (on, off, expected) in [
            (
                &["Nothing"][..],
                &[][..],
                "--enable-admission-plugins: plugin \"Nothing\" is unknown; the plugins are Always",
            ),
            (
                &[],
                &["Nothing"],
                "--disable-admission-plugins: plugin \"Nothing\" is unknown; the plugins are Always",
            ),
            (
                &["Priority", "LimitRanger"],
                &["LimitRanger", "Priority"],
                "[LimitRanger Priority] in --enable-admission-plugins and --disable-admission-plugins \
                 overlapped",
            ),
        ] {
            let refused = Plugins::parse(on.iter().copied(), off.iter().copied());
            let why = refused.expect_err("refused").to_string();
            assert!(why.starts_with(expected), "{why}");
        }
    }

    #[test]
    fn plugins_without_effect_are_listed() {
        assert!(WITHOUT_EFFECT.iter().all(|name| rows::row(name).is_some()));
        let enabled = ["AlwaysPullImages", "NamespaceAutoProvision"];
        assert_eq!(Plugins::without_effect(enabled).collect::<Vec<_>>(), WITHOUT_EFFECT);
    }

    #[test]
    fn a_plugin_without_its_required_configuration_is_refused() {
        for (name, expected) in [
            ("EventRateLimit", "limits: Invalid value: null: must not be empty"),
            ("ImagePolicyWebhook", "no config specified"),
        ] {
            let configured =
                Plugins::parse([name], []).unwrap().configured(Configuration::default());
            let refusal = configured.unwrap_err().to_string();
            assert!(refusal.contains(&format!("plugin {name:?}: {expected};")), "{refusal}");
        }
        let usual = Plugins::default();
        assert_eq!(usual.clone().configured(Configuration::default()), Ok(usual));
    }

    #[test]
    fn plugins_that_are_not_implemented_are_refused() {
        for name in MISSING {
            assert_eq!(Plugins::parse([name], []), Err(PluginError::Missing(name)));
            assert!(Plugins::parse([], [name]).is_ok(), "{name}");
        }
    }
}

//! Which plugins run, and in which order: `--enable-admission-plugins`, `--disable-admission-plugins`, with
//! kube-apiserver's names.

use std::sync::Arc;

use pintle_registry::admission::Admission;

use crate::configuration::Configuration;
use crate::declared_features::NodeDeclaredFeatures;
use crate::default_class::{INGRESS, STORAGE};
use crate::images::AlwaysPullImages;
use crate::limits::LimitRanger;
use crate::measures::Measures;
use crate::node_selector::PodNodeSelector;
use crate::nodes::TaintNodesByCondition;
use crate::permissions::Permissions;
use crate::pod_security::PodSecurity;
use crate::policies::{Mutating, Validating};
use crate::priority::Priority;
use crate::quota::ResourceQuota;
use crate::resize::PodResize;
use crate::runtime_class::RuntimeClass;
use crate::storage::{ClaimResize, StorageObjectInUseProtection};
use crate::tolerations::{DefaultTolerationSeconds, ExtendedResourceToleration};
use crate::topology::PodTopologyLabels;
use crate::{NamespaceLifecycle, refusals, service_account};

/// All plugins in upstream's order; whether one runs if nothing is said of it.
const ALL: &[(&str, bool)] = &[
    ("AlwaysAdmit", false),
    ("NamespaceAutoProvision", false),
    ("NamespaceLifecycle", true),
    ("NamespaceExists", false),
    ("LimitPodHardAntiAffinityTopology", false),
    ("LimitRanger", true),
    ("ServiceAccount", true),
    ("NodeRestriction", false),
    ("TaintNodesByCondition", true),
    ("AlwaysPullImages", false),
    ("ImagePolicyWebhook", false),
    ("PodSecurity", true),
    ("PodNodeSelector", false),
    ("Priority", true),
    ("DefaultTolerationSeconds", true),
    ("PodTolerationRestriction", false),
    ("EventRateLimit", false),
    ("ExtendedResourceToleration", false),
    ("DefaultStorageClass", true),
    ("StorageObjectInUseProtection", true),
    ("PodGroupProtection", true),
    ("OwnerReferencesPermissionEnforcement", false),
    ("PersistentVolumeClaimResize", true),
    ("RuntimeClass", true),
    ("CertificateApproval", true),
    ("CertificateSigning", true),
    ("ClusterTrustBundleAttest", true),
    ("CertificateSubjectRestriction", true),
    ("DefaultIngressClass", true),
    ("DenyServiceExternalIPs", false),
    ("PodTopologyLabels", true),
    ("PodGroupWorkloadExists", true),
    ("NodeDeclaredFeatureValidator", true),
    ("JobValidation", true),
    ("PodResizeValidator", true),
    ("MutatingAdmissionPolicy", true),
    ("MutatingAdmissionWebhook", true),
    ("ValidatingAdmissionPolicy", true),
    ("ValidatingAdmissionWebhook", true),
    ("ResourceQuota", true),
    ("AlwaysDeny", false),
];

/// The plugins that run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plugins {
    on: Vec<&'static str>,
    configuration: Configuration,
}

/// Those whose names are known here, and nothing more.
const WITHOUT_EFFECT: [&str; 4] =
    ["NamespaceAutoProvision", "PodGroupProtection", "PodGroupWorkloadExists", "JobValidation"];
/// Those that would refuse what somebody is to be protected from, and that are not here: who asks for one
/// must not believe that it runs.
const MISSING: [&str; 3] = ["ImagePolicyWebhook", "PodTolerationRestriction", "EventRateLimit"];

/// A name that no plugin has, or that is both switched on and off, in upstream's words; or a plugin that is
/// missing here.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum UnknownPlugin {
    #[error("{flag} plugin {name:?} is unknown")]
    Unknown { flag: &'static str, name: String },
    #[error("[{0}] in {ENABLE} and {DISABLE} overlapped")]
    Both(String),
    #[error(
        "{ENABLE} plugin {0:?} is not implemented yet, so that what it is to protect would not be \
         protected; leave it out to start without that protection"
    )]
    Missing(&'static str),
}

const ENABLE: &str = "enable-admission-plugins";
const DISABLE: &str = "disable-admission-plugins";

impl Default for Plugins {
    fn default() -> Self {
        let on = ALL.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
        Self { on, configuration: Configuration::default() }
    }
}

impl Plugins {
    /// The usual ones, with those that are switched on and without those that are switched off.
    pub fn parse<'a>(
        on: impl IntoIterator<Item = &'a str>,
        off: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, UnknownPlugin> {
        let (on, off) = (known(ENABLE, on)?, known(DISABLE, off)?);
        if let Some(missing) = on.iter().find(|name| MISSING.contains(name)) {
            return Err(UnknownPlugin::Missing(missing));
        }
        let mut both: Vec<&str> = on.iter().copied().filter(|name| off.contains(name)).collect();
        if !both.is_empty() {
            both.sort_unstable();
            return Err(UnknownPlugin::Both(both.join(" ")));
        }
        let runs =
            |(name, usual): &(&str, bool)| on.contains(name) || (*usual && !off.contains(name));
        let on = ALL.iter().filter(|plugin| runs(plugin)).map(|(name, _)| *name).collect();
        Ok(Self { on, configuration: Configuration::default() })
    }

    /// The same plugins, told this.
    #[must_use]
    pub fn told(self, configuration: Configuration) -> Self {
        Self { configuration, ..self }
    }

    /// Those of the names of plugins that are known and change nothing here: who asks for one must hear it.
    pub fn without_effect<'a>(
        names: impl IntoIterator<Item = &'a str>,
    ) -> impl Iterator<Item = &'a str> {
        names.into_iter().filter(|name| WITHOUT_EFFECT.contains(name))
    }

    /// Whether a plugin runs.
    pub fn has(&self, name: &str) -> bool {
        self.on.contains(&name)
    }

    /// Those that run, in their order: those of this crate, and `others` by their names. Policies ask
    /// `permissions` what users may do. Webhooks are not among them.
    pub fn in_order(
        &self,
        entropy: fn(&mut [u8]),
        permissions: &Arc<dyn Permissions>,
        measures: &Arc<Measures>,
        others: impl IntoIterator<Item = (&'static str, Box<dyn Admission>)>,
    ) -> impl Iterator<Item = Box<dyn Admission>> {
        let own: [(&str, Box<dyn Admission>); 25] = [
            ("NamespaceLifecycle", Box::new(NamespaceLifecycle)),
            ("NamespaceExists", Box::new(refusals::NAMESPACE_EXISTS)),
            ("LimitPodHardAntiAffinityTopology", Box::new(refusals::LIMIT_ANTI_AFFINITY)),
            ("LimitRanger", Box::new(LimitRanger::default())),
            ("ServiceAccount", Box::new(service_account::ServiceAccount { entropy })),
            ("TaintNodesByCondition", Box::new(TaintNodesByCondition)),
            ("AlwaysPullImages", Box::new(AlwaysPullImages)),
            ("PodNodeSelector", Box::new(PodNodeSelector)),
            ("PodSecurity", Box::new(PodSecurity(self.configuration.pod_security.clone()))),
            ("Priority", Box::new(Priority::default())),
            ("DefaultTolerationSeconds", Box::new(DefaultTolerationSeconds)),
            ("ExtendedResourceToleration", Box::new(ExtendedResourceToleration)),
            ("DefaultStorageClass", Box::new(STORAGE)),
            ("StorageObjectInUseProtection", Box::new(StorageObjectInUseProtection)),
            ("PersistentVolumeClaimResize", Box::new(ClaimResize)),
            ("RuntimeClass", Box::new(RuntimeClass)),
            ("DefaultIngressClass", Box::new(INGRESS)),
            ("DenyServiceExternalIPs", Box::new(refusals::DENY_EXTERNAL_IPS)),
            ("PodTopologyLabels", Box::new(PodTopologyLabels)),
            ("NodeDeclaredFeatureValidator", Box::new(NodeDeclaredFeatures)),
            ("PodResizeValidator", Box::new(PodResize)),
            (
                "MutatingAdmissionPolicy",
                Box::new(Mutating::new(permissions.clone(), measures.clone())),
            ),
            (
                "ValidatingAdmissionPolicy",
                Box::new(Validating::new(permissions.clone(), measures.clone())),
            ),
            ("ResourceQuota", Box::new(ResourceQuota::new(self.configuration.limited.clone()))),
            ("AlwaysDeny", Box::new(refusals::ALWAYS_DENY)),
        ];
        let mut plugins: Vec<_> = own.into_iter().chain(others).collect();
        plugins.retain(|(name, _)| self.has(name));
        plugins.sort_by_key(|(name, _)| ALL.iter().position(|(known, _)| known == name));
        plugins.into_iter().map(|(_, plugin)| plugin)
    }
}

fn known<'a>(
    flag: &'static str,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<&'static str>, UnknownPlugin> {
    let names = names.into_iter().map(str::trim).filter(|name| !name.is_empty());
    let find = |name: &str| {
        let found = ALL.iter().find(|(known, _)| *known == name);
        let unknown = || UnknownPlugin::Unknown { flag, name: name.to_owned() };
        found.map(|(known, _)| *known).ok_or_else(unknown)
    };
    names.map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_counts() {
        let usual = Plugins::default();
        assert!(usual.has("ServiceAccount") && !usual.has("AlwaysPullImages"));
        let changed = Plugins::parse(["AlwaysPullImages", ""], ["ServiceAccount"]).unwrap();
        assert!(!changed.has("ServiceAccount") && changed.has("AlwaysPullImages"));
        assert_eq!(Plugins::parse([], []), Ok(usual));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (on, off, expected) in [
            (&["Nothing"][..], &[][..], "enable-admission-plugins plugin \"Nothing\" is unknown"),
            (&[], &["Nothing"], "disable-admission-plugins plugin \"Nothing\" is unknown"),
            (
                &["Priority", "LimitRanger"],
                &["LimitRanger", "Priority"],
                "[LimitRanger Priority] in enable-admission-plugins and disable-admission-plugins \
                 overlapped",
            ),
        ] {
            let refused = Plugins::parse(on.iter().copied(), off.iter().copied());
            assert_eq!(refused.map_err(|why| why.to_string()), Err(expected.to_owned()));
        }
    }

    #[test]
    fn who_asks_for_what_does_nothing_hears_of_it() {
        assert!(WITHOUT_EFFECT.iter().all(|name| ALL.iter().any(|(known, _)| known == name)));
        let asked = ["AlwaysPullImages", "JobValidation"];
        assert_eq!(Plugins::without_effect(asked).collect::<Vec<_>>(), ["JobValidation"]);
    }

    /// And so `ImagePolicyWebhook` misses no ephemeral container.
    #[test]
    fn cve_2023_2727_who_asks_for_protection_that_is_missing_is_refused() {
        for name in MISSING {
            assert_eq!(Plugins::parse([name], []), Err(UnknownPlugin::Missing(name)));
            assert!(Plugins::parse([], [name]).is_ok(), "{name}");
        }
    }
}

//! Which plugins run, and in which order: `--enable-admission-plugins`, `--disable-admission-plugins`, with
//! kube-apiserver's names.

use std::fmt;

use pintle_registry::admission::Admission;

use crate::default_class::{INGRESS, STORAGE};
use crate::limits::LimitRanger;
use crate::nodes::TaintNodesByCondition;
use crate::pod_security::PodSecurity;
use crate::priority::Priority;
use crate::quota::ResourceQuota;
use crate::runtime_class::RuntimeClass;
use crate::storage::{ClaimResize, StorageObjectInUseProtection};
use crate::tolerations::DefaultTolerationSeconds;
use crate::{NamespaceLifecycle, service_account};

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
}

/// A name that no plugin has, or that is both switched on and off.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum UnknownPlugin {
    #[error("{0:?} is no admission plugin; there are {Names}")]
    Unknown(String),
    #[error("{0:?} is both switched on and switched off")]
    Both(String),
}

struct Names;

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = ALL.iter().map(|(name, _)| *name).collect();
        f.write_str(&names.join(", "))
    }
}

impl Default for Plugins {
    fn default() -> Self {
        Self { on: ALL.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect() }
    }
}

impl Plugins {
    /// The usual ones, with those that are switched on and without those that are switched off.
    pub fn parse<'a>(
        on: impl IntoIterator<Item = &'a str>,
        off: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, UnknownPlugin> {
        let (on, off) = (known(on)?, known(off)?);
        if let Some(both) = on.iter().find(|name| off.contains(name)) {
            return Err(UnknownPlugin::Both((*both).to_owned()));
        }
        let runs =
            |(name, usual): &(&str, bool)| on.contains(name) || (*usual && !off.contains(name));
        Ok(Self { on: ALL.iter().filter(|plugin| runs(plugin)).map(|(name, _)| *name).collect() })
    }

    /// Whether a plugin runs.
    pub fn has(&self, name: &str) -> bool {
        self.on.contains(&name)
    }

    /// Those that run, in their order: those of this crate, and `others` by their names. Webhooks are not
    /// among them.
    pub fn in_order(
        &self,
        entropy: fn(&mut [u8]),
        others: impl IntoIterator<Item = (&'static str, Box<dyn Admission>)>,
    ) -> impl Iterator<Item = Box<dyn Admission>> {
        let own: [(&str, Box<dyn Admission>); 13] = [
            ("NamespaceLifecycle", Box::new(NamespaceLifecycle)),
            ("LimitRanger", Box::new(LimitRanger::default())),
            ("ServiceAccount", Box::new(service_account::ServiceAccount { entropy })),
            ("TaintNodesByCondition", Box::new(TaintNodesByCondition)),
            ("PodSecurity", Box::new(PodSecurity)),
            ("Priority", Box::new(Priority::default())),
            ("DefaultTolerationSeconds", Box::new(DefaultTolerationSeconds)),
            ("DefaultStorageClass", Box::new(STORAGE)),
            ("StorageObjectInUseProtection", Box::new(StorageObjectInUseProtection)),
            ("PersistentVolumeClaimResize", Box::new(ClaimResize)),
            ("RuntimeClass", Box::new(RuntimeClass)),
            ("DefaultIngressClass", Box::new(INGRESS)),
            ("ResourceQuota", Box::new(ResourceQuota::default())),
        ];
        let mut plugins: Vec<_> = own.into_iter().chain(others).collect();
        plugins.retain(|(name, _)| self.has(name));
        plugins.sort_by_key(|(name, _)| ALL.iter().position(|(known, _)| known == name));
        plugins.into_iter().map(|(_, plugin)| plugin)
    }
}

fn known<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Vec<&'static str>, UnknownPlugin> {
    let names = names.into_iter().map(str::trim).filter(|name| !name.is_empty());
    let find = |name: &str| {
        let found = ALL.iter().find(|(known, _)| *known == name);
        found.map(|(known, _)| *known).ok_or_else(|| UnknownPlugin::Unknown(name.to_owned()))
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
        let unknown = Plugins::parse(["Nothing"], []);
        assert_eq!(unknown, Err(UnknownPlugin::Unknown("Nothing".to_owned())));
        let both = Plugins::parse(["Priority"], ["Priority"]);
        assert_eq!(both, Err(UnknownPlugin::Both("Priority".to_owned())));
    }
}

//! Which controllers run: the flag `--controllers`, with kube-controller-manager's names.

use std::fmt;

/// A controller that can be switched off, so that a kube-controller-manager can run it instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Controller {
    /// Deletes the content of deleted namespaces.
    Namespace,
    /// Deletes objects whose owners are absent.
    GarbageCollector,
    /// Aggregates cluster roles.
    ClusterRoleAggregation,
    /// Creates the default service account of each namespace.
    ServiceAccount,
    /// Publishes the server's root certificates in each namespace.
    RootCa,
    /// Fills token secrets of service accounts.
    ServiceAccountToken,
    /// Approves signing requests of nodes.
    SigningRequestApproving,
    /// Signs approved signing requests.
    SigningRequestSigning,
    /// Deletes old signing requests.
    SigningRequestCleaner,
    /// Deletes finished jobs after their TTL.
    TtlAfterFinished,
    /// Protects persistent volume claims that pods use.
    ClaimProtection,
    /// Protects persistent volumes that are bound.
    VolumeProtection,
    /// Protects volume attributes classes that are in use.
    AttributesClassProtection,
    /// Protects pod groups that have pods.
    PodGroupProtection,
    /// Protects service CIDRs whose addresses are in use.
    ServiceCidr,
    /// Rewrites stored objects in their current form.
    StorageMigration,
    /// Computes the usage of resource quotas.
    ResourceQuota,
    /// Type-checks the expressions of admission policies.
    PolicyStatus,
}

/// All controllers: name, former name, controller.
const ALL: &[(&str, &str, Controller)] = &[
    ("namespace-controller", "namespace", Controller::Namespace),
    ("garbage-collector-controller", "garbagecollector", Controller::GarbageCollector),
    (
        "clusterrole-aggregation-controller",
        "clusterrole-aggregation",
        Controller::ClusterRoleAggregation,
    ),
    ("serviceaccount-controller", "serviceaccount", Controller::ServiceAccount),
    ("root-ca-certificate-publisher-controller", "root-ca-cert-publisher", Controller::RootCa),
    ("serviceaccount-token-controller", "serviceaccount-token", Controller::ServiceAccountToken),
    (
        "certificatesigningrequest-approving-controller",
        "csrapproving",
        Controller::SigningRequestApproving,
    ),
    (
        "certificatesigningrequest-signing-controller",
        "csrsigning",
        Controller::SigningRequestSigning,
    ),
    (
        "certificatesigningrequest-cleaner-controller",
        "csrcleaner",
        Controller::SigningRequestCleaner,
    ),
    ("ttl-after-finished-controller", "ttl-after-finished", Controller::TtlAfterFinished),
    ("persistentvolumeclaim-protection-controller", "pvc-protection", Controller::ClaimProtection),
    ("persistentvolume-protection-controller", "pv-protection", Controller::VolumeProtection),
    (
        "volumeattributesclass-protection-controller",
        "vac-protection",
        Controller::AttributesClassProtection,
    ),
    (
        "podgroup-protection-controller",
        "podgroup-protection-controller",
        Controller::PodGroupProtection,
    ),
    ("service-cidr-controller", "service-cidr-controller", Controller::ServiceCidr),
    (
        "storage-version-migrator-controller",
        "storage-version-migrator-controller",
        Controller::StorageMigration,
    ),
    ("resourcequota-controller", "resourcequota", Controller::ResourceQuota),
    (
        "validatingadmissionpolicy-status-controller",
        "validatingadmissionpolicy-status",
        Controller::PolicyStatus,
    ),
];

/// The controllers that are switched off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    off: Vec<Controller>,
}

/// The error of an unknown controller's name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{name:?} is not a controller; the controllers are {}", Names)]
pub struct UnknownController {
    name: String,
}

struct Names;

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = ALL.iter().map(|(name, ..)| *name).collect();
        f.write_str(&names.join(", "))
    }
}

impl Selection {
    /// Parses items as in `*,-name`: `*` selects all controllers, `name` selects one, and `-name`
    /// deselects one. Without `*`, or with `-*`, only the named ones run. As upstream, the first
    /// mention of a name counts, and it overrides `*`.
    pub fn parse<'a>(items: impl IntoIterator<Item = &'a str>) -> Result<Self, UnknownController> {
        let (mut named, mut all, mut none) = (Vec::new(), false, false);
        for item in items.into_iter().map(str::trim).filter(|item| !item.is_empty()) {
            match item.strip_prefix('-') {
                _ if item == "*" => all = true,
                Some("*") => none = true,
                Some(name) => named.push((find(name)?, false)),
                None => named.push((find(item)?, true)),
            }
        }
        let runs = |controller: Controller| {
            named.iter().find(|(named, _)| *named == controller).map_or(all && !none, |(_, on)| *on)
        };
        let off = ALL.iter().map(|(.., c)| *c).filter(|controller| !runs(*controller)).collect();
        Ok(Self { off })
    }

    /// Whether no controller runs.
    pub fn is_empty(&self) -> bool {
        self.names().next().is_none()
    }

    /// Returns the names of the running controllers.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let on = ALL.iter().filter(|(.., controller)| self.has(*controller));
        on.map(|(name, ..)| *name)
    }

    /// Whether a controller runs.
    pub fn has(&self, controller: Controller) -> bool {
        !self.off.contains(&controller)
    }
}

fn find(name: &str) -> Result<Controller, UnknownController> {
    let found = ALL.iter().find(|(new, old, _)| *new == name || *old == name);
    found.map(|(.., c)| *c).ok_or_else(|| UnknownController { name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(flag: &str, namespace: bool, garbage_collector: bool) {
        let selection = Selection::parse(flag.split(',')).expect(flag);
        let runs = [Controller::Namespace, Controller::GarbageCollector].map(|c| selection.has(c));
        assert_eq!(runs, [namespace, garbage_collector], "{flag}");
    }

    #[test]
    fn controllers_are_chosen_by_name() {
        check("*", true, true);
        check("*,-namespace-controller", false, true);
        check(" * , -garbagecollector", true, false);
        check("garbage-collector-controller", false, true);
        check("-namespace-controller", false, false);
        check("", false, false);
        check("-*", false, false);
        check("-*,namespace-controller", true, false);
        for (flag, expected) in
            [("", true), ("-*", true), ("namespace", false), ("*", false), ("-namespace", true)]
        {
            let selection = Selection::parse(flag.split(',')).expect(flag);
            assert_eq!(selection.is_empty(), expected, "{flag}");
        }
        check("-namespace,*,namespace-controller", false, true);
        check("namespace,-namespace-controller", true, false);
        let wrong = Selection::parse(["*", "-nothing"]).expect_err("no such controller");
        let words = "\"nothing\" is not a controller; the controllers are namespace-controller, garbage-collector";
        assert!(wrong.to_string().starts_with(words), "{wrong}");
    }
}

//! Which controllers run: `--controllers`, with kube-controller-manager's names.

use std::fmt;

/// A controller that can be switched off, for a kube-controller-manager to take its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Controller {
    /// Empties namespaces that are deleted.
    Namespace,
    /// Deletes what has lost its owners.
    GarbageCollector,
    /// Gathers the rules of cluster roles in others.
    ClusterRoleAggregation,
    /// Makes the default service account of each namespace.
    ServiceAccount,
    /// Publishes the server's authority in each namespace.
    RootCa,
    /// Fills secrets with tokens of service accounts.
    ServiceAccountToken,
    /// Approves signing requests of nodes.
    SigningRequestApproving,
    /// Signs requests that are approved.
    SigningRequestSigning,
    /// Deletes old signing requests.
    SigningRequestCleaner,
    /// Deletes jobs some time after they are finished.
    TtlAfterFinished,
    /// Lets claims go that no pod uses.
    ClaimProtection,
    /// Lets volumes go that are not bound.
    VolumeProtection,
    /// Lets classes of volumes' attributes go that nothing is of.
    AttributesClassProtection,
    /// Lets groups of pods go that have no pods.
    PodGroupProtection,
    /// Keeps ranges of addresses as long as addresses of theirs are in use.
    ServiceCidr,
    /// Counts what quotas are about.
    ResourceQuota,
    /// Tells whether the expressions of admission policies fit.
    PolicyStatus,
}

/// All of them: name, the name that it once had, controller.
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

/// A name that no controller has.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{name:?} is no controller; there are {}", Names)]
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
    /// Reads `*,-name`: `*` is all, `name` one, `-name` all but that one. Without `*`, only those that
    /// are named run, with `-*`, too. What names a controller first counts, and outweighs `*`, as upstream has it.
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

    /// Whether none runs.
    pub fn is_empty(&self) -> bool {
        self.names().next().is_none()
    }

    /// The names of those that run.
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
        let words =
            "\"nothing\" is no controller; there are namespace-controller, garbage-collector";
        assert!(wrong.to_string().starts_with(words), "{wrong}");
    }
}

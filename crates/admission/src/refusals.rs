//! Plugins that only refuse writes, disabled by default (upstream: `AlwaysDeny`,
//! `NamespaceExists`, `DenyServiceExternalIPs`, `LimitPodHardAntiAffinityTopology`).

use std::collections::BTreeSet;

use pintle_meta::{GroupResource, GroupVersionResource, Status};
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks};
use pintle_value::{Value, order::Ordered};

use crate::pods::items;
use crate::{forbidden, is_of};

/// A plugin that consists of one check.
pub(crate) struct Refusal(fn(&Attributes<'_>, &Registry) -> Result<(), Status>);

/// `AlwaysDeny`: refuses every write.
pub(crate) const ALWAYS_DENY: Refusal = Refusal(|write, _| {
    let why = "admission control is denying all modifications";
    Err(forbidden(write, write.object.unwrap_or(&Value::Null), why))
});

/// `NamespaceExists`: refuses writes in a namespace that does not exist.
pub(crate) const NAMESPACE_EXISTS: Refusal = Refusal(|write, registry| {
    let name = write.namespace;
    let namespaces = registry.resource(&GroupVersionResource::new("", "v1", "namespaces"));
    match namespaces.and_then(|namespaces| registry.peek(&namespaces, "", name)) {
        _ if name.is_empty() => Ok(()),
        Some(namespace) => Ok(namespace.check()?),
        None => Err(Status::not_found(&GroupResource::new("", "namespaces"), name)),
    }
});

/// `DenyServiceExternalIPs`: refuses new external IPs of services; those that a service has may
/// stay.
pub(crate) const DENY_EXTERNAL_IPS: Refusal = Refusal(|write, _| {
    let Some(service) = write.object.filter(|_| is_of(write, "", "services")) else {
        return Ok(());
    };
    match adds_external_addresses(service, write.old()) {
        true => {
            Err(forbidden(write, service, "Use of external IPs is denied by admission control"))
        }
        false => Ok(()),
    }
});

/// `LimitPodHardAntiAffinityTopology`: refuses required pod anti-affinity with any topology key
/// but the host name.
pub(crate) const LIMIT_ANTI_AFFINITY: Refusal = Refusal(|write, _| {
    let Some(pod) = write.object.filter(|_| is_of(write, "", "pods")) else { return Ok(()) };
    match other_topology(pod) {
        Some(key) => {
            let why = format!(
                "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} but only \
                 key {HOSTNAME} is allowed"
            );
            Err(forbidden(write, pod, &why))
        }
        None => Ok(()),
    }
});

const HOSTNAME: &str = "kubernetes.io/hostname";

impl Admission for Refusal {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::Validate])
    }

    fn validate(&self, write: &Attributes<'_>, registry: &Registry) -> Result<(), Status> {
        (self.0)(write, registry)
    }
}

fn adds_external_addresses(service: &Value, old: Option<&Value>) -> bool {
    let of = |service| items(service, &["spec", "externalIPs"]);
    let had = old.map(of).unwrap_or_default();
    let had: BTreeSet<Ordered<&Value>> = had.iter().map(Ordered).collect();
    of(service).iter().any(|address| !had.contains(&Ordered(address)))
}

fn other_topology(pod: &Value) -> Option<&str> {
    const REQUIRED: [&str; 4] =
        ["spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
    let keys = items(pod, &REQUIRED).iter();
    let mut keys = keys.map(|term| term.str_at(&["topologyKey"]).unwrap_or_default());
    keys.find(|key| *key != HOSTNAME)
}

#[cfg(test)]
mod tests {
    use pintle_value::json;

    use super::*;

    fn tree(text: &str) -> Value {
        json::parse(text.as_bytes()).expect(text)
    }

    #[test]
    fn new_external_ips_are_refused_and_present_ones_are_not() {
        let service =
            |addresses: &str| tree(&format!(r#"{{"spec":{{"externalIPs":{addresses}}}}}"#));
        for (old, new, expected) in [
            (None, "[]", false),
            (None, r#"["1.1.1.1"]"#, true),
            (Some(r#"["1.1.1.1","2.2.2.2"]"#), r#"["2.2.2.2"]"#, false),
            (Some(r#"["1.1.1.1"]"#), r#"["1.1.1.1","2.2.2.2"]"#, true),
        ] {
            let before = old.map(service);
            assert_eq!(adds_external_addresses(&service(new), before.as_ref()), expected, "{new}");
        }
    }

    #[test]
    fn required_anti_affinity_needs_the_host_name_as_its_topology_key() {
        for (key, expected) in [("kubernetes.io/hostname", None), ("zone", Some("zone"))] {
            let pod = tree(&format!(
                r#"{{"spec":{{"affinity":{{"podAntiAffinity":{{
                "requiredDuringSchedulingIgnoredDuringExecution":[{{"topologyKey":"{key}"}}]}}}}}}}}"#
            ));
            assert_eq!(other_topology(&pod), expected);
        }
        assert_eq!(other_topology(&tree("{}")), None);
    }
}

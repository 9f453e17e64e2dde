//! Warnings about Services.

use pintle_value::Value;

use crate::{
    addresses::odd_range,
    checks::{WARNINGS_MAX, items},
    formats::odd_ip,
};

/// Warns of members that are ignored, deprecated, or not in canonical form. `old` is the stored
/// service.
pub(super) fn warnings(service: &Value, old: Option<&Value>) -> Vec<String> {
    let of = |member: &str| service.str_at(&["spec", member]).unwrap_or_default();
    let is_external = of("type") == "ExternalName";
    let is_headless = of("type") == "ClusterIP" && of("clusterIP") == "None";
    let has_external_ips = !items(service, &["spec", "externalIPs"]).is_empty();
    let mut warnings = annotation_warnings(service);
    if !is_external && !is_headless {
        let changed = |member: &str| {
            old.is_none_or(|old| old.at(&["spec", member]) != service.at(&["spec", member]))
        };
        warnings.extend(odd_addresses(service, changed("clusterIPs")));
    }
    let rows = [
        (
            has_external_ips && !is_headless && !is_external,
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
        ),
        (
            is_headless && !of("loadBalancerIP").is_empty(),
            "spec.loadBalancerIP is ignored for headless services",
        ),
        (is_headless && has_external_ips, "spec.externalIPs is ignored for headless services"),
        (
            is_headless && of("sessionAffinity") != "None",
            "spec.SessionAffinity is ignored for headless services",
        ),
        (
            is_external && has_external_ips,
            "spec.externalIPs is ignored when spec.type is \"ExternalName\"",
        ),
        (
            !is_external && !of("externalName").is_empty(),
            "spec.externalName is ignored when spec.type is not \"ExternalName\"",
        ),
        (
            of("trafficDistribution") == "PreferClose",
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"",
        ),
    ];
    let found = rows.into_iter().filter(|(holds, _)| *holds).map(|(_, words)| words.to_owned());
    warnings.extend(found);
    warnings
}

fn annotation_warnings(service: &Value) -> Vec<String> {
    const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    const MODE: &str = "service.kubernetes.io/topology-mode";
    let annotations = pintle_meta::object::annotations(service);
    if annotations.is_some_and(|annotations| annotations.contains_key(HINTS)) {
        vec![format!("metadata.annotations[{HINTS}]: deprecated; please use {MODE} instead")]
    } else {
        Vec::new()
    }
}

fn odd_addresses(service: &Value, with_cluster_ips: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    let texts = |member: &'static str| {
        let items = items(service, &["spec", member]).iter().enumerate();
        items.map(move |(i, item)| (format!("spec.{member}[{i}]"), item.as_str().unwrap_or("")))
    };
    let cluster_ips = texts("clusterIPs").filter(|_| with_cluster_ips);
    let odd = cluster_ips
        .chain(texts("externalIPs"))
        .filter_map(|(path, ip)| Some(format!("{path}: {}", odd_ip(ip)?)));
    warnings.extend(odd.take(WARNINGS_MAX));
    if let Some(ip) = service.str_at(&["spec", "loadBalancerIP"]) {
        warnings.extend(odd_ip(ip).map(|odd| format!("spec.loadBalancerIP: {odd}")));
    }
    let odd = texts("loadBalancerSourceRanges").flat_map(|(path, range)| {
        odd_range(range.trim()).into_iter().map(move |odd| format!("{path}: {odd}"))
    });
    warnings.extend(odd.take(WARNINGS_MAX));
    warnings
}

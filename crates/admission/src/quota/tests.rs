use std::sync::Arc;

use pintle_meta::GroupResource;
use pintle_registry::allocation::Posted;
use pintle_registry::request::Now;
use pintle_value::{Value, json};

use super::grace::ChargedUntil;
use super::{Charge, Held, Quota, ResourceQuota, is_status_current, usage};
use crate::pods::{Amounts, amounts};

const NOW: Now = Now { unix_micros: 1_700_000_000_000_000 };

fn tree(text: &str) -> Value {
    json::parse(text.as_bytes()).expect(text)
}

fn core(plural: &str) -> GroupResource {
    GroupResource::new("", plural)
}

fn joined(amounts: &Amounts) -> String {
    let parts = amounts.iter().map(|(name, amount)| format!("{name}={amount}"));
    parts.collect::<Vec<_>>().join(",")
}

#[test]
fn usage_of_objects() {
    for (resource, object, expected) in [
        (core("configmaps"), "{}", "configmaps=1,count/configmaps=1"),
        (GroupResource::new("apps", "deployments"), "{}", "count/deployments.apps=1"),
        (
            core("pods"),
            r#"{"spec":{"initContainers":[{"resources":{"requests":{"cpu":"3"}}}],"containers":[
            {"resources":{"requests":{"cpu":"1","example.com/gpu":"2"},"limits":{"memory":"1Gi"}}},
            {"resources":{"requests":{"cpu":"1"}}}]}}"#,
            "count/pods=1,cpu=3,limits.memory=1Gi,pods=1,requests.cpu=3,requests.example.com/gpu=2",
        ),
        (core("pods"), r#"{"status":{"phase":"Succeeded"}}"#, "count/pods=1"),
        (
            core("services"),
            r#"{"spec":{"type":"LoadBalancer","ports":[{"port":1},{"port":2}]}}"#,
            "count/services=1,services=1,services.loadbalancers=1,services.nodeports=2",
        ),
        (
            core("services"),
            r#"{"spec":{"type":"LoadBalancer","allocateLoadBalancerNodePorts":false,
            "ports":[{"port":1,"nodePort":30000},{"port":2}]}}"#,
            "count/services=1,services=1,services.loadbalancers=1,services.nodeports=1",
        ),
        (
            core("persistentvolumeclaims"),
            r#"{"spec":{"storageClassName":"gold","resources":{"requests":{"storage":"10Gi"}}}}"#,
            "count/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/persistentvolumeclaims=1,\
             gold.storageclass.storage.k8s.io/requests.storage=10Gi,persistentvolumeclaims=1,\
             requests.storage=10Gi",
        ),
        (
            core("pods"),
            r#"{"spec":{"resources":{"requests":{"cpu":"5"}},"overhead":{"cpu":"1","memory":"1"},
            "containers":[{"resources":{"requests":{"cpu":"1"},"limits":{"cpu":"2"}}}]}}"#,
            "count/pods=1,cpu=6,limits.cpu=3,memory=1,pods=1,requests.cpu=6,requests.memory=1",
        ),
        (
            core("persistentvolumeclaims"),
            r#"{"spec":{"resources":{"requests":{"storage":"1500m"}}}}"#,
            "count/persistentvolumeclaims=1,persistentvolumeclaims=1,requests.storage=2",
        ),
        (
            core("persistentvolumeclaims"),
            r#"{"spec":{"resources":{"requests":{"storage":"1Gi"}}},
            "status":{"allocatedResources":{"storage":"2Gi"}}}"#,
            "count/persistentvolumeclaims=1,persistentvolumeclaims=1,requests.storage=2Gi",
        ),
        (
            GroupResource::new("resource.k8s.io", "resourceclaims"),
            r#"{"spec":{"devices":{"requests":[
            {"exactly":{"deviceClassName":"a","allocationMode":"ExactCount","count":2}},
            {"exactly":{"deviceClassName":"b","allocationMode":"All"}},
            {"firstAvailable":[
            {"deviceClassName":"a","allocationMode":"ExactCount","count":3},
            {"deviceClassName":"a","allocationMode":"ExactCount","count":1},
            {"deviceClassName":"c","allocationMode":"Some"}]}]}}}"#,
            "a.deviceclass.resource.k8s.io/devices=5,b.deviceclass.resource.k8s.io/devices=32,\
             c.deviceclass.resource.k8s.io/devices=0,count/resourceclaims.resource.k8s.io=1",
        ),
    ] {
        let of = |object| joined(&usage::of(&resource, &object, ChargedUntil::for_write(NOW)));
        assert_eq!(of(tree(object)), expected, "{resource} {object}");
        let members = usage::members(&resource);
        let excerpt = json::excerpt(object.as_bytes(), members).expect(object);
        assert_eq!(of(excerpt), expected, "{resource} {members:?} of {object}");
    }
}

#[test]
fn pods_match_scopes() {
    for (scope, pod, expected) in [
        (r#"{"scopes":["Terminating"]}"#, r#"{"activeDeadlineSeconds":5}"#, true),
        (r#"{"scopes":["NotTerminating"]}"#, r#"{"activeDeadlineSeconds":5}"#, false),
        (r#"{"scopes":["BestEffort"]}"#, r#"{"containers":[{}]}"#, true),
        (
            r#"{"scopes":["BestEffort"]}"#,
            r#"{"containers":[{"resources":{"requests":{"cpu":"1"}}}]}"#,
            false,
        ),
        (
            r#"{"scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":"In",
            "values":["high"]}]}}"#,
            r#"{"priorityClassName":"high"}"#,
            true,
        ),
        (
            r#"{"scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":"NotIn",
            "values":["high"]}]}}"#,
            r#"{"priorityClassName":"high"}"#,
            false,
        ),
    ] {
        let quota = tree(&format!(r#"{{"spec":{scope}}}"#));
        let pod = tree(&format!(r#"{{"spec":{pod}}}"#));
        assert_eq!(usage::in_scope(&core("pods"), &quota, &pod), expected, "{scope}");
        let other = usage::in_scope(&core("secrets"), &quota, &pod);
        assert!(!other, "{scope}");
    }
}

#[test]
fn claims_match_scopes() {
    const ASKS: &str = r#"{"spec":{"volumeAttributesClassName":"gold"}}"#;
    const HAS: &str = r#"{"spec":{"volumeAttributesClassName":"gold"},
        "status":{"currentVolumeAttributesClassName":"tin"}}"#;
    for (operator, values, claim, expected) in [
        ("Exists", "", "{}", false),
        ("Exists", "", ASKS, true),
        ("DoesNotExist", "", "{}", true),
        ("DoesNotExist", "", ASKS, false),
        ("In", r#""gold""#, ASKS, true),
        ("In", r#""tin""#, ASKS, false),
        ("In", r#""tin""#, HAS, true),
        ("NotIn", r#""gold""#, "{}", true),
        ("NotIn", r#""gold""#, ASKS, false),
        ("NotIn", r#""gold""#, HAS, true),
    ] {
        let quota = tree(&format!(
            r#"{{"spec":{{"scopeSelector":{{"matchExpressions":[{{"scopeName":"VolumeAttributesClass",
            "operator":"{operator}","values":[{values}]}}]}}}}}}"#
        ));
        let found = usage::in_scope(&core("persistentvolumeclaims"), &quota, &tree(claim));
        assert_eq!(found, expected, "{operator} {values} {claim}");
    }
}

#[test]
fn names_of_limits_count_resources() {
    for (resource, name, expected) in [
        (core("pods"), "requests.example.com/gpu", true),
        (core("pods"), "example.com/gpu", false),
        (core("pods"), "requests.kubernetes.io/gpu", false),
        (core("pods"), "limits.ephemeral-storage", true),
        (core("pods"), "example.com/ephemeral-storage", false),
        (core("pods"), "requests.hugepages-2Mi", true),
        (core("pods"), "requests.storage", false),
        (core("persistentvolumeclaims"), "gold.storageclass.storage.k8s.io/requests.storage", true),
        (core("persistentvolumeclaims"), "gold.storageclass.storage.k8s.io/other", false),
        (core("secrets"), "secrets", true),
        (core("secrets"), "count/secrets", true),
        (core("endpoints"), "endpoints", false),
        (GroupResource::new("example.com", "secrets"), "secrets", false),
        (GroupResource::new("example.com", "secrets"), "count/secrets.example.com", true),
    ] {
        assert_eq!(usage::measures(&resource, name), expected, "{resource} {name}");
    }
}

/// Rows modelled on upstream's tests of the plugin: a quota's limits and usage, the object before
/// and after, and the usage after the write or the refusal.
#[test]
fn writes_change_usage_by_the_difference_of_their_objects() {
    const POD: &str = r#"{"spec":{"containers":[{"name":"c","resources":{
        "requests":{"cpu":"100m","memory":"1Gi"},"limits":{"cpu":"1","memory":"2Gi"}}}]}}"#;
    const BARE: &str = r#"{"spec":{"containers":[{"name":"c"}]}}"#;
    const ENDED: &str = r#"{"spec":{"containers":[{"name":"c","resources":{
        "requests":{"cpu":"100m"}}}]},"status":{"phase":"Failed"}}"#;
    const BALANCER: &str = r#"{"spec":{"type":"LoadBalancer","ports":[{"port":1}]}}"#;
    const NODE_PORTS: &str = r#"{"spec":{"type":"NodePort","ports":[{"port":1},{"port":2}]}}"#;
    let claim =
        |size| format!(r#"{{"spec":{{"resources":{{"requests":{{"storage":"{size}"}}}}}}}}"#);
    let (large, small) = (claim("15Gi"), claim("10Gi"));
    for (resource, hard, used, old, new, expected) in [
        (
            "pods",
            "cpu=3,memory=100Gi,pods=5",
            "cpu=1,memory=50Gi,pods=3",
            "",
            POD,
            "cpu=1100m,memory=51Gi,pods=4",
        ),
        (
            "pods",
            "cpu=1,memory=100Gi,pods=5",
            "cpu=1,memory=50Gi,pods=3",
            "",
            POD,
            "exceeded quota: q, requested: cpu=100m, used: cpu=1, limited: cpu=1",
        ),
        (
            "pods",
            "cpu=1,memory=50Gi,pods=3",
            "cpu=1,memory=50Gi,pods=3",
            "",
            POD,
            "exceeded quota: q, requested: cpu=100m,memory=1Gi,pods=1, used: cpu=1,memory=50Gi,pods=3, \
             limited: cpu=1,memory=50Gi,pods=3",
        ),
        (
            "pods",
            "cpu=3,limits.memory=2Gi,pods=5",
            "cpu=0,limits.memory=0,pods=0",
            "",
            BARE,
            "failed quota: q: must specify cpu for: c; limits.memory for: c",
        ),
        ("pods", "pods=5", "", "", POD, "status unknown for quota: q, resources: pods"),
        (
            "pods",
            "count/pods=1,pods=1",
            "count/pods=1,pods=0",
            "",
            ENDED,
            "exceeded quota: q, requested: count/pods=1, used: count/pods=1, limited: count/pods=1",
        ),
        // A limit on another resource that is exceeded has no effect on pods.
        ("pods", "pods=5,services=0", "pods=3,services=4", "", POD, "pods=4,services=4"),
        // A pod that ends releases usage, even in a quota that is exceeded.
        ("pods", "cpu=0,pods=0", "cpu=1,pods=3", POD, ENDED, "cpu=900m,pods=2"),
        ("pods", "cpu=2,pods=5", "cpu=1,pods=3", POD, "", "cpu=900m,pods=2"),
        ("pods", "pods=5", "pods=0", POD, "", "pods=0"),
        (
            "services",
            "services=1,services.loadbalancers=1,services.nodeports=10",
            "services=1,services.loadbalancers=0,services.nodeports=3",
            NODE_PORTS,
            BALANCER,
            "services=1,services.loadbalancers=1,services.nodeports=2",
        ),
        (
            "services",
            "services.loadbalancers=0,services.nodeports=10",
            "services.loadbalancers=0,services.nodeports=2",
            NODE_PORTS,
            BALANCER,
            "exceeded quota: q, requested: services.loadbalancers=1, used: services.loadbalancers=0, \
             limited: services.loadbalancers=0",
        ),
        (
            "persistentvolumeclaims",
            "persistentvolumeclaims=3,requests.storage=100Gi",
            "persistentvolumeclaims=1,requests.storage=10Gi",
            &small,
            &large,
            "persistentvolumeclaims=1,requests.storage=15Gi",
        ),
        (
            "persistentvolumeclaims",
            "requests.storage=12Gi",
            "requests.storage=10Gi",
            &small,
            &large,
            "exceeded quota: q, requested: requests.storage=5Gi, used: requests.storage=10Gi, \
             limited: requests.storage=12Gi",
        ),
        (
            "persistentvolumeclaims",
            "requests.storage=100Gi",
            "requests.storage=15Gi",
            &large,
            &small,
            "requests.storage=10Gi",
        ),
    ] {
        let row = format!("{resource} {hard} {used}: {old} -> {new}");
        assert_eq!(charged(resource, hard, used, old, new), expected, "{row}");
    }
}

/// Returns the usage after a write, or the refusal.
fn charged(resource: &str, hard: &str, used: &str, old: &str, new: &str) -> String {
    let (hard, used) = (map(hard), map(used));
    let quota = format!(r#"{{"spec":{{"hard":{hard}}},"status":{{"hard":{hard},"used":{used}}}}}"#);
    let quota = Quota::read("q", tree(&quota));
    let object = |text: &str| (!text.is_empty()).then(|| tree(text));
    let (old, new, resource) = (object(old), object(new), core(resource));
    let held = |object| Held::of(&resource, object, ChargedUntil::for_write(NOW));
    let charge = Charge {
        resource: resource.clone(),
        is_limited: true,
        new: new.as_ref().map(held),
        old: old.as_ref().map(held),
    };
    let quota = Arc::new(quota);
    let mut state = quota.tree.clone();
    let posted = quota.require(&charge).and_then(|()| match quota.posting(&charge) {
        Some(posting) => posting.post(&mut state).map(drop),
        None => Ok(()),
    });
    match posted {
        Ok(()) => joined(&amounts(state.at(&["status", "used"]))),
        Err(why) => {
            assert_eq!(state, quota.tree, "a refused write leaves the quota unchanged");
            why
        }
    }
}

/// `a=1,b=2` as an object.
fn map(amounts: &str) -> String {
    let pairs = amounts.split(',').filter_map(|one| one.split_once('='));
    let members: Vec<String> =
        pairs.map(|(name, amount)| format!(r#""{name}":"{amount}""#)).collect();
    format!("{{{}}}", members.join(","))
}

#[test]
fn containers_must_set_counted_resources() {
    let pod = tree(
        r#"{"spec":{"containers":[{"name":"b"},{"name":"a"},
        {"name":"c","resources":{"requests":{"cpu":"1","memory":"1Gi"}}}]}}"#,
    );
    let names = ["cpu", "limits.memory", "pods"].map(str::to_owned);
    let names: Vec<&String> = names.iter().collect();
    let expected = "cpu for: a,b; limits.memory for: a,b,c";
    let resource = core("pods");
    assert_eq!(
        Held::of(&resource, &pod, ChargedUntil::for_write(NOW))
            .missing(&resource, &names)
            .as_deref(),
        Some(expected)
    );
}

#[test]
fn a_status_is_current_with_the_limits_of_the_spec_and_their_usage() {
    for (quota, expected) in [
        (r#"{"spec":{"hard":{"pods":"1"}}}"#, false),
        (r#"{"spec":{"hard":{"pods":"1"}},"status":{"hard":{"pods":"1"}}}"#, false),
        (
            r#"{"spec":{"hard":{"pods":"2"}},"status":{"hard":{"pods":"1"},"used":{"pods":"0"}}}"#,
            false,
        ),
        (
            r#"{"spec":{"hard":{"pods":"1"}},"status":{"hard":{"pods":"1"},"used":{"pods":"0"}}}"#,
            true,
        ),
        (r#"{"spec":{}}"#, true),
    ] {
        assert_eq!(is_status_current(&tree(quota)), expected, "{quota}");
    }
}

#[test]
fn a_posting_is_outdated_when_its_quota_was_replaced_or_its_limits_changed() {
    let text = r#"{"metadata":{"uid":"u"},"spec":{"hard":{"pods":"9"}},
        "status":{"hard":{"pods":"9"},"used":{"pods":"1"}}}"#;
    let pod = Value::object();
    let resource = core("pods");
    let new = Some(Held::of(&resource, &pod, ChargedUntil::for_write(NOW)));
    let charge = Charge { resource, is_limited: true, new, old: None };
    let posting = Arc::new(Quota::read("q", tree(text))).posting(&charge).expect("it is charged");
    for (from, to, expected) in [
        (r#""pods":"1""#, r#""pods":"2""#, Posted::Changed),
        (r#""metadata":{"#, r#""metadata":{"labels":{"a":"b"},"#, Posted::Changed),
        (r#""uid":"u""#, r#""uid":"v""#, Posted::Outdated),
        (r#""spec":{"hard":{"pods":"9"}}"#, r#""spec":{"hard":{"pods":"8"}}"#, Posted::Outdated),
        (r#""status":{"hard":{"pods":"9"}"#, r#""status":{"hard":{"pods":"8"}"#, Posted::Outdated),
    ] {
        let mut now = tree(&text.replacen(from, to, 1));
        let before = now.clone();
        assert_eq!(posting.post(&mut now), Ok(expected), "{from} -> {to}");
        assert_eq!(now == before, expected == Posted::Outdated, "{from} -> {to}");
    }
}

/// 300,000 scopes of a quota and 300,000 terms or containers of a pod are 90 billion comparisons.
#[test]
fn scopes_are_not_compared_with_each_part_of_a_pod() {
    let container =
        r#"{"name":"c","resources":{"requests":{"example.com/x":"1"}}},"#.repeat(30_000);
    let term = r#"{"topologyKey":"x"},"#.repeat(100_000);
    let pod = tree(&format!(
        r#"{{"spec":{{"containers":[{container}{{"name":"c"}}],"affinity":{{"podAffinity":{{
        "requiredDuringSchedulingIgnoredDuringExecution":[{term}{{"namespaces":["x"]}}]}}}}}}}}"#
    ));
    for (scope, expected) in [("BestEffort", true), ("CrossNamespacePodAffinity", true)] {
        let scopes = format!(r#""{scope}","#).repeat(100_000);
        let quota = tree(&format!(r#"{{"spec":{{"scopes":[{scopes}"{scope}"]}}}}"#));
        assert_eq!(usage::in_scope(&core("pods"), &quota, &pod), expected, "{scope}");
    }
}

/// The containers of a pod are read once, and not for each of 3,000 quotas.
#[test]
fn quotas_do_not_read_a_pod_again() {
    let container = r#"{"name":"c","resources":{"requests":{"cpu":"1"}}},"#.repeat(30_000);
    let pod = tree(&format!(
        r#"{{"spec":{{"containers":[{container}{{"name":"c","resources":{{"requests":{{"cpu":"1"}}}}}}]}}}}"#
    ));
    let quota = r#"{"spec":{"scopes":["NotBestEffort"]},"status":{"hard":{"cpu":"99999"},
        "used":{"cpu":"0"}}}"#;
    let quota = Arc::new(Quota::read("q", tree(quota)));
    let resource = core("pods");
    let new = Some(Held::of(&resource, &pod, ChargedUntil::for_write(NOW)));
    let charge = Charge { resource, is_limited: true, new, old: None };
    for _ in 0..3000 {
        assert_eq!(quota.require(&charge), Ok(()));
        assert!(quota.posting(&charge).is_some());
    }
}

/// The resources of a pod are not compared with each of 1,000 quotas, each with the same scopes.
#[test]
fn covered_names_are_a_union() {
    let configuration = r#"{"apiVersion":"x","kind":"y","limitedResources":[{"resource":"pods",
        "matchContains":["example.com"]}]}"#;
    let limited = super::LimitedResource::all(&tree(configuration)).expect("it is valid");
    let names: Vec<String> = (0..30_000).map(|n| format!(r#""example.com/{n}":"1""#)).collect();
    let pod = format!(
        r#"{{"spec":{{"containers":[{{"resources":{{"requests":{{{}}}}}}}]}}}}"#,
        names.join(",")
    );
    let (pod, resource) = (tree(&pod), core("pods"));
    let new = Some(Held::of(&resource, &pod, ChargedUntil::for_write(NOW)));
    let charge = Charge { resource, is_limited: true, new, old: None };
    let names = |from| {
        let of = |n| format!(r#""requests.example.com/{n}":"1""#);
        (from..30_000).map(of).collect::<Vec<_>>().join(",")
    };
    let quota = |from| {
        let text = format!(r#"{{"status":{{"hard":{{{}}}}}}}"#, names(from));
        Arc::new(Quota::read("q", tree(&text)))
    };
    let bare = Arc::new(Quota::read("q", Value::object()));
    let mut quotas = vec![bare; 1000];
    quotas.push(quota(1));
    let plugin = ResourceQuota::new(limited);
    let refused = plugin.require_cover(&charge, &quotas);
    let expected = "insufficient quota to consume: requests.example.com/0";
    assert_eq!(refused, Err(expected.to_owned()));
    quotas.push(quota(0));
    assert_eq!(plugin.require_cover(&charge, &quotas), Ok(()));
}

/// A pod is charged until its grace period is over, and then by writes for some time, and by counts
/// for a longer time.
#[test]
fn pods_are_released_after_their_grace_period() {
    const DELETED: &str = "2023-11-14T22:13:20Z"; // NOW
    let pod = |grace: &str| {
        tree(&format!(r#"{{"metadata":{{"deletionTimestamp":"{DELETED}"{grace}}},"spec":{{}}}}"#))
    };
    let (none, ten) = ("", r#","deletionGracePeriodSeconds":10"#);
    for (grace, seconds, by_write, by_count) in [
        (none, 1_000_000, true, true),
        (ten, 0, true, true),
        (ten, 40, true, true),
        (ten, 41, false, true),
        (ten, 160, false, true),
        (ten, 161, false, false),
        (r#","deletionGracePeriodSeconds":9223372036854775807"#, 1_000_000, true, true),
    ] {
        let now = Now { unix_micros: NOW.unix_micros + seconds * 1_000_000 };
        for (until, expected) in
            [(ChargedUntil::for_write(now), by_write), (ChargedUntil::for_count(now), by_count)]
        {
            let usage = usage::of(&core("pods"), &pod(grace), until);
            assert_eq!(usage.contains_key("pods"), expected, "{grace} {seconds} {until:?}");
            assert!(usage.contains_key("count/pods"), "it is still an object");
        }
    }
}

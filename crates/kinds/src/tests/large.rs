//! Large objects: the work grows about linearly with their size.
//!
//! Each row has two lists or texts of one object whose product was once the number of steps, or the
//! size of the memory. With such code a row takes minutes.

use std::time::{Duration, Instant};

use pintle_value::Value;

use super::{json, strategy};
use crate::{checks::WARNINGS_MAX, printers::printer, removed, strategy::Strategy};

/// The longest time of a row. In a debug build, a row takes about a second.
const TIME_MAX: Duration = Duration::from_secs(25);

fn timed<T>(name: &str, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = work();
    assert!(began.elapsed() < TIME_MAX, "{name} took {:?}", began.elapsed());
    result
}

/// `count` texts with commas between them; `#` in the text stands for the number of each.
fn many(count: usize, text: &str) -> String {
    let texts: Vec<String> = (0..count).map(|i| text.replace('#', &i.to_string())).collect();
    texts.join(",")
}

/// Sets the defaults of a new object, prepares and validates it, and returns its warnings.
fn create(strategy: &Strategy, object: &str) -> Vec<String> {
    let mut object = json(object);
    (strategy.default)(&mut object);
    (strategy.prepare_create)(&mut object);
    (strategy.validate)(&object, None);
    (strategy.warnings)(&object, None)
}

#[test]
fn new_pods() {
    let long = "a".repeat(100_000);
    let longer = "a".repeat(1_000_000);
    let app_armor = "container.apparmor.security.beta.kubernetes.io/";
    for (name, metadata, spec) in [
        (
            "ports",
            String::new(),
            format!(r#""containers":[{{"ports":[{}]}}]"#, many(60_000, r#"{"containerPort":1}"#)),
        ),
        (
            "ports with names",
            String::new(),
            format!(r#""containers":[{{"ports":[{}]}}]"#, many(60_000, r#"{"name":"a"}"#)),
        ),
        (
            "files of a volume",
            String::new(),
            format!(
                r#""volumes":[{{"name":"v","configMap":{{"items":[{}]}}}}]"#,
                many(60_000, r#"{"path":"a"}"#)
            ),
        ),
        (
            "variables from files",
            String::new(),
            format!(
                r#""volumes":[{}],"containers":[{{"env":[{}]}}]"#,
                many(40_000, r#"{"name":"v#"}"#),
                many(20_000, r#"{"valueFrom":{"fileKeyRef":{"volumeName":"a"}}}"#)
            ),
        ),
        (
            "unknown claims",
            String::new(),
            format!(
                r#""resourceClaims":[{}],"containers":[{{"resources":{{"claims":[{}]}}}}]"#,
                many(20_000, r#"{"name":"c#"}"#),
                many(60_000, r#"{"name":"a"}"#)
            ),
        ),
        (
            "resources of sidecars",
            String::new(),
            format!(
                r#""resources":{{"limits":{{"cpu":"1"}}}},"initContainers":[{}]"#,
                many(20_000, r#"{"restartPolicy":"Always","resources":{"limits":{"a.b/r#":"1"}}}"#)
            ),
        ),
        (
            "a long limit of the pod",
            String::new(),
            format!(
                r#""resources":{{"limits":{{"cpu":"1.{}"}}}},"containers":[{}]"#,
                "0".repeat(300_000),
                many(20_000, r#"{"resources":{"limits":{"cpu":"9"}}}"#)
            ),
        ),
        (
            "a long label that is copied",
            format!(r#""labels":{{"a":"{long}"}}"#),
            format!(
                r#""topologySpreadConstraints":[{{"labelSelector":{{}},"matchLabelKeys":[{}]}}]"#,
                many(20_000, r#""a""#)
            ),
        ),
        (
            "a long profile of the pod",
            format!(r#""annotations":{{"{app_armor}":"localhost/{longer}"}}"#),
            format!(
                r#""containers":[{}],"securityContext":{{"appArmorProfile":
                {{"type":"Localhost","localhostProfile":"{longer}"}}}}"#,
                many(100_000, "{}")
            ),
        ),
        (
            "claims of a pod with a long name",
            format!(r#""name":"{long}""#),
            format!(r#""volumes":[{}]"#, many(50_000, r#"{"name":"v#","ephemeral":{}}"#)),
        ),
        (
            "files of a source with a long name",
            String::new(),
            format!(
                r#""volumes":[{{"projected":{{"sources":[{{"secret":{{"name":"{longer}",
                "items":[{}]}}}}]}}}}]"#,
                many(150_000, r#"{"path":"a"}"#)
            ),
        ),
    ] {
        let pod = format!(r#"{{"metadata":{{{metadata}}},"spec":{{{spec}}}}}"#);
        let warnings = timed(name, || create(strategy("pods"), &pod));
        assert!(warnings.len() <= WARNINGS_MAX + 1, "{name}: {} warnings", warnings.len());
    }
}

#[test]
fn defaults() {
    let small = many(200_000, r##""a#":"1""##);
    let large = many(200_000, r##""z#":"1""##);
    for (name, resource, object) in [
        (
            "limits that become requests",
            "pods",
            format!(
                r#"{{"spec":{{"containers":[{{"resources":
                {{"limits":{{{small}}},"requests":{{{large}}}}}}}]}}}}"#
            ),
        ),
        (
            "texts and data",
            "secrets",
            format!(r#"{{"stringData":{{{small}}},"data":{{{large}}}}}"#),
        ),
        (
            "maxima and defaults",
            "limitranges",
            format!(
                r#"{{"spec":{{"limits":[
                {{"type":"Container","max":{{{small}}},"default":{{{large}}}}}]}}}}"#
            ),
        ),
    ] {
        let mut object = json(&object);
        timed(name, || (strategy(resource).default)(&mut object));
    }
}

#[test]
fn other_new_objects() {
    let long = "a".repeat(100_000);
    let longer = "a".repeat(1_000_000);
    for (name, resource, object) in [
        (
            "rules and containers",
            "batch/jobs",
            format!(
                r#"{{"spec":{{"podFailurePolicy":{{"rules":[{}]}},
                "template":{{"spec":{{"containers":[{}]}}}}}}}}"#,
                many(30_000, r#"{"onExitCodes":{"containerName":"a"}}"#),
                many(60_000, r#"{"name":"c#"}"#)
            ),
        ),
        (
            "topologies",
            "storage.k8s.io/storageclasses",
            format!(r#"{{"allowedTopologies":[{}]}}"#, many(200_000, "{}")),
        ),
        (
            "the path of a webhook",
            "admissionregistration.k8s.io/validatingwebhookconfigurations",
            format!(
                r#"{{"webhooks":[{{"clientConfig":{{"service":{{"path":"{}"}}}}}}]}}"#,
                "/".repeat(1_000_000)
            ),
        ),
        (
            "annotations of a policy with a long name",
            "admissionregistration.k8s.io/validatingadmissionpolicies",
            format!(
                r#"{{"metadata":{{"name":"{long}"}},"spec":{{"auditAnnotations":[{}]}}}}"#,
                many(100_000, r#"{"key":"a"}"#)
            ),
        ),
        (
            "values of a capacity with a long name",
            "resource.k8s.io/resourceslices",
            format!(
                r#"{{"spec":{{"devices":[{{"allowMultipleAllocations":true,"capacity":{{"{longer}{longer}":
                {{"value":"1","requestPolicy":{{"default":"1","validValues":[{}]}}}}}}}}]}}}}"#,
                many(200_000, r#""1""#)
            ),
        ),
        (
            "the name of a pool",
            "resource.k8s.io/resourceslices",
            format!(r#"{{"spec":{{"pool":{{"name":"{}"}}}}}}"#, "/".repeat(3_000_000)),
        ),
    ] {
        timed(name, || create(strategy(resource), &object));
    }
}

#[test]
fn updates() {
    for (name, resource, part, new, old) in [
        (
            "ranges",
            "networking.k8s.io/networkpolicies",
            "",
            policy("10.0.0.#/32"),
            policy("192.0.2.#/32"),
        ),
        (
            "secrets of an ingress",
            "networking.k8s.io/ingresses",
            "",
            format!(r#"{{"spec":{{"tls":[{}]}}}}"#, many(60_000, "{}")),
            format!(r#"{{"spec":{{"tls":[{}]}}}}"#, many(60_000, "{}")),
        ),
        (
            "drivers of a node",
            "storage.k8s.io/csinodes",
            "",
            format!(r#"{{"spec":{{"drivers":[{}]}}}}"#, many(40_000, r#"{"name":"a#"}"#)),
            format!(r#"{{"spec":{{"drivers":[{}]}}}}"#, many(40_000, r#"{"name":"b#"}"#)),
        ),
        (
            "conditions of a request",
            "certificates.k8s.io/certificatesigningrequests",
            "approval",
            format!(r#"{{"status":{{"conditions":[{}]}}}}"#, many(60_000, r#"{"type":"a"}"#)),
            format!(r#"{{"status":{{"conditions":[{}]}}}}"#, many(60_000, r#"{"type":"b"}"#)),
        ),
        (
            "conditions of a storage version",
            "internal.apiserver.k8s.io/storageversions",
            "status",
            format!(r#"{{"status":{{"conditions":[{}]}}}}"#, many(60_000, r#"{"type":"a#"}"#)),
            "{}".to_owned(),
        ),
        (
            "indexes",
            "batch/jobs",
            "status",
            format!(
                r#"{{"spec":{{"completions":2000000000}},"status":
                {{"completedIndexes":"{}","failedIndexes":"{}"}}}}"#,
                many(100_000, "1#"),
                many(100_000, "2#")
            ),
            "{}".to_owned(),
        ),
        (
            "statuses of containers",
            "pods",
            "status",
            statuses(r#"{"name":"a#","state":{"running":{}}}"#),
            statuses(r#"{"name":"b#","state":{"terminated":{}}}"#),
        ),
        (
            "allocated resources",
            "pods",
            "status",
            format!(
                r#"{{"spec":{{"containers":[{{"name":"a","resources":{{"claims":[{}]}}}}]}},
                "status":{{"containerStatuses":
                [{{"name":"a","allocatedResourcesStatus":[{}]}}]}}}}"#,
                many(40_000, r#"{"name":"c#","request":"a"}"#),
                many(40_000, r#"{"name":"claim:a"}"#)
            ),
            "{}".to_owned(),
        ),
    ] {
        let strategy = strategy(resource);
        let (new, old) = (json(&new), json(&old));
        timed(name, || match strategy.parts.iter().find(|one| one.name == part) {
            Some(part) => (part.validate)(&new, &old),
            None => (strategy.validate)(&new, Some(&old)),
        });
    }
}

/// A network policy with many ranges.
fn policy(range: &str) -> String {
    let ranges = many(60_000, &format!(r#""{range}""#));
    format!(
        r#"{{"spec":{{"ingress":[{{"from":[{{"ipBlock":
        {{"cidr":"0.0.0.0/0","except":[{ranges}]}}}}]}}]}}}}"#
    )
}

/// A pod with many containers and statuses.
fn statuses(status: &str) -> String {
    format!(
        r#"{{"spec":{{"restartPolicy":"Never","containers":[{}]}},
        "status":{{"containerStatuses":[{}]}}}}"#,
        many(30_000, r#"{"name":"c#"}"#),
        many(30_000, status)
    )
}

#[test]
fn pod_security_policies() {
    let row = removed::all().find(|row| row.resource == "podsecuritypolicies").expect("a row");
    let (_, kind) = row.latest().expect("a kind");
    for (name, policy) in [
        (
            "capabilities",
            format!(
                r#"{{"spec":{{"requiredDropCapabilities":[{}],"allowedCapabilities":[{}]}}}}"#,
                many(60_000, r##""A#""##),
                many(60_000, r##""B#""##)
            ),
        ),
        (
            "sysctls",
            format!(
                r#"{{"spec":{{"allowedUnsafeSysctls":[{}],"forbiddenSysctls":[{}]}}}}"#,
                many(60_000, r##""a#*""##),
                many(60_000, r##""b#*""##)
            ),
        ),
        (
            "profiles",
            format!(
                r#"{{"metadata":{{"annotations":
                {{"apparmor.security.beta.kubernetes.io/allowedProfileNames":"{}"}}}}}}"#,
                "a,".repeat(500_000)
            ),
        ),
    ] {
        timed(name, || create(&kind.strategy, &policy));
    }
}

#[test]
fn rows_of_tables() {
    for (name, kind, object) in [
        (
            "ports and addresses",
            "Endpoints",
            format!(
                r#"{{"subsets":[{{"addresses":[{}],"ports":[{}]}}]}}"#,
                many(50_000, r#"{"ip":"192.0.2.1"}"#),
                many(50_000, r#"{"port":1}"#)
            ),
        ),
        (
            "init containers and their statuses",
            "Pod",
            format!(
                r#"{{"spec":{{"initContainers":[{}]}},"status":{{"initContainerStatuses":[{}]}}}}"#,
                many(30_000, r#"{"name":"a#"}"#),
                many(30_000, r#"{"name":"b#","state":{"terminated":{"exitCode":0}}}"#)
            ),
        ),
        (
            "readiness gates and conditions",
            "Pod",
            format!(
                r#"{{"spec":{{"readinessGates":[{}]}},"status":{{"conditions":[{}]}}}}"#,
                many(40_000, r#"{"conditionType":"a#"}"#),
                many(40_000, r#"{"type":"b#"}"#)
            ),
        ),
    ] {
        let object: Value = json(&object);
        timed(name, || printer("", kind).row(&object));
    }
}

//! The defaults of minimal objects (DEF-01, DEF-02, DEF-04).

use super::{json, strategy};

fn check(resource: &str, input: &str, expected: &str) {
    let mut object = json(input);
    (strategy(resource).default)(&mut object);
    let expected = json(expected);
    assert_eq!(
        object,
        expected,
        "{resource}\n  input    {input}\n  got      {}\n  expected {}",
        pintle_value::json::to_string(&object),
        pintle_value::json::to_string(&expected),
    );
}

/// The members of a pod template's spec after its containers.
const POD_SPEC: &str = r#""dnsPolicy":"ClusterFirst","restartPolicy":"Always","securityContext":{},
    "terminationGracePeriodSeconds":30,"schedulerName":"default-scheduler""#;

/// The defaults of a container with an image without a tag.
const CONTAINER: &str = r#""imagePullPolicy":"Always",
    "terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File""#;

/// A template with one container, as it is sent and with its defaults.
fn template(restart: &str) -> (String, String) {
    let restart_sent = if restart == "Always" {
        String::new()
    } else {
        format!(r#","restartPolicy":"{restart}""#)
    };
    let sent = format!(r#"{{"spec":{{"containers":[{{"name":"a","image":"i"}}]{restart_sent}}}}}"#);
    let spec = POD_SPEC.replace("\"Always\"", &format!("\"{restart}\""));
    let becomes =
        format!(r#"{{"spec":{{"containers":[{{"name":"a","image":"i",{CONTAINER}}}],{spec}}}}}"#);
    (sent, becomes)
}

#[test]
fn pods() {
    check(
        "pods",
        r#"{"spec":{"containers":[{"name":"a","image":"i"}]}}"#,
        &format!(
            r#"{{"spec":{{"enableServiceLinks":true,
                "containers":[{{"name":"a","image":"i",{CONTAINER}}}],{POD_SPEC}}}}}"#
        ),
    );
    // Set members stay, and null counts as absent.
    check(
        "pods",
        r#"{"spec":{"restartPolicy":"Never","dnsPolicy":"","terminationGracePeriodSeconds":0,
            "securityContext":null,"enableServiceLinks":false,"schedulerName":"mine"}}"#,
        r#"{"spec":{"restartPolicy":"Never","dnsPolicy":"ClusterFirst",
            "terminationGracePeriodSeconds":0,"securityContext":{},"enableServiceLinks":false,
            "schedulerName":"mine"}}"#,
    );
    // In pods, a container's limit is also the default of its request, and on the host's network
    // its port is also the default of the host port.
    check(
        "pods",
        r#"{"spec":{"hostNetwork":true,"serviceAccount":"old","containers":[{"name":"a",
            "image":"i:1","ports":[{"containerPort":80},{"containerPort":81,"hostPort":8081}],
            "resources":{"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"500m"}}}]}}"#,
        &format!(
            r#"{{"spec":{{"hostNetwork":true,"enableServiceLinks":true,
                "serviceAccount":"old","serviceAccountName":"old",
                "containers":[{{"name":"a","image":"i:1",
                "ports":[{{"containerPort":80,"hostPort":80,"protocol":"TCP"}},
                    {{"containerPort":81,"hostPort":8081,"protocol":"TCP"}}],
                "resources":{{"limits":{{"cpu":"1","memory":"1Gi"}},
                    "requests":{{"cpu":"500m","memory":"1Gi"}}}},
                "imagePullPolicy":"IfNotPresent",
                "terminationMessagePath":"/dev/termination-log",
                "terminationMessagePolicy":"File"}}],{POD_SPEC}}}}}"#
        ),
    );
}

#[test]
fn embedded_types_of_pods_get_defaults() {
    check(
        "pods",
        r#"{"spec":{"enableServiceLinks":true,"dnsPolicy":"Default","restartPolicy":"Always",
            "securityContext":{},"terminationGracePeriodSeconds":1,"schedulerName":"s",
            "containers":[{"name":"a","image":"i","imagePullPolicy":"Never",
                "terminationMessagePath":"/p","terminationMessagePolicy":"File",
                "env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],
                "livenessProbe":{"httpGet":{"port":80}},
                "readinessProbe":{"grpc":{"port":1},"periodSeconds":5},
                "lifecycle":{"preStop":{"httpGet":{"port":1}}}}],
            "volumes":[{"name":"a"},{"name":"b","configMap":{"name":"c"}},
                {"name":"d","secret":{"secretName":"s","defaultMode":0}},
                {"name":"e","projected":{"sources":[{"serviceAccountToken":{"path":"t"}}]}},
                {"name":"f","hostPath":{"path":"/"}},
                {"name":"g","downwardAPI":{"items":[{"path":"p","fieldRef":{"fieldPath":"f"}}]}},
                {"name":"h","image":{"reference":"r:1"}},
                {"name":"i","ephemeral":{"volumeClaimTemplate":{}}}]}}"#,
        r#"{"spec":{"enableServiceLinks":true,"dnsPolicy":"Default","restartPolicy":"Always",
            "securityContext":{},"terminationGracePeriodSeconds":1,"schedulerName":"s",
            "containers":[{"name":"a","image":"i","imagePullPolicy":"Never",
                "terminationMessagePath":"/p","terminationMessagePolicy":"File",
                "env":[{"name":"A","valueFrom":{"fieldRef":{"apiVersion":"v1",
                    "fieldPath":"metadata.name"}}}],
                "livenessProbe":{"httpGet":{"port":80,"path":"/","scheme":"HTTP"},
                    "timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,
                    "failureThreshold":3},
                "readinessProbe":{"grpc":{"port":1,"service":""},"timeoutSeconds":1,
                    "periodSeconds":5,"successThreshold":1,"failureThreshold":3},
                "lifecycle":{"preStop":{"httpGet":{"port":1,"path":"/","scheme":"HTTP"}}}}],
            "volumes":[{"name":"a","emptyDir":{}},
                {"name":"b","configMap":{"name":"c","defaultMode":420}},
                {"name":"d","secret":{"secretName":"s","defaultMode":0}},
                {"name":"e","projected":{"defaultMode":420,
                    "sources":[{"serviceAccountToken":{"path":"t","expirationSeconds":3600}}]}},
                {"name":"f","hostPath":{"path":"/","type":""}},
                {"name":"g","downwardAPI":{"defaultMode":420,
                    "items":[{"path":"p","fieldRef":{"apiVersion":"v1","fieldPath":"f"}}]}},
                {"name":"h","image":{"reference":"r:1","pullPolicy":"IfNotPresent"}},
                {"name":"i","ephemeral":{"volumeClaimTemplate":
                    {"spec":{"volumeMode":"Filesystem"}}}}]}}"#,
    );
}

#[test]
fn workloads() {
    let (sent, becomes) = template("Always");
    for (resource, spec) in [
        (
            "apps/deployments",
            r#""replicas":1,"revisionHistoryLimit":10,"progressDeadlineSeconds":600,
            "strategy":{"type":"RollingUpdate",
                "rollingUpdate":{"maxUnavailable":"25%","maxSurge":"25%"}}"#,
        ),
        ("apps/replicasets", r#""replicas":1"#),
        (
            "apps/daemonsets",
            r#""revisionHistoryLimit":10,"updateStrategy":{"type":"RollingUpdate",
                "rollingUpdate":{"maxUnavailable":1,"maxSurge":0}}"#,
        ),
        (
            "apps/statefulsets",
            r#""replicas":1,"revisionHistoryLimit":10,"podManagementPolicy":"OrderedReady",
            "updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":0}},
            "persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Retain","whenScaled":"Retain"}"#,
        ),
        ("replicationcontrollers", r#""replicas":1"#),
    ] {
        let mut object = json(&format!(r#"{{"spec":{{"template":{sent}}}}}"#));
        (strategy(resource).default)(&mut object);
        let expected = json(&format!(r#"{{"template":{becomes},{spec}}}"#));
        assert_eq!(object.get("spec"), Some(&expected), "{resource}");
    }
}

#[test]
fn the_strategies_of_workloads() {
    let cases = [
        ("apps/deployments", "strategy", r#"{"type":"Recreate"}"#, r#"{"type":"Recreate"}"#),
        (
            "apps/deployments",
            "strategy",
            r#"{"rollingUpdate":{"maxSurge":0}}"#,
            r#"{"type":"RollingUpdate","rollingUpdate":{"maxSurge":0,"maxUnavailable":"25%"}}"#,
        ),
        ("apps/daemonsets", "updateStrategy", r#"{"type":"OnDelete"}"#, r#"{"type":"OnDelete"}"#),
        (
            // An explicit type without `rollingUpdate` gets no `rollingUpdate`.
            "apps/statefulsets",
            "updateStrategy",
            r#"{"type":"RollingUpdate"}"#,
            r#"{"type":"RollingUpdate"}"#,
        ),
        (
            "apps/statefulsets",
            "updateStrategy",
            r#"{"type":"RollingUpdate","rollingUpdate":{}}"#,
            r#"{"type":"RollingUpdate","rollingUpdate":{"partition":0}}"#,
        ),
    ];
    for (resource, member, sent, expected) in cases {
        let mut object = json(&format!(r#"{{"spec":{{"{member}":{sent}}}}}"#));
        (strategy(resource).default)(&mut object);
        assert_eq!(object.at(&["spec", member]), Some(&json(expected)), "{resource} {sent}");
    }
}

#[test]
fn claim_templates_of_stateful_sets() {
    let mut object = json(r#"{"spec":{"volumeClaimTemplates":[{"metadata":{"name":"d"}}]}}"#);
    (strategy("apps/statefulsets").default)(&mut object);
    let expected = json(
        r#"[{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"d"},
            "spec":{"volumeMode":"Filesystem"},"status":{"phase":"Pending"}}]"#,
    );
    assert_eq!(object.at(&["spec", "volumeClaimTemplates"]), Some(&expected));
}

#[test]
fn labels_and_selectors_from_templates() {
    let input = r#"{"spec":{"template":{"metadata":{"labels":{"a":"b"}},"spec":{}}}}"#;
    for (resource, own_labels, selector) in [
        ("replicationcontrollers", Some(r#"{"a":"b"}"#), Some(r#"{"a":"b"}"#)),
        ("batch/jobs", Some(r#"{"a":"b"}"#), None),
        ("apps/replicasets", None, None),
    ] {
        let mut object = json(input);
        (strategy(resource).default)(&mut object);
        assert_eq!(object.at(&["metadata", "labels"]).cloned(), own_labels.map(json), "{resource}");
        assert_eq!(object.at(&["spec", "selector"]).cloned(), selector.map(json), "{resource}");
    }
}

#[test]
fn jobs_and_cron_jobs() {
    let (sent, becomes) = template("Never");
    check(
        "batch/jobs",
        &format!(r#"{{"spec":{{"template":{sent}}}}}"#),
        &format!(
            r#"{{"spec":{{"template":{becomes},"parallelism":1,"completions":1,"backoffLimit":6,
                "completionMode":"NonIndexed","suspend":false,"manualSelector":false,
                "podReplacementPolicy":"TerminatingOrFailed"}}}}"#
        ),
    );
    check(
        "batch/cronjobs",
        &format!(r#"{{"spec":{{"jobTemplate":{{"spec":{{"template":{sent}}}}}}}}}"#),
        &format!(
            r#"{{"spec":{{"jobTemplate":{{"spec":{{"template":{becomes}}}}},
                "concurrencyPolicy":"Allow","suspend":false,"successfulJobsHistoryLimit":3,
                "failedJobsHistoryLimit":1}}}}"#
        ),
    );
    for (sent, member, expected) in [
        (r#"{"parallelism":3}"#, "completions", None),
        (r#"{"completions":3}"#, "parallelism", Some("1")),
        (r#"{"backoffLimitPerIndex":1}"#, "backoffLimit", Some("2147483647")),
        (r#"{"podFailurePolicy":{}}"#, "podReplacementPolicy", Some(r#""Failed""#)),
    ] {
        let mut object = json(&format!(r#"{{"spec":{sent}}}"#));
        (strategy("batch/jobs").default)(&mut object);
        assert_eq!(object.at(&["spec", member]).cloned(), expected.map(json), "{sent}");
    }
}

#[test]
fn services() {
    for (sent, expected) in [
        (
            r#"{"ports":[{"port":80}]}"#,
            r#"{"type":"ClusterIP","sessionAffinity":"None","internalTrafficPolicy":"Cluster",
                "ports":[{"port":80,"protocol":"TCP","targetPort":80}]}"#,
        ),
        (
            r#"{"type":"ExternalName","externalName":"e.example"}"#,
            r#"{"type":"ExternalName","externalName":"e.example","sessionAffinity":"None"}"#,
        ),
        (
            r#"{"type":"NodePort","ports":[{"port":1,"targetPort":"web","protocol":"UDP"}]}"#,
            r#"{"type":"NodePort","sessionAffinity":"None","internalTrafficPolicy":"Cluster",
                "externalTrafficPolicy":"Cluster",
                "ports":[{"port":1,"targetPort":"web","protocol":"UDP"}]}"#,
        ),
        (
            r#"{"type":"LoadBalancer","externalTrafficPolicy":"Local",
                "sessionAffinity":"ClientIP"}"#,
            r#"{"type":"LoadBalancer","externalTrafficPolicy":"Local",
                "internalTrafficPolicy":"Cluster","allocateLoadBalancerNodePorts":true,
                "sessionAffinity":"ClientIP",
                "sessionAffinityConfig":{"clientIP":{"timeoutSeconds":10800}}}"#,
        ),
        (
            r#"{"externalIPs":["192.0.2.1"],"sessionAffinityConfig":{}}"#,
            r#"{"externalIPs":["192.0.2.1"],"type":"ClusterIP","sessionAffinity":"None",
                "internalTrafficPolicy":"Cluster","externalTrafficPolicy":"Cluster"}"#,
        ),
    ] {
        let of = |spec: &str| format!(r#"{{"spec":{spec}}}"#);
        check("services", &of(sent), &of(expected));
    }
}

#[test]
fn everything_else() {
    for (resource, input, expected) in [
        (
            "persistentvolumeclaims",
            "{}",
            r#"{"spec":{"volumeMode":"Filesystem"},"status":{"phase":"Pending"}}"#,
        ),
        (
            "persistentvolumes",
            r#"{"spec":{"hostPath":{"path":"/"}}}"#,
            r#"{"spec":{"hostPath":{"path":"/","type":""},"volumeMode":"Filesystem",
                "persistentVolumeReclaimPolicy":"Retain"},"status":{"phase":"Pending"}}"#,
        ),
        (
            "storage.k8s.io/storageclasses",
            "{}",
            r#"{"reclaimPolicy":"Delete","volumeBindingMode":"Immediate"}"#,
        ),
        (
            "namespaces",
            r#"{"metadata":{"name":"n","labels":{"kubernetes.io/metadata.name":"other"}}}"#,
            r#"{"metadata":{"name":"n","labels":{"kubernetes.io/metadata.name":"n"}},
                "status":{"phase":"Active"}}"#,
        ),
        (
            "secrets",
            r#"{"data":{"a":"b2xk","b":"Yg=="},"stringData":{"a":"new"}}"#,
            r#"{"data":{"a":"bmV3","b":"Yg=="},"type":"Opaque"}"#,
        ),
        (
            "endpoints",
            r#"{"subsets":[{"ports":[{"port":1}]}]}"#,
            r#"{"subsets":[{"ports":[{"port":1,"protocol":"TCP"}]}]}"#,
        ),
        (
            "discovery.k8s.io/endpointslices",
            r#"{"ports":[{"port":1}]}"#,
            r#"{"ports":[{"port":1,"name":"","protocol":"TCP"}]}"#,
        ),
        (
            "networking.k8s.io/networkpolicies",
            r#"{"spec":{"ingress":[{"ports":[{"port":1}]}]}}"#,
            r#"{"spec":{"ingress":[{"ports":[{"port":1,"protocol":"TCP"}]}],
                "policyTypes":["Ingress"]}}"#,
        ),
        (
            "networking.k8s.io/networkpolicies",
            r#"{"spec":{"egress":[{}]}}"#,
            r#"{"spec":{"egress":[{}],"policyTypes":["Ingress","Egress"]}}"#,
        ),
        (
            "networking.k8s.io/ingressclasses",
            r#"{"spec":{"parameters":{"kind":"K"}}}"#,
            r#"{"spec":{"parameters":{"kind":"K","scope":"Cluster"}}}"#,
        ),
        ("networking.k8s.io/ingresses", r#"{"spec":{}}"#, r#"{"spec":{}}"#),
        ("policy/poddisruptionbudgets", r#"{"spec":{}}"#, r#"{"spec":{}}"#),
        (
            "rbac.authorization.k8s.io/rolebindings",
            r#"{"roleRef":{"kind":"Role"},"subjects":[{"kind":"User"},{"kind":"Group"},
                {"kind":"ServiceAccount"}]}"#,
            r#"{"roleRef":{"kind":"Role","apiGroup":"rbac.authorization.k8s.io"},
                "subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io"},
                {"kind":"Group","apiGroup":"rbac.authorization.k8s.io"},
                {"kind":"ServiceAccount"}]}"#,
        ),
        (
            "admissionregistration.k8s.io/validatingwebhookconfigurations",
            r#"{"webhooks":[{"name":"w","rules":[{}],"clientConfig":{"service":{}}}]}"#,
            r#"{"webhooks":[{"name":"w","rules":[{"scope":"*"}],
                "clientConfig":{"service":{"port":443}},"failurePolicy":"Fail",
                "matchPolicy":"Equivalent","namespaceSelector":{},"objectSelector":{},
                "timeoutSeconds":10}]}"#,
        ),
        (
            "admissionregistration.k8s.io/mutatingwebhookconfigurations",
            r#"{"webhooks":[{"failurePolicy":"Ignore"}]}"#,
            r#"{"webhooks":[{"failurePolicy":"Ignore","matchPolicy":"Equivalent",
                "namespaceSelector":{},"objectSelector":{},"timeoutSeconds":10,
                "reinvocationPolicy":"Never"}]}"#,
        ),
        (
            "scheduling.k8s.io/priorityclasses",
            "{}",
            r#"{"preemptionPolicy":"PreemptLowerPriority"}"#,
        ),
        (
            "storage.k8s.io/csidrivers",
            "{}",
            r#"{"spec":{"attachRequired":true,"podInfoOnMount":false,"storageCapacity":false,
                "fsGroupPolicy":"ReadWriteOnceWithFSType","volumeLifecycleModes":["Persistent"],
                "requiresRepublish":false,"seLinuxMount":false}}"#,
        ),
        (
            "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations",
            r#"{"spec":{"limited":{"limitResponse":{"queuing":{}}}}}"#,
            r#"{"spec":{"limited":{"nominalConcurrencyShares":30,"lendablePercent":0,
                "limitResponse":{"queuing":{"handSize":8,"queues":64,"queueLengthLimit":50}}}}}"#,
        ),
        (
            "limitranges",
            r#"{"spec":{"limits":[{"type":"Container","max":{"cpu":"2"},"min":{"memory":"1Mi"}},
                {"type":"Pod","max":{"cpu":"2"}}]}}"#,
            r#"{"spec":{"limits":[{"type":"Container","max":{"cpu":"2"},"min":{"memory":"1Mi"},
                "default":{"cpu":"2"},"defaultRequest":{"cpu":"2","memory":"1Mi"}},
                {"type":"Pod","max":{"cpu":"2"}}]}}"#,
        ),
        (
            "nodes",
            r#"{"status":{"capacity":{"cpu":"4"}}}"#,
            r#"{"status":{"capacity":{"cpu":"4"},"allocatable":{"cpu":"4"}}}"#,
        ),
        (
            "apiextensions.k8s.io/customresourcedefinitions",
            r#"{"spec":{"names":{"kind":"CronTab"}}}"#,
            r#"{"spec":{"names":{"kind":"CronTab","singular":"crontab","listKind":"CronTabList"},
                "conversion":{"strategy":"None"}}}"#,
        ),
        (
            "resource.k8s.io/resourceclaims",
            r#"{"spec":{"devices":{"requests":[{"exactly":{"deviceClassName":"c"}}]}}}"#,
            r#"{"spec":{"devices":{"requests":[{"exactly":{"deviceClassName":"c",
                "allocationMode":"ExactCount","count":1}}]}}}"#,
        ),
        ("configmaps", "{}", "{}"),
        ("serviceaccounts", "{}", "{}"),
    ] {
        check(resource, input, expected);
    }
}

#[test]
fn horizontal_pod_autoscalers() {
    const CPU: &str = r#"[{"type":"Resource","resource":{"name":"cpu",
        "target":{"type":"Utilization","averageUtilization":80}}}]"#;
    let v2 = r#"{"apiVersion":"autoscaling/v2","spec":{"#;
    check(
        "autoscaling/horizontalpodautoscalers",
        &format!("{v2}}}}}"),
        &format!(r#"{v2}"minReplicas":1,"metrics":{CPU}}}}}"#),
    );
    check(
        "autoscaling/horizontalpodautoscalers",
        &format!(
            r#"{v2}"metrics":[{{"type":"Pods"}}],"behavior":{{"scaleDown":{{"policies":[]}}}}}}}}"#
        ),
        &format!(
            r#"{v2}"minReplicas":1,"metrics":[{{"type":"Pods"}}],"behavior":{{
                "scaleUp":{{"stabilizationWindowSeconds":0,"selectPolicy":"Max","policies":[
                    {{"type":"Pods","value":4,"periodSeconds":15}},
                    {{"type":"Percent","value":100,"periodSeconds":15}}]}},
                "scaleDown":{{"selectPolicy":"Max","policies":[]}}}}}}}}"#
        ),
    );
    check(
        "autoscaling/horizontalpodautoscalers",
        r#"{"apiVersion":"autoscaling/v1","spec":{"maxReplicas":3}}"#,
        r#"{"apiVersion":"autoscaling/v1","spec":{"maxReplicas":3,"minReplicas":1}}"#,
    );
}

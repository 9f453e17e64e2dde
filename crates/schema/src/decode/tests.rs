use super::*;
use crate::builtin;

const POD: &str = "io.k8s.api.core.v1.Pod";
const DEPLOYMENT: &str = "io.k8s.api.apps.v1.Deployment";
const SERVICE: &str = "io.k8s.api.core.v1.Service";
const CONFIG_MAP: &str = "io.k8s.api.core.v1.ConfigMap";
const SECRET: &str = "io.k8s.api.core.v1.Secret";
const LEASE: &str = "io.k8s.api.coordination.v1.Lease";
const CONTAINER: &str = "io.k8s.api.core.v1.Container";
const PORT: &str = "io.k8s.api.core.v1.ServicePort";
const RESOURCES: &str = "io.k8s.api.core.v1.ResourceRequirements";
const EMPTY_DIR: &str = "io.k8s.api.core.v1.EmptyDirVolumeSource";
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const REVISION: &str = "io.k8s.api.apps.v1.ControllerRevision";
const CRD: &str =
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition";

fn decode_as(ty: &str, body: &str, format: Format) -> Result<Decoded, Error> {
    let ty = builtin().find(ty).unwrap_or_else(|| panic!("no type {ty}"));
    decode(builtin(), ty, body.as_bytes(), format)
}

/// Checks that the body decodes to this JSON (keys sorted) without problems, or fails with this
/// message.
fn check(ty: &str, body: &str, expected: &str) {
    let shown = match decode_as(ty, body, Format::Json) {
        Ok(Decoded { value, problems }) if problems.is_empty() => json::to_string(&value),
        Ok(Decoded { problems, .. }) => format!("{problems:?}"),
        Err(error) => error.to_string(),
    };
    assert_eq!(shown, expected, "{body}");
}

/// Checks that the body decodes with these problems.
fn check_problems(ty: &str, body: &str, format: Format, expected: &[&str]) {
    let problems = decode_as(ty, body, format).unwrap().problems;
    let shown: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(shown, expected, "{body}");
}

#[test]
fn zero_values_are_encoded_as_in_go() {
    for (ty, body, expected) in [
        (CONFIG_MAP, r#"{"data":{}}"#, r#"{"metadata":{}}"#),
        (CONFIG_MAP, r#"{"data":{"a":null}}"#, r#"{"data":{"a":""},"metadata":{}}"#),
        (CONFIG_MAP, r#"{"immutable":false}"#, r#"{"immutable":false,"metadata":{}}"#),
        (CONFIG_MAP, r#"{"immutable":null,"data":null}"#, r#"{"metadata":{}}"#),
        (
            DEPLOYMENT,
            r#"{"spec":{"paused":false,"replicas":0,"minReadySeconds":0}}"#,
            r#"{"metadata":{},"spec":{"replicas":0,"selector":null,"strategy":{},"template":{"metadata":{},"spec":{"containers":null}}},"status":{}}"#,
        ),
        (
            SERVICE,
            r#"{"spec":{"ports":[{"port":80},null],"selector":{}}}"#,
            r#"{"metadata":{},"spec":{"ports":[{"port":80,"targetPort":0},{"port":0,"targetPort":0}]},"status":{"loadBalancer":{}}}"#,
        ),
        (
            CONTAINER,
            r#"{"name":"","args":[],"env":[{"name":"A","value":""}]}"#,
            r#"{"env":[{"name":"A"}],"name":"","resources":{}}"#,
        ),
        (
            CONTAINER,
            r#"{"name":"a","command":[null]}"#,
            r#"{"command":[""],"name":"a","resources":{}}"#,
        ),
        (POD, "null", r#"{"metadata":{},"spec":{"containers":null},"status":{}}"#),
    ] {
        check(ty, body, expected);
    }
}

#[test]
fn scalars_are_canonical() {
    for (ty, body, expected) in [
        (
            RESOURCES,
            r#"{"limits":{"cpu":"1000m","memory":" 1024Ki "}}"#,
            r#"{"limits":{"cpu":"1","memory":"1Mi"}}"#,
        ),
        (
            RESOURCES,
            r#"{"limits":{"cpu":1.5,"memory":null}}"#,
            r#"{"limits":{"cpu":"1500m","memory":"0"}}"#,
        ),
        (EMPTY_DIR, r#"{"sizeLimit":0}"#, r#"{"sizeLimit":"0"}"#),
        (
            META,
            r#"{"creationTimestamp":"2024-02-29T23:00:00.5+01:00"}"#,
            r#"{"creationTimestamp":"2024-02-29T22:00:00Z"}"#,
        ),
        (META, r#"{"creationTimestamp":null}"#, "{}"),
        (META, r#"{"creationTimestamp":"0001-01-01T00:00:00Z"}"#, "{}"),
        (
            LEASE,
            r#"{"spec":{"renewTime":"2024-01-01T01:00:00.000001+01:00"}}"#,
            r#"{"metadata":{},"spec":{"renewTime":"2024-01-01T00:00:00.000001Z"}}"#,
        ),
        (PORT, r#"{"port":1,"targetPort":"http"}"#, r#"{"port":1,"targetPort":"http"}"#),
        (
            SECRET,
            r#"{"data":{"a":"aGk=","b":"aG\nk=\n","c":"aGl=","d":"","e":null}}"#,
            r#"{"data":{"a":"aGk=","b":"aGk=","c":"aGk=","d":"","e":""},"metadata":{}}"#,
        ),
        (
            REVISION,
            r#"{"data":{"b":[1.0,null],"a":{}},"revision":3}"#,
            r#"{"data":{"a":{},"b":[1,null]},"metadata":{},"revision":3}"#,
        ),
    ] {
        check(ty, body, expected);
    }
}

#[test]
fn type_errors_match_go() {
    for (ty, body, expected) in [
        (
            DEPLOYMENT,
            r#"{"spec":{"replicas":"3"}}"#,
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            DEPLOYMENT,
            r#"{"spec":{"replicas":99999999999}}"#,
            "json: cannot unmarshal number 99999999999 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            DEPLOYMENT,
            r#"{"spec":{"replicas":1.5}}"#,
            "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            DEPLOYMENT,
            r#"{"spec":{"template":{"spec":{"containers":[{"env":[{"name":"A","value":1}]}]}}}}"#,
            "json: cannot unmarshal number into Go struct field EnvVar.spec.template.spec.containers.env.value of type string",
        ),
        (
            POD,
            r#"{"spec":{"containers":{}}}"#,
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            POD,
            r#"{"spec":[{"a":[]}]}"#,
            "json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec",
        ),
        (POD, "[]", "json: cannot unmarshal array into Go value of type v1.Pod"),
        (
            POD,
            r#"{"spec":{"volumes":[{"emptyDir":"x"}]}}"#,
            "json: cannot unmarshal string into Go struct field Volume.spec.volumes.VolumeSource.emptyDir of type v1.EmptyDirVolumeSource",
        ),
        (
            POD,
            r#"{"spec":{"volumes":[{"ephemeral":{"volumeClaimTemplate":{"spec":{"accessModes":[7]}}}}]}}"#,
            "json: cannot unmarshal number into Go struct field PersistentVolumeClaimSpec.spec.volumes.VolumeSource.ephemeral.volumeClaimTemplate.spec.accessModes of type v1.PersistentVolumeAccessMode",
        ),
        (
            POD,
            r#"{"spec":{"containers":[{"resources":{"limits":[]}}]}}"#,
            "json: cannot unmarshal array into Go struct field ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList",
        ),
        (
            META,
            r#"{"labels":{"a":true}}"#,
            "json: cannot unmarshal bool into Go struct field ObjectMeta.labels of type string",
        ),
        (
            META,
            r#"{"labels":[]}"#,
            "json: cannot unmarshal array into Go struct field ObjectMeta.labels of type map[string]string",
        ),
        (
            META,
            r#"{"creationTimestamp":1}"#,
            "json: cannot unmarshal number into Go struct field ObjectMeta.creationTimestamp of type string",
        ),
        (
            META,
            r#"{"creationTimestamp":"x"}"#,
            r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#,
        ),
        (
            PORT,
            r#"{"targetPort":{}}"#,
            "json: cannot unmarshal object into Go struct field ServicePort.targetPort of type int32",
        ),
        (
            PORT,
            r#"{"targetPort":99999999999}"#,
            "json: cannot unmarshal number 99999999999 into Go struct field ServicePort.targetPort of type int32",
        ),
        (
            RESOURCES,
            r#"{"limits":{"cpu":"x"}}"#,
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            RESOURCES,
            r#"{"limits":{"cpu":[1]}}"#,
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (SECRET, r#"{"data":{"a":"a*"}}"#, "illegal base64 data at input byte 1"),
        (SECRET, r#"{"data":{"a":"abc"}}"#, "illegal base64 data at input byte 0"),
        (SECRET, r#"{"data":{"a":"aGk=x"}}"#, "illegal base64 data at input byte 4"),
        (SECRET, r#"{"data":{"a":"a==="}}"#, "illegal base64 data at input byte 1"),
        (SECRET, r#"{"data":{"a":"aG="}}"#, "illegal base64 data at input byte 3"),
        (SECRET, r#"{"data":{"a":"aG=k"}}"#, "illegal base64 data at input byte 2"),
    ] {
        check(ty, body, expected);
    }
}

#[test]
fn error_precedence_matches_go() {
    for (body, expected) in [
        // Syntax errors come first, wherever they are.
        (
            r#"{"labels":1,"creationTimestamp":"x" x"#,
            "invalid character 'x' after object key:value pair",
        ),
        (r#"{"labels":1} x"#, "invalid character 'x' after top-level value"),
        // A type with its own decoder fails at once, others at the end.
        (
            r#"{"labels":1,"creationTimestamp":"x"}"#,
            r#"parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006""#,
        ),
        // Of several errors the first counts.
        (
            r#"{"name":1,"labels":1}"#,
            "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string",
        ),
    ] {
        check(META, body, expected);
    }
}

#[test]
fn unknown_and_duplicate_fields_are_reported_with_paths() {
    for (ty, body, expected) in [
        (
            POD,
            r#"{"foo":1,"spec":{"Containers":[]}}"#,
            &[r#"unknown field "foo""#, r#"unknown field "spec.Containers""#][..],
        ),
        (
            POD,
            r#"{"spec":{"containers":[{},{"foo":{"bar":1,"bar":2}}]}}"#,
            &[r#"unknown field "spec.containers[1].foo""#],
        ),
        (
            POD,
            r#"{"spec":{"hostname":"a","hostname":"b"},"metadata":{"labels":{"a.b/c":"1","a.b/c":"2"}}}"#,
            &[r#"duplicate field "spec.hostname""#, r#"duplicate field "metadata.labels.a.b/c""#],
        ),
        (
            POD,
            r#"{"kind":"Pod","kind":null,"kind":"Pod","foo":1,"foo":2}"#,
            &[r#"duplicate field "kind""#, r#"unknown field "foo""#],
        ),
        (POD, r#"{"a\"b":1}"#, &[r#"unknown field "a\"b""#]),
        // Upstream keeps raw objects as bytes.
        (REVISION, r#"{"data":{"a":1,"a":2}}"#, &[]),
    ] {
        check_problems(ty, body, Format::Json, expected);
    }
    // Upstream finds duplicate keys of YAML before it decodes the object, by line and in go-yaml's
    // words.
    let yaml = "spec:\n  hostname: a\n  hostname: b\n  foo: 1\n";
    let words = [r#"line 3: key "hostname" already set in map"#, r#"unknown field "spec.foo""#];
    check_problems(POD, yaml, Format::Yaml, &words);
    // The tree that it decodes then has sorted members.
    let yaml = "spec: {z: 1, hostname: a, containers: [{}, {foo: 1}]}\nmetadata: {foo: 1}\na: 1\n";
    let words = [
        r#"unknown field "a""#,
        r#"unknown field "metadata.foo""#,
        r#"unknown field "spec.containers[1].foo""#,
        r#"unknown field "spec.z""#,
    ];
    check_problems(POD, yaml, Format::Yaml, &words);
}

#[test]
fn the_last_duplicate_counts_and_unknown_fields_are_dropped() {
    let body = r#"{"data":{"a":"1","a":"2"},"immutable":true,"immutable":false,"foo":[{}]}"#;
    let decoded = decode_as(CONFIG_MAP, body, Format::Json).unwrap();
    let expected = r#"{"data":{"a":"2"},"immutable":false,"metadata":{}}"#;
    assert_eq!(json::to_string(&decoded.value), expected);
}

#[test]
fn problems_are_bounded() {
    let members: Vec<_> = (0..10_000).map(|i| format!(r#""x{i}":1"#)).collect();
    let body = format!("{{{}}}", members.join(","));
    assert_eq!(decode_as(POD, &body, Format::Json).unwrap().problems.len(), PROBLEMS_MAX);
}

#[test]
fn nesting_is_bounded() {
    let nest = |levels: usize| {
        let open = r#"{"properties":{"a":"#.repeat(levels);
        let schema = format!("{open}{{}}{}", "}}".repeat(levels));
        format!(r#"{{"spec":{{"versions":[{{"schema":{{"openAPIV3Schema":{schema}}}}}]}}}}"#)
    };
    let deep = decode_as(CRD, &nest(250), Format::Json).unwrap();
    let mut again = deep.value.clone();
    let ty = builtin().find(CRD).unwrap();
    assert_eq!(conform(builtin(), ty, &mut again), Ok(Vec::new()));
    assert_eq!(again, deep.value);
    crate::default::apply(builtin(), ty, &mut again);
    crate::validate::validate(builtin(), ty, &again, None);
    let mut out = Vec::new();
    crate::encode::write(builtin(), ty, &again, &mut out);
    assert_eq!(
        decode_as(CRD, &nest(300), Format::Json).unwrap_err().to_string(),
        "exceeded max depth"
    );
    let body = r#"{"metadata":"#.to_owned() + &"[".repeat(100_000);
    assert_eq!(decode_as(POD, &body, Format::Json).unwrap_err().to_string(), "exceeded max depth");
}

#[test]
fn a_failed_conform_changes_nothing() {
    let ty = builtin().find(CONFIG_MAP).unwrap();
    let mut tree = Value::from([("data", Value::from([("a", 1)])), ("x", Value::Null)]);
    let before = tree.clone();
    assert!(conform(builtin(), ty, &mut tree).is_err());
    assert_eq!(tree, before);
}

/// `FromUnstructured` of upstream's apimachinery.
#[test]
fn conversion_errors_are_those_of_upstreams_converter() {
    for (ty, json, expected) in [
        ("core.v1.ConfigMap", r#"{"data":{"a":1}}"#, Some("cannot convert int64 to string")),
        ("core.v1.ConfigMap", r#"{"data":{"a":true}}"#, Some("unrecognized type: string")),
        ("core.v1.ConfigMap", r#"{"data":{"a":1.5}}"#, Some("unrecognized type: string")),
        ("core.v1.ConfigMap", r#"{"data":[]}"#, Some("cannot restore map from slice")),
        ("core.v1.ConfigMap", r#"{"data":{"a":null}}"#, None),
        (
            "core.v1.ConfigMap",
            r#"{"binaryData":{"a":"_"}}"#,
            Some("error decoding from json: illegal base64 data at input byte 0"),
        ),
        ("core.v1.Pod", r#"{"spec":[]}"#, Some("cannot restore struct from: slice")),
        ("core.v1.Pod", r#"{"spec":{"containers":{}}}"#, Some("cannot restore slice from map")),
        (
            "core.v1.Pod",
            r#"{"spec":{"containers":[{"command":"x"}]}}"#,
            Some("cannot restore slice from string"),
        ),
        ("core.v1.Pod", r#"{"status":{"phase":1}}"#, Some("cannot convert int64 to v1.PodPhase")),
        ("apps.v1.Deployment", r#"{"spec":{"replicas":"x"}}"#, Some("unrecognized type: int32")),
        (
            "apps.v1.Deployment",
            r#"{"spec":{"replicas":1.5}}"#,
            Some("cannot convert float64 to int32"),
        ),
        (
            "apps.v1.Deployment",
            r#"{"spec":{"strategy":{"rollingUpdate":{"maxSurge":1.5}}}}"#,
            Some("json: cannot unmarshal number 1.5 into Go value of type int32"),
        ),
    ] {
        let value = json::parse(json.as_bytes()).unwrap();
        let ty = builtin().find(&format!("io.k8s.api.{ty}")).unwrap();
        let found = conversion_error(builtin(), ty, &value);
        assert_eq!(found.as_deref(), expected, "{json}");
    }
}

/// A decoder expects the members of the item before; these have others, repeated ones, and another
/// order.
#[test]
fn members_come_in_any_order() {
    const MEMBERS: [(&str, &str); 4] =
        [("name", r#""a""#), ("port", "1"), ("protocol", r#""b""#), ("targetPort", "2")];
    let mut seed = 1_u32;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 16) as usize % below
    };
    for _ in 0..1000 {
        let (mut items, mut expected, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..8 {
            let given: Vec<_> = (0..random(6)).map(|_| MEMBERS[random(4)]).collect();
            let text: Vec<_> =
                given.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
            items.push(format!("{{{}}}", text.join(",")));
            let written = MEMBERS.iter().filter_map(|(key, value)| {
                let zero = key.to_lowercase().ends_with("port").then_some(&"0");
                let value =
                    given.iter().any(|(other, _)| other == key).then_some(value).or(zero)?;
                Some(format!("\"{key}\":{value}"))
            });
            expected.push(format!("{{{}}}", written.collect::<Vec<_>>().join(",")));
            for (at, (key, _)) in given.iter().enumerate() {
                let path = format!("spec.ports[{i}].{key}");
                if given[..at].iter().any(|(other, _)| other == key) && !repeated.contains(&path) {
                    repeated.push(path);
                }
            }
        }
        for comma in [",", " , "] {
            let body =
                format!(r#"{{"spec":{{"ports":[{}]}}}}"#, items.join(",").replace(',', comma));
            let decoded = decode_as(SERVICE, &body, Format::Json).unwrap();
            let ports = decoded.value.at(&["spec", "ports"]).map(json::to_string);
            assert_eq!(ports, Some(format!("[{}]", expected.join(","))), "{body}");
            let problems: Vec<&str> = decoded.problems.iter().map(Problem::path).collect();
            assert_eq!(problems, repeated, "{body}");
        }
    }
}

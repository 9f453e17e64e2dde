//! Upstream's cases of `mutating/patch`, on Deployments.

use pintle_cel::{Budget, ResourceCheck};
use pintle_schema::{builtin, builtin_kind, conform};
use pintle_value::{Value, json};

use super::Failures;
use super::patch::{Problem, apply, patch};
use super::policy::Policy;
use crate::expressions::{ANYTHING, Compiler, Evaluation, Expected, Inputs, Variables};
use crate::permissions::strict;

fn tree(text: &str) -> Value {
    json::parse(text.as_bytes()).expect(text)
}

/// Evaluates a mutation and applies it to a Deployment; returns the mutated object or the error.
fn mutated(expression: &str, use_as: Expected, object: &Value) -> Result<Value, String> {
    let compiler = Compiler::of_policy(ANYTHING, None);
    let expression = compiler.compile(expression, use_as);
    if let Some(why) = expression.problem() {
        return Err(why.to_owned());
    }
    let variables = Variables::default();
    let inputs = Inputs {
        object,
        old: &tree(r#"{"spec":{"replicas":2}}"#),
        request: &Value::Null,
        namespace: &Value::Null,
        params: None,
        authorizer: &strict(),
        resource: &ResourceCheck::default(),
    };
    let evaluation = Evaluation::new(inputs, &variables);
    let output = evaluation.of(&expression, &mut Budget::new(10_000_000));
    let output = output.map_err(|why| why.into_text())?;
    let ty = builtin_kind("apps/v1", "Deployment").expect("a Deployment is built in");
    let changed = match use_as {
        Expected::Object => apply((builtin(), ty), object, output),
        _ => patch((builtin(), ty), object, &output),
    };
    changed.map_err(|problem| match problem {
        Problem::Policy(why) => why,
        Problem::Request(status) => status.message,
    })
}

/// Returns a Deployment with these members.
fn deployment(content: &str) -> Value {
    tree(&format!(r#"{{"apiVersion":"apps/v1","kind":"Deployment",{content}}}"#))
}

fn containers(list: &str) -> String {
    format!(r#""spec":{{"template":{{"spec":{{"containers":{list}}}}}}}"#)
}

fn both(first: &str, list: &str) -> String {
    format!(r#""spec":{{"template":{{"spec":{{"initContainers":{first},"containers":{list}}}}}}}"#)
}

fn typed(mut object: Value) -> Value {
    let ty = builtin_kind("apps/v1", "Deployment").expect("a Deployment is built in");
    let unknown = conform(builtin(), ty, &mut object);
    assert_eq!(unknown, Ok(Vec::new()));
    object
}

fn check(use_as: Expected, expression: &str, before: &str, expected: Result<&str, &str>) {
    let found = mutated(expression, use_as, &deployment(before));
    match expected {
        // Both are compared in the form of Go's types, which set some fields themselves.
        Ok(after) => {
            assert_eq!(found.map(typed), Ok(typed(deployment(after))), "{expression}");
        }
        Err(why) => {
            let found = found.expect_err(expression);
            assert!(found.contains(why), "{expression}: {found}");
        }
    }
}

#[test]
fn json_patches_are_applied() {
    let labels = |all: &str| format!(r#""metadata":{{"labels":{all}}}"#);
    let replicas = |n: u8| format!(r#""spec":{{"replicas":{n}}}"#);
    let (a, x) = (r#"{"name":"a"}"#, r#"{"name":"x"}"#);
    let main = r#"{"name":"main"}"#;
    let init = |n: u8| format!(r#"{{"name":"init-{n}","command":["echo"]}}"#);
    let made = |n: u8| {
        format!("Object.spec.template.spec.initContainers{{name: 'init-{n}', command: ['echo']}}")
    };
    let all = "object.spec.template.spec.containers";
    let at = "/spec/template/spec/containers";
    let first = "/spec/template/spec/initContainers";
    let added = |value: &str| format!("op: 'add', path: '{first}', value: {value}");
    for (operations, before, after) in [
        ("op: 'test', path: '/spec/replicas', value: 100}, JSONPatch{op: 'replace', path: '/spec/replicas', value: 3".to_owned(), replicas(1), replicas(1)),
        ("op: 'test', path: '/spec/replicas', value: 1}, JSONPatch{op: 'replace', path: '/spec/replicas', value: 3".to_owned(), replicas(1), replicas(3)),
        ("op: 'remove', path: '/spec/replicas'".to_owned(), replicas(1), r#""spec":{}"#.to_owned()),
        ("op: 'remove', path: '/metadata/labels/y'".to_owned(), labels(r#"{"x":"1","y":"1"}"#), labels(r#"{"x":"1"}"#)),
        (format!("op: 'remove', path: '{at}/1'"), containers(&format!(r#"[{a},{{"name":"b"}},{x}]"#)), containers(&format!("[{a},{x}]"))),
        ("op: 'copy', from: '/metadata/labels/x', path: '/metadata/labels/y'".to_owned(), labels(r#"{"x":"1"}"#), labels(r#"{"x":"1","y":"1"}"#)),
        (format!("op: 'copy', from: '{at}/0', path: '{at}/-'"), containers(&format!("[{a},{x}]")), containers(&format!("[{a},{x},{a}]"))),
        ("op: 'move', from: '/metadata/labels/x', path: '/metadata/labels/y'".to_owned(), labels(r#"{"x":"1"}"#), labels(r#"{"y":"1"}"#)),
        (format!("op: 'move', from: '{at}/0', path: '{at}/-'"), containers(&format!("[{a},{x}]")), containers(&format!("[{x},{a}]"))),
        ("op: 'add', path: '/metadata/labels/x', value: '2'".to_owned(), labels(r#"{"y":"1"}"#), labels(r#"{"x":"2","y":"1"}"#)),
        ("op: 'add', path: '/metadata/labels', value: {'y': '2'}".to_owned(), labels(r#"{"x":"1"}"#), labels(r#"{"y":"2"}"#)),
        (format!("op: 'add', path: '{at}/0', value: {{'name': 'x'}}"), containers(&format!("[{a}]")), containers(&format!("[{x},{a}]"))),
        (format!("op: 'replace', path: '{at}/0', value: {{'name': 'x'}}"), containers(&format!("[{a}]")), containers(&format!("[{x}]"))),
        ("op: 'replace', path: '/metadata/labels', value: {'y': '2'}".to_owned(), labels("{}"), labels(r#"{"y":"2"}"#)),
        ("op: 'add', path: '/spec', value: Object.spec{selector: Object.spec.selector{}, replicas: 10}".to_owned(), r#""spec":{}"#.to_owned(), r#""spec":{"replicas":10,"selector":{}}"#.to_owned()),
        ("op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('k8s.io/x~y'), value: 'true'".to_owned(), labels("{}"), labels(r#"{"k8s.io/x~y":"true"}"#)),
        (format!("op: 'add', path: '{at}/-', value: Object.spec.template.spec.containers{{name: 'x', ports: [Object.spec.template.spec.containers.ports{{containerPort: 8080}}]}}"), containers(&format!("[{a}]")), containers(&format!(r#"[{a},{{"name":"x","ports":[{{"containerPort":8080}}]}}]"#))),
        (format!("op: 'add', path: '{at}/1', value: {all}[0]"), containers(&format!("[{a}]")), containers(&format!("[{a},{a}]"))),
        (format!("op: 'add', path: '{at}', value: {all} + [{all}[0]]"), containers(&format!("[{a}]")), containers(&format!("[{a},{a}]"))),
        (added(all), containers(&format!("[{main}]")), both(&format!("[{main}]"), &format!("[{main}]"))),
        (added(&format!("{all} + [{{'name': 'x'}}]")), containers(&format!("[{main}]")), both(&format!("[{main},{x}]"), &format!("[{main}]"))),
        (added(&format!("{all} + [{}]", made(1))), containers(&format!("[{main}]")), both(&format!("[{main},{}]", init(1)), &format!("[{main}]"))),
        (added(&format!("[{}] + {all}", made(1))), containers(&format!("[{main}]")), both(&format!("[{},{main}]", init(1)), &format!("[{main}]"))),
        (added(&format!("[{}] + [{}]", made(1), made(2))), containers(&format!("[{main}]")), both(&format!("[{},{}]", init(1), init(2)), &format!("[{main}]"))),
        ("op: 'add', path: '/metadata/labels/added', value: object.metadata.labels.all(k, k != 'bad') ? 'yes' : 'no'".to_owned(), labels(r#"{"env":"prod"}"#), labels(r#"{"added":"yes","env":"prod"}"#)),
        ("op: 'add', path: '/spec/progressDeadlineSeconds', value: object.spec.replicas".to_owned(), replicas(3), r#""spec":{"progressDeadlineSeconds":3,"replicas":3}"#.to_owned()),
    ] {
        let expression = format!("[JSONPatch{{{operations}}}]");
        check(Expected::Patches, &expression, &before, Ok(&after));
    }
}

/// Expressions can read and compare patches and objects.
#[test]
fn patches_are_values() {
    for (expression, expected) in [
        ("JSONPatch{op: 'a'}.op", "a"),
        ("JSONPatch{op: 'a'}.path", ""),
        ("JSONPatch{value: 'a'}.value", "a"),
        ("string(has(JSONPatch{op: 'a'}.op))", "true"),
        ("string(has(JSONPatch{}.op))", "false"),
        ("string(has(JSONPatch{}.value))", "false"),
        ("string(JSONPatch{} == JSONPatch{})", "true"),
        ("string(JSONPatch{op: 'a', value: 1} == JSONPatch{op: 'a', value: 1})", "true"),
        ("string(JSONPatch{op: 'a', value: 1} == JSONPatch{op: 'a', value: '1'})", "false"),
        ("string(JSONPatch{op: 'a'} == JSONPatch{op: 'b'})", "false"),
        ("string(Object.a{b: 1} == Object.a{b: 1})", "true"),
        ("string(dyn(Object.a{b: 1}) == Object.c{b: 1})", "false"),
    ] {
        let expression = format!(
            "[JSONPatch{{op: 'add', path: '/metadata', value: {{'name': string({expression})}}}}]"
        );
        let after = format!(r#""metadata":{{"name":"{expected}"}}"#);
        check(Expected::Patches, &expression, r#""spec":{}"#, Ok(&after));
    }
}

#[test]
fn errors_of_json_patches_are_reported() {
    let at = "/spec/template/spec/containers/-";
    for (operations, expected) in [
        (
            format!(
                "op: 'add', path: '{at}', value: Object.spec.template.spec.containers{{name: 'x', ports: [Object.spec.template.spec.containers.ports{{containerPortZ: 1}}]}}"
            ),
            "strict decoding error: unknown field \"spec.template.spec.containers[1].ports[0].containerPortZ\"",
        ),
        (
            format!(
                "op: 'add', path: '{at}', value: Object.spec.template.spec.containers{{name: 'x', ports: [Object.spec.template.spec.containers.portsZ{{containerPort: 1}}]}}"
            ),
            "type mismatch: unexpected type name \"Object.spec.template.spec.containers.portsZ\", expected \"Object.spec.template.spec.containers.ports\", which matches field name path from root Object type",
        ),
        (
            format!("op: 'replace', path: '{at}', value: {{'name': 'x'}}"),
            "JSON Patch: replace operation does not apply: doc is missing key: /spec/template/spec/containers/-: missing value",
        ),
        ("op: object.none".to_owned(), "resulted in error: no such key: none"),
        (
            "op: 'replace', path: '/apiVersion', value: 'apps/v9'".to_owned(),
            "no kind \"Deployment\" is registered for version \"apps/v9\" in scheme",
        ),
    ] {
        let expression = format!("[JSONPatch{{{operations}}}]");
        check(Expected::Patches, &expression, &containers(r#"[{"name":"a"}]"#), Err(expected));
    }
}

#[test]
fn apply_configurations_are_merged() {
    let volumes = |list: &str| format!(r#""spec":{{"template":{{"spec":{{"volumes":{list}}}}}}}"#);
    let replicas = |n: u8| format!(r#""spec":{{"replicas":{n}}}"#);
    let pod = |spec: &str| {
        format!(
            "spec: Object.spec{{template: Object.spec.template{{spec: Object.spec.template.spec{{{spec}}}}}}}"
        )
    };
    let env = |list: &str| containers(&format!(r#"[{{"name":"a","env":{list}}}]"#));
    for (configuration, before, after) in [
        (pod("volumes: [Object.spec.template.spec.volumes{name: 'y'}]"), volumes(r#"[{"name":"x"}]"#), volumes(r#"[{"name":"x"},{"name":"y"}]"#)),
        (pod("volumes: [Object.spec.template.spec.volumes{name: 'y', hostPath: Object.spec.template.spec.volumes.hostPath{path: 'a'}}]"), volumes(r#"[{"name":"x"},{"name":"y"}]"#), volumes(r#"[{"name":"x"},{"name":"y","hostPath":{"path":"a"}}]"#)),
        ("spec: Object.spec{replicas: object.spec.replicas % 2 == 0 ? object.spec.replicas + 1 : object.spec.replicas}".to_owned(), replicas(2), replicas(3)),
        ("spec: Object.spec{replicas: oldObject.spec.replicas % 2 == 0 ? oldObject.spec.replicas + 1 : 0}".to_owned(), replicas(1), replicas(3)),
        ("metadata: Object.metadata{?labels: has(object.none) ? optional.of({'a': 'b'}) : optional.none()}, spec: Object.spec{?replicas: optional.of(4)}".to_owned(), replicas(1), r#""metadata":{},"spec":{"replicas":4}"#.to_owned()),
        ("spec: Object.spec{replicas: 3}".to_owned(), format!(r#"{},"metadata":{{}}"#, env(r#"[{"name":"t","value":"a"},{"name":"t","value":"b"}]"#)), r#""metadata":{},"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"a","env":[{"name":"t","value":"a"},{"name":"t","value":"b"}]}]}}}"#.to_owned()),
        (pod("containers: [Object.spec.template.spec.containers{name: 'a', env: [Object.spec.template.spec.containers.env{name: 't', value: 'c'}]}]"), env(r#"[{"name":"t","value":"a"},{"name":"t","value":"b"},{"name":"f","value":"g"}]"#), env(r#"[{"name":"t","value":"c"},{"name":"f","value":"g"}]"#)),
    ] {
        check(Expected::Object, &format!("Object{{{configuration}}}"), &before, Ok(&after));
    }
    for (expression, expected) in [
        (
            "Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'l': 'v'}}}}",
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.selector",
        ),
        (
            "Object{spec: Object.specx{replicas: 1}}",
            "type mismatch: unexpected type name \"Object.specx\", expected \"Object.spec\", which matches field name path from root Object type",
        ),
        (
            "Object{spec: Object.spec{replicasx: 1}}",
            "error applying patch: failed to convert patch object to typed object: .spec.replicasx: field not declared in schema",
        ),
        (
            "Object{spec: Object.spec{replicas: 'a'}}",
            "error applying patch: failed to convert patch object to typed object: .spec.replicas: expected numeric (int or float), got string",
        ),
        ("'no'", "must evaluate to Object but got string"),
        ("Object.spec.metadata{}", "must evaluate to Object but got Object.spec.metadata"),
    ] {
        check(Expected::Object, expression, &replicas(1), Err(expected));
    }
}

#[test]
fn expressions_must_have_the_type_of_their_mutation() {
    let apply = |text: &str| {
        format!(
            r#"{{"patchType":"ApplyConfiguration","applyConfiguration":{{"expression":"{text}"}}}}"#
        )
    };
    let patch = |text: &str| {
        format!(r#"{{"patchType":"JSONPatch","jsonPatch":{{"expression":"{text}"}}}}"#)
    };
    for (mutation, expected) in [
        (apply("Object{spec: Object.spec{replicas: 1}}"), ""),
        (apply("object"), "must evaluate to Object but got dyn"),
        (apply("{'a': 1}"), "must evaluate to Object but got map(string, int)"),
        (apply("true ? Object{} : Object{a: 1}"), ""),
        (apply("Other{}"), "undeclared reference to 'Other'"),
        (patch("[JSONPatch{op: 'add', path: '/a', value: Object.a{}}]"), ""),
        (patch("JSONPatch{}"), "must evaluate to list(JSONPatch) but got JSONPatch"),
        (patch("[]"), "must evaluate to list(JSONPatch) but got list(dyn)"),
        (
            patch("[JSONPatch{op: 1}]"),
            "expected type of field 'op' is 'string' but provided type is 'int'",
        ),
        (patch("[JSONPatch{what: 'a'}]"), "undefined field 'what'"),
    ] {
        let spec = format!(r#"{{"spec":{{"mutations":[{mutation}]}}}}"#);
        let problems = Policy::read(&tree(&spec)).problems();
        let text = problems.first().map_or(String::new(), ToString::to_string);
        assert_eq!(text.is_empty(), expected.is_empty(), "{mutation}: {text}");
        assert!(text.contains(expected), "{mutation}: {text}");
    }
}

/// A policy fails for each of its parameters, with the text of an expression.
#[test]
fn the_messages_of_failures_are_bounded() {
    let policy = Policy::read(&tree(r#"{"metadata":{"name":"p"},"spec":{}}"#));
    let (mut failures, why) = (Failures::default(), "x".repeat(100_000));
    for _ in 0..100_000 {
        failures.add(&policy.head, None, &why, None);
    }
    assert_eq!((failures.messages.len(), failures.messages[3].as_str()), (4, "and more errors"));
}

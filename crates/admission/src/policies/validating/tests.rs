use pintle_cel::ResourceCheck;
use pintle_meta::Reason;
use pintle_registry::admission::Operation;
use pintle_value::{Value, json};

use super::Outcome;
use super::evaluation::{self, Effect};
use super::policy::Policy;
use crate::expressions::Inputs;
use crate::measures::Measures;
use crate::permissions::strict;

fn tree(text: &str) -> Value {
    json::parse(text.as_bytes()).expect(text)
}

/// Returns the failures of a policy with this spec, without ignored ones, when `jane` creates an
/// object `a` with two replicas. The parameters are `{"max": 1}` if the spec has a `paramKind`.
fn failures(spec: &str) -> Vec<(String, Reason)> {
    let policy = Policy::read(&tree(&format!(r#"{{"metadata":{{"name":"p"}},"spec":{spec}}}"#)));
    let params = tree(r#"{"max":1}"#);
    let inputs = Inputs {
        object: &tree(
            r#"{"metadata":{"name":"a","creationTimestamp":"2026-01-01T00:00:00Z"},
            "spec":{"replicas":2}}"#,
        ),
        old: &Value::Null,
        request: &tree(r#"{"operation":"CREATE","userInfo":{"username":"jane","groups":["x"]}}"#),
        params: policy.head.params.is_some().then_some(&params),
        namespace: &tree(r#"{"metadata":{"name":"n","labels":{"env":"test"}}}"#),
        authorizer: &strict(),
        resource: &ResourceCheck::default(),
    };
    let measures = Measures::default();
    let mut found = evaluation::failures(&policy, inputs, (&measures, Operation::Create)).0;
    found.retain(|failure| failure.effect != Effect::Ignore);
    found.into_iter().map(|failure| (failure.message, failure.reason)).collect()
}

fn check(spec: &str, expected: &[&str]) {
    let failures: Vec<String> = failures(spec).into_iter().map(|(message, _)| message).collect();
    assert_eq!(failures, expected, "{spec}");
}

fn validations(all: &str) -> String {
    format!(r#"{{"validations":[{all}]}}"#)
}

#[test]
fn failed_validations_have_messages() {
    for (validation, expected) in [
        (r#"{"expression":"object.spec.replicas > 1"}"#, ""),
        (
            r#"{"expression":" object.spec.replicas > 2 "}"#,
            "failed expression: object.spec.replicas > 2",
        ),
        (r#"{"expression":"false","message":" too many "}"#, "too many"),
        (
            r#"{"expression":"false","message":"m","messageExpression":"'has ' + string(object.spec.replicas)"}"#,
            "has 2",
        ),
        (r#"{"expression":"false","message":"m","messageExpression":"'  '"}"#, "m"),
        (r#"{"expression":"false","message":"m","messageExpression":"'a\\nb'"}"#, "m"),
        (r#"{"expression":"false","message":"m","messageExpression":"object.none"}"#, "m"),
        (r#"{"expression":"request.userInfo.username == 'jane'"}"#, ""),
        (r#"{"expression":"'x' in request.userInfo.groups && oldObject == null"}"#, ""),
        (r#"{"expression":"namespaceObject.metadata.labels['env'] == 'test'"}"#, ""),
        (
            r#"{"expression":"object.spec.none > 1"}"#,
            "expression 'object.spec.none > 1' resulted in error: no such key: none",
        ),
        (
            r#"{"expression":"object.metadata.name"}"#,
            "compilation error: must evaluate to bool but got dyn",
        ),
        (r#"{"expression":"'a'"}"#, "compilation error: must evaluate to bool but got string"),
    ] {
        let expected: Vec<&str> = Some(expected).filter(|e| !e.is_empty()).into_iter().collect();
        check(&validations(validation), &expected);
    }
    let several = r#"{"expression":"false"},{"expression":"true"},{"expression":"1 > 2"}"#;
    check(&validations(several), &["failed expression: false", "failed expression: 1 > 2"]);
}

#[test]
fn unknown_names_are_compilation_errors() {
    for (expression, expected) in [
        ("params.max > 1", "undeclared reference to 'params'"),
        ("request.none == ''", "undefined field 'none'"),
        ("variables.none == ''", "undeclared reference to 'variables'"),
    ] {
        let spec = validations(&format!(r#"{{"expression":"{expression}"}}"#));
        let failures = failures(&spec);
        let text = &failures[0].0;
        let is_compilation_error =
            text.starts_with("compilation error: compilation failed: ERROR: <input>:1:");
        assert!(is_compilation_error && text.contains(expected), "{text}");
        assert_eq!(failures[0].1, Reason::Invalid);
    }
}

#[test]
fn expressions_authorize_users() {
    for (expression, expected) in [
        ("authorizer.path('/healthz').check('get').allowed()", ""),
        ("!authorizer.path('/healthz').check('post').allowed()", ""),
        (
            "authorizer.group('apps').resource('deployments').namespace('n').check('get').reason() == 'may get'",
            "",
        ),
        (
            "!authorizer.group('').resource('pods').subresource('log').name('a').check('get').allowed()",
            "",
        ),
        ("!authorizer.serviceAccount('n', 'a').path('/').check('get').allowed()", ""),
        (
            "authorizer.requestResource.check('get').allowed()",
            "failed expression: authorizer.requestResource.check('get').allowed()",
        ),
        (
            "!authorizer.path('/').check('get').errored() && authorizer.path('/').check('get').error() == ''",
            "",
        ),
        (
            "authorizer.path(' ').check('get').allowed()",
            "expression 'authorizer.path(' ').check('get').allowed()' resulted in error: path must not be empty",
        ),
        (
            "authorizer.group('').resource('').check('get').allowed()",
            "expression 'authorizer.group('').resource('').check('get').allowed()' resulted in error: resource must not be empty",
        ),
        (
            "authorizer.serviceAccount('n', 'A').path('/').check('get').allowed()",
            "expression 'authorizer.serviceAccount('n', 'A').path('/').check('get').allowed()' resulted in error: Invalid service account name",
        ),
        (
            "authorizer.group('').resource('pods').namespace('n').fieldSelector('a=b').labelSelector('c').check('get').allowed()",
            "",
        ),
    ] {
        let expected: Vec<&str> = Some(expected).filter(|e| !e.is_empty()).into_iter().collect();
        check(&validations(&format!(r#"{{"expression":"{expression}"}}"#)), &expected);
    }
    // A message expression cannot use `authorizer`, but can use a variable that does.
    let asked = r#"{"name":"may","expression":"authorizer.path('/').check('get')"}"#;
    let spec = |message: &str| {
        format!(
            r#"{{"variables":[{asked}],
            "validations":[{{"expression":"!variables.may.allowed()","message":"no","messageExpression":"{message}"}}]}}"#
        )
    };
    check(&spec("'why: ' + variables.may.reason()"), &["why: may get"]);
    let policy = Policy::read(&tree(&format!(
        r#"{{"spec":{}}}"#,
        spec("authorizer.path('/').check('get').reason()")
    )));
    let problems = policy.problems();
    assert!(
        problems[0].to_string().contains("undeclared reference to 'authorizer'"),
        "{problems:?}"
    );
}

/// The value of a variable need not be JSON data.
#[test]
fn variables_can_have_any_type() {
    for (variable, expression) in [
        ("quantity('1Ki')", "variables.a.isGreaterThan(quantity('1000'))"),
        ("url('http://a/b')", "variables.a.getHost() == 'a'"),
        ("[ip('10.0.0.1')]", "variables.a.all(one, one.family() == 4)"),
        (
            "authorizer.group('').resource('pods').namespace('n')",
            "variables.a.check('get').allowed()",
        ),
        ("request.userInfo", "variables.a.username == 'jane' && !has(variables.a.none)"),
        ("optional.of(1)", "variables.a.hasValue() && variables.a.value() == 1"),
        ("1u", "variables.a == 1u"),
        ("null", "variables.a == null"),
        ("object.none", "has(object.none) || true"),
    ] {
        let failures = failures(&format!(
            r#"{{"variables":[{{"name":"a","expression":"{variable}"}}],
            "validations":[{{"expression":"{expression}"}}]}}"#
        ));
        assert_eq!(failures, [], "{variable}");
    }
}

#[test]
fn long_chains_of_variables_are_bounded() {
    let chain: Vec<String> = (1..200)
        .map(|n| format!(r#"{{"name":"v{n}","expression":"variables.v{} + 1"}}"#, n - 1))
        .collect();
    check(
        &format!(
            r#"{{"variables":[{{"name":"v0","expression":"0"}},{}],
            "validations":[{{"expression":"variables.v199 == 199"}}]}}"#,
            chain.join(",")
        ),
        &[],
    );
    // The size of types and the depth of nested values are bounded.
    for (item, expected) in [
        ("variables.v", "type size exceeds limit"),
        ("dyn(variables.v)", "values are nested too deeply"),
    ] {
        let item = |n: usize| item.replace(".v", &format!(".v{n}"));
        let deep = |n: usize| {
            let item = item(n - 1);
            format!(r#"{{"name":"v{n}","expression":"[[[[[[[[[[{item}]]]]]]]]]]"}}"#)
        };
        let deep: Vec<String> = (1..200).map(deep).collect();
        let failures = failures(&format!(
            r#"{{"variables":[{{"name":"v0","expression":"0"}},{}],
            "validations":[{{"expression":"variables.v199 == []"}}]}}"#,
            deep.join(",")
        ));
        assert!(failures[0].0.contains(expected), "{failures:?}");
    }
    // A second variable of the same name can use the first; later expressions use the second.
    check(
        r#"{"variables":[{"name":"a","expression":"1"},{"name":"a","expression":"variables.a + 1"}],
        "validations":[{"expression":"variables.a == 2"}]}"#,
        &[],
    );
}

#[test]
fn invalid_expressions_are_validation_errors() {
    for (spec, expected) in [
        (
            r#"{"validations":[{"expression":"true"},{"expression":"object.x"}]}"#,
            &[
                "spec.validations[1].expression: Invalid value: \"object.x\": must evaluate to bool but got dyn",
            ][..],
        ),
        (
            r#"{"validations":[{"expression":"true","messageExpression":"1"}]}"#,
            &[
                "spec.validations[0].messageExpression: Invalid value: \"1\": must evaluate to string but got int",
            ],
        ),
        (
            r#"{"variables":[{"name":"a","expression":"1"}],"matchConditions":[{"expression":"variables.a"}],
            "auditAnnotations":[{"valueExpression":"2"}]}"#,
            &[
                "spec.matchConditions[0].expression: Invalid value: \"variables.a\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'variables' (in container '')\n | variables.a\n | ^",
                "spec.auditAnnotations[0].valueExpression: Invalid value: \"2\": must evaluate to one of [string null_type] but got int",
            ],
        ),
        (r#"{"validations":[{"expression":"authorizer.path('/').check('get').allowed()"}]}"#, &[]),
    ] {
        let policy = Policy::read(&tree(&format!(r#"{{"spec":{spec}}}"#)));
        let failures: Vec<String> = policy.problems().iter().map(ToString::to_string).collect();
        assert_eq!(failures, expected, "{spec}");
    }
}

#[test]
fn a_validation_can_set_its_reason() {
    for (reason, expected) in [
        ("Forbidden", Reason::Forbidden),
        ("Unauthorized", Reason::Unauthorized),
        ("RequestEntityTooLarge", Reason::RequestEntityTooLarge),
        ("Invalid", Reason::Invalid),
        ("", Reason::Invalid),
    ] {
        let validation = format!(r#"{{"expression":"false","reason":"{reason}"}}"#);
        assert_eq!(failures(&validations(&validation))[0].1, expected, "{reason}");
    }
}

#[test]
fn match_conditions_are_evaluated_before_validations() {
    for (policy, conditions, expected) in [
        ("Fail", r#"{"expression":"object.metadata.name == 'b'"}"#, &[][..]),
        ("Fail", r#"{"expression":"object.metadata.name == 'a'"}"#, &["failed expression: false"]),
        (
            "Fail",
            r#"{"expression":"object.none == 1"}"#,
            &["expression 'object.none == 1' resulted in error: no such key: none"],
        ),
        ("Ignore", r#"{"expression":"object.none == 1"}"#, &[]),
        ("Fail", r#"{"expression":"object.none == 1"},{"expression":"false"}"#, &[]),
    ] {
        check(
            &format!(
                r#"{{"failurePolicy":"{policy}","matchConditions":[{conditions}],
                "validations":[{{"expression":"false"}}]}}"#
            ),
            expected,
        );
    }
}

#[test]
fn errors_of_a_policy_that_ignores_failures_have_no_effect() {
    for (expression, expected) in
        [("object.none == 1", &[][..]), ("no CEL", &[]), ("false", &["failed expression: false"])]
    {
        check(
            &format!(
                r#"{{"failurePolicy":"Ignore","validations":[{{"expression":"{expression}"}}]}}"#
            ),
            expected,
        );
    }
}

#[test]
fn variables_are_evaluated_on_use() {
    for (variables, expression, expected) in [
        (r#"{"name":"a","expression":"object.spec.replicas + 1"}"#, "variables.a == 3", ""),
        (
            r#"{"name":"a","expression":"object.spec.replicas"},
            {"name":"b","expression":"variables.a * 2"}"#,
            "variables.b == 4",
            "",
        ),
        (
            r#"{"name":"t","expression":"timestamp(object.metadata.creationTimestamp)"}"#,
            "variables.t < timestamp('2027-01-01T00:00:00Z')",
            "",
        ),
        (
            r#"{"name":"a","expression":"object.none"}"#,
            "has(object.none) ? variables.a == 1 : true",
            "",
        ),
        (
            r#"{"name":"a","expression":"object.none"}"#,
            "variables.a",
            "compilation error: must evaluate to bool but got dyn",
        ),
        (
            r#"{"name":"a","expression":"object.none == 1"}"#,
            "variables.a",
            "expression 'variables.a' resulted in error: composited variable \"a\" fails to evaluate: \
             no such key: none",
        ),
        (r#"{"name":"a","expression":"1 + 'a'"}"#, "variables.a == 1", ""),
        (
            r#"{"name":"a","expression":"[1, 2].map(x, x * 2)"}"#,
            "variables.a.all(x, x % 2 == 0) && size(variables.a) == 2",
            "",
        ),
    ] {
        let failures = failures(&format!(
            r#"{{"variables":[{variables}],"validations":[{{"expression":"{expression}"}}]}}"#
        ));
        let text = failures.first().map(|(message, _)| message.as_str()).unwrap_or_default();
        match variables.contains("1 + 'a'") {
            true => assert!(text.contains("composited variable \"a\" fails to compile"), "{text}"),
            false => assert_eq!(text, expected, "{variables} {expression}"),
        }
    }
}

#[test]
fn params_exist_only_with_a_parameter_kind() {
    let spec = |expression: &str| {
        format!(
            r#"{{"paramKind":{{"apiVersion":"v1","kind":"ConfigMap"}},
            "validations":[{{"expression":"{expression}"}}]}}"#
        )
    };
    check(&spec("object.spec.replicas > params.max"), &[]);
    check(&spec("params == null"), &["failed expression: params == null"]);
}

#[test]
fn errors_of_audit_annotations_are_failures() {
    for (value, policy, expected) in [
        ("'a'", "Fail", &[][..]),
        ("null", "Fail", &[]),
        (
            "object.none",
            "Fail",
            &["compilation error: must evaluate to one of [string null_type] but got dyn"],
        ),
        (
            "string(object.none)",
            "Fail",
            &["expression 'string(object.none)' resulted in error: no such key: none"],
        ),
        ("string(object.none)", "Ignore", &[]),
    ] {
        check(
            &format!(
                r#"{{"failurePolicy":"{policy}",
                "auditAnnotations":[{{"key":"k","valueExpression":"{value}"}}]}}"#
            ),
            expected,
        );
    }
}

#[test]
fn exhausting_the_budget_ends_the_evaluation() {
    let long = "[1,2,3,4,5,6,7,8,9,10]";
    let deep = (0..7).fold("true".to_owned(), |inner, i| format!("{long}.all(x{i}, {inner})"));
    let all = (0..12).map(|_| format!(r#"{{"expression":"{deep}"}}"#)).collect::<Vec<_>>();
    let failures = failures(&validations(&all.join(",")));
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(failures[0].0.starts_with("validation failed due to running out of cost budget"));
}

/// A policy fails for each of its validations, parameters and bindings, with long texts.
#[test]
fn failures_and_warnings_are_bounded() {
    let failing = r#"{"expression":"false"},"#.repeat(5_000);
    let failures = failures(&validations(&format!(r#"{failing}{{"expression":"true"}}"#)));
    assert_eq!(failures.len(), 1000);
    let mut outcome = Outcome::default();
    for _ in 0..1000 {
        outcome.warn("ä".repeat(500_000));
        outcome.deny("first".to_owned(), Reason::Invalid);
        outcome.deny("second".repeat(100_000), Reason::Invalid);
    }
    let sizes: usize = outcome.warnings.iter().map(String::capacity).sum();
    assert!(sizes <= 256 * 16 * 1024, "{sizes}");
    assert_eq!(outcome.denial.map(|denial| denial.message).as_deref(), Some("first"));
}

use pintle_value::yaml;

use super::*;
use crate::{Attributes, Objects, Subject, User, review};

/// The members of a valid webhook. The rows below are those of upstream's
/// `TestValidateAuthorizationConfiguration` (`pkg/apis/apiserver/validation`).
const WEBHOOK: &str = "
    timeout: 5s
    authorizedTTL: 5m
    unauthorizedTTL: 30s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: NoOpinion
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: /etc/w}
";

fn file(authorizers: &str) -> Value {
    let text = format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n{authorizers}"
    );
    yaml::parse(text.as_bytes()).unwrap_or_else(|why| panic!("{why}: {text}"))
}

fn read_text(authorizers: &str) -> Result<Vec<Configured>, String> {
    read(&file(authorizers), &[]).map_err(|why| why.to_string())
}

/// Reads a configuration with a valid webhook in which one line is replaced.
fn with(member: &str, line: &str) -> Result<Vec<Configured>, String> {
    let lines =
        WEBHOOK.lines().filter(|given| !given.trim_start().starts_with(&format!("{member}:")));
    let lines: Vec<&str> = lines.collect();
    let webhook = format!("{}\n    {line}\n", lines.join("\n"));
    read_text(&format!("- type: Webhook\n  name: w\n  webhook:{webhook}"))
}

#[test]
fn authorizers_are_read_in_order() {
    let all = read_text(&format!(
        "- {{type: Node, name: node}}\n- type: Webhook\n  name: w.example.com\n  webhook:{WEBHOOK}\n- {{type: RBAC, name: rbac}}"
    ));
    let all = all.expect("it makes sense");
    let names: Vec<_> = all.iter().map(|one| (one.mode, one.name.as_str())).collect();
    assert_eq!(
        names,
        [(Mode::Node, "node"), (Mode::Webhook, "w.example.com"), (Mode::Rbac, "rbac")]
    );
    let webhook = all[1].webhook.as_ref().expect("it is one");
    assert_eq!(webhook.timeout, Duration::from_secs(5));
    assert_eq!(webhook.authorized_ttl, Duration::from_secs(300));
    assert_eq!(webhook.on_failure, Decision::NoOpinion);
    let uncached = with("cacheAuthorizedRequests", "cacheAuthorizedRequests: false").expect("read");
    assert_eq!(uncached[0].webhook.as_ref().expect("it is one").authorized_ttl, Duration::ZERO);
}

#[test]
fn invalid_configurations_have_upstreams_errors() {
    let rows = [
        ("", "authorizers: Required value: at least one authorization mode must be defined"),
        ("- {name: a}", "authorizers[0].type: Required value"),
        (
            "- {type: Other, name: other}",
            "authorizers[0].type: Unsupported value: \"Other\": supported values: \"ABAC\", \"AlwaysAllow\", \
             \"AlwaysDeny\", \"Node\", \"RBAC\", \"Webhook\"",
        ),
        (
            "- {type: RBAC, name: rbac}\n- {type: RBAC, name: other}",
            "authorizers[1].type: Duplicate value: \"RBAC\"",
        ),
        ("- {type: RBAC}", "authorizers[0].name: Required value"),
        ("- {type: RBAC, name: roles}", "expected name rbac for authorizer RBAC instead of roles"),
        (
            "- {type: Webhook, name: w}",
            "authorizers[0].webhook: Required value: required when type=Webhook",
        ),
        (
            "- {type: RBAC, name: rbac, webhook: {timeout: 1s}}",
            "authorizers[0].webhook: Invalid value: \"non-null\": may only be specified when type=Webhook",
        ),
        (
            "- {type: RBAC, name: rbac, nane: x}",
            "strict decoding error: unknown field \"authorizers[0].nane\"",
        ),
    ];
    for (authorizers, why) in rows {
        assert_eq!(read_text(authorizers).err().as_deref(), Some(why), "{authorizers}");
    }
}

#[test]
fn webhooks_are_validated_as_upstream() {
    let rows = [
        ("timeout", "", "authorizers[0].timeout: Required value"),
        (
            "timeout",
            "timeout: 60s",
            "authorizers[0].timeout: Invalid value: \"1m0s\": must be > 0s and <= 30s",
        ),
        (
            "authorizedTTL",
            "authorizedTTL: -1s",
            "authorizers[0].authorizedTTL: Invalid value: \"-1s\": must be > 0s",
        ),
        (
            "subjectAccessReviewVersion",
            "",
            "authorizers[0].subjectAccessReviewVersion: Required value",
        ),
        (
            "subjectAccessReviewVersion",
            "subjectAccessReviewVersion: v2",
            "authorizers[0].subjectAccessReviewVersion: Unsupported value: \"v2\": supported values: \"v1\", \"v1beta1\"",
        ),
        ("failurePolicy", "", "authorizers[0].failurePolicy: Required value"),
        (
            "failurePolicy",
            "failurePolicy: Ignore",
            "authorizers[0].failurePolicy: Unsupported value: \"Ignore\": supported values: \"NoOpinion\", \"Deny\"",
        ),
        ("connectionInfo", "", "authorizers[0].connectionInfo.type: Required value"),
        (
            "connectionInfo",
            "connectionInfo: {type: KubeConfigFile, kubeConfigFile: w}",
            "authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"w\": must be an absolute path",
        ),
        (
            "x",
            "matchConditions: [{expression: ''}]",
            "authorizers[0].matchConditions[0].expression: Required value",
        ),
        (
            "x",
            "matchConditions: [{expression: 'true'}, {expression: 'true'}]",
            "authorizers[0].matchConditions[1].expression: Duplicate value: \"true\"",
        ),
        (
            "x",
            "matchConditions: [{expression: request.user}]",
            "authorizers[0].matchConditions[0].expression: Invalid value: \"request.user\": must evaluate to bool \
             but got string",
        ),
        (
            "matchConditionSubjectAccessReviewVersion",
            "matchConditions: [{expression: 'true'}]",
            "authorizers[0].matchConditionSubjectAccessReviewVersion: Required value: required if match conditions \
             are specified",
        ),
    ];
    for (member, line, why) in rows {
        assert_eq!(with(member, line).err().as_deref(), Some(why), "{member}: {line}");
    }
}

#[test]
fn a_reload_must_have_the_authorizers_of_the_flags() {
    let missing = read(&file("- {type: RBAC, name: rbac}"), &[Mode::Node, Mode::Rbac]);
    assert_eq!(
        missing.err().map(|why| why.to_string()).as_deref(),
        Some("missing required types: [Node]")
    );
}

#[test]
fn match_conditions_select_requests_by_user() {
    let user = User { name: "jane".to_owned(), groups: vec!["ops".to_owned()], ..User::default() };
    let objects = Objects { version: "v1", resource: "pods", namespace: "n", ..Objects::default() };
    let asked = Attributes { user: &user, verb: "get", subject: Subject::Resource(objects) };
    let path = Attributes { user: &user, verb: "get", subject: Subject::Path("/metrics") };
    let rows = [
        ("request.user == 'jane'", Ok(true), Ok(true)),
        ("'ops' in request.groups", Ok(true), Ok(true)),
        (
            "has(request.resourceAttributes) && request.resourceAttributes.name == ''",
            Ok(true),
            Ok(false),
        ),
        ("has(request.resourceAttributes.fieldSelector)", Ok(false), Err(())),
        ("request.nonResourceAttributes.path == '/metrics'", Err(()), Ok(true)),
        ("request.extra['a'] == ['b']", Err(()), Err(())),
    ];
    for (expression, of_objects, of_path) in rows {
        let mut conditions = Conditions::default();
        conditions.add(expression).unwrap_or_else(|why| panic!("{expression}: {why}"));
        for (asked, expected) in [(&asked, of_objects), (&path, of_path)] {
            let found = conditions.hold(&review::question(asked)).map_err(|_| ());
            assert_eq!(found, expected, "{expression}");
        }
    }
    let mut both = Conditions::default();
    both.add("request.extra['a'] == ['b']").expect("an expression");
    both.add("request.user == 'john'").expect("an expression");
    assert_eq!(
        both.hold(&review::question(&asked)),
        Ok(false),
        "a false condition outweighs one that fails"
    );
}

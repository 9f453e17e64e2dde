use pintle_auth::{Objects, Subject, User};

use super::*;
use crate::Error;

fn read(rules: &str) -> Result<(Policy, Vec<String>), Error> {
    Policy::read(format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rules}").as_bytes())
}

#[test]
fn invalid_policies_are_refused_with_upstreams_errors() {
    for (file, wanted) in [
        ("rules: []", "loaded illegal policy with 0 rules"),
        ("rules: [{}]", "rules[0].level: Required value"),
        (
            "rules: [{level: X}]",
            "rules[0].level: Unsupported value: \"X\": supported values: \"None\", \
             \"Metadata\", \"Request\", \"RequestResponse\"",
        ),
        (
            "rules: [{level: None, nonResourceURLs: [a, '/*/b', '*', '']}]",
            "[rules[0].nonResourceURLs[0]: Invalid value: \"a\": non-resource URL rules must begin with a \
             '/' character, rules[0].nonResourceURLs[1]: Invalid value: \"/*/b\": non-resource URL wildcards \
             '*' must be the final character of the rule, rules[0].nonResourceURLs[3]: Invalid value: \"\": \
             non-resource URL rules must begin with a '/' character]",
        ),
        (
            "rules: [{level: None, nonResourceURLs: [/a], namespaces: [b]}]",
            "rules[0].nonResourceURLs: Invalid value: [\"/a\"]: rules cannot apply to both regular resources \
             and non-resource URLs",
        ),
        (
            "rules: [{level: None, resources: [{resourceNames: [a]}]}]",
            "rules[0].resources.resourceNames: Invalid value: [\"a\"]: using resourceNames requires at least \
             one resource",
        ),
        (
            "rules: [{level: None}]\nomitStages: [Foo]",
            "omitStages[0]: Invalid value: \"Foo\": allowed stages are \
             RequestReceived,ResponseStarted,ResponseComplete,Panic",
        ),
        ("rules: [{level: None, users: a}]", "failed decoding: rules[0].users: must be a list"),
        ("rules: 7", "failed decoding: rules: must be a list"),
    ] {
        assert_eq!(read(file).unwrap_err().to_string(), wanted, "{file}");
    }
    let group = read("rules: [{level: None, resources: [{group: rbac/v1}]}]").unwrap_err();
    assert!(group.to_string().starts_with("rules[0].resources.group: Invalid value: \"rbac/v1\""));
    let other = Policy::read(b"apiVersion: audit.k8s.io/v1beta1\nkind: Policy").unwrap_err();
    assert_eq!(
        other.to_string(),
        "unknown group version field audit.k8s.io/v1beta1, Kind=Policy in policy"
    );
}

#[test]
fn unknown_fields_are_reported() {
    let (_, unknown) = read("rules: [{level: None, user: [a]}]\nomitStage: []").unwrap();
    assert_eq!(unknown, ["unknown field \"omitStage\"", "unknown field \"rules[0].user\""]);
}

/// Rules, and the requests that match them.
#[test]
fn rules_match_like_upstreams() {
    let user = User { name: "tim".into(), groups: vec!["humans".into()], ..User::default() };
    let pod = Objects {
        version: "v1",
        resource: "pods",
        namespace: "default",
        name: "busybox",
        ..Objects::default()
    };
    let log = Objects { subresource: "log", ..pod };
    let subjects = [
        ("namespaced", Subject::Resource(pod)),
        (
            "cluster",
            Subject::Resource(Objects {
                group: "rbac.authorization.k8s.io",
                resource: "clusterroles",
                name: "edit",
                ..Objects::default()
            }),
        ),
        ("path", Subject::Path("/logs")),
        ("subresource", Subject::Resource(log)),
    ];
    for (rule, wanted) in [
        ("{level: Metadata}", "namespaced cluster path subresource"),
        ("{level: Metadata, users: [tim]}", "namespaced cluster path subresource"),
        ("{level: Metadata, users: [other]}", ""),
        ("{level: Metadata, userGroups: [x, humans]}", "namespaced cluster path subresource"),
        ("{level: Metadata, userGroups: [x]}", ""),
        ("{level: Metadata, verbs: [get]}", "namespaced cluster path subresource"),
        ("{level: Metadata, verbs: [create]}", ""),
        ("{level: Metadata, namespaces: [default]}", "namespaced subresource"),
        ("{level: Metadata, namespaces: ['']}", "cluster"),
        ("{level: Metadata, nonResourceURLs: ['*']}", "path"),
        ("{level: Metadata, nonResourceURLs: ['/log*']}", "path"),
        ("{level: Metadata, nonResourceURLs: ['/log']}", ""),
        ("{level: Metadata, resources: [{}]}", "namespaced subresource"),
        ("{level: Metadata, resources: [{group: '*'}]}", "namespaced cluster subresource"),
        ("{level: Metadata, resources: [{resources: [pods]}]}", "namespaced"),
        ("{level: Metadata, resources: [{resources: [pods/log]}]}", "subresource"),
        ("{level: Metadata, resources: [{resources: ['pods/*']}]}", "namespaced subresource"),
        ("{level: Metadata, resources: [{resources: ['*/log']}]}", "subresource"),
        ("{level: Metadata, resources: [{resources: ['*']}]}", "namespaced subresource"),
        (
            "{level: Metadata, resources: [{resources: ['*'], resourceNames: [busybox]}]}",
            "namespaced subresource",
        ),
        ("{level: Metadata, resources: [{resources: [pods], resourceNames: [edit]}]}", ""),
        (
            "{level: Metadata, resources: [{group: rbac.authorization.k8s.io, resources: [clusterroles]}]}",
            "cluster",
        ),
    ] {
        let (policy, _) = read(&format!("rules: [{rule}]")).unwrap();
        let matching = subjects.iter().filter(|(_, subject)| {
            policy.recording(Some(&user), "get", subject).level == Level::Metadata
        });
        let matching: Vec<&str> = matching.map(|(name, _)| *name).collect();
        assert_eq!(matching.join(" "), wanted, "{rule}");
    }
}

#[test]
fn an_unknown_user_only_matches_rules_without_users() {
    let (policy, _) = read("rules: [{level: Request, users: ['']}, {level: Metadata}]").unwrap();
    assert_eq!(policy.recording(None, "get", &Subject::Path("/")).level, Level::Metadata);
}

#[test]
fn omitted_stages_are_combined_and_a_rules_flag_takes_precedence() {
    let (policy, _) = read(
        "omitStages: [RequestReceived]\nomitManagedFields: true\nrules:\n\
         - {level: Metadata, verbs: [get], omitStages: [Panic], omitManagedFields: false}\n\
         - {level: Request}",
    )
    .unwrap();
    let recording = policy.recording(None, "get", &Subject::Path("/"));
    let omitted = Stage::ALL.map(|stage| recording.omits(stage));
    assert_eq!((omitted, recording.omits_managed_fields), ([true, false, false, true], false));
    assert!(policy.recording(None, "list", &Subject::Path("/")).omits_managed_fields);
}

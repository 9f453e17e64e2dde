use super::*;
use crate::Objects;
use pintle_value::json;

fn tree(text: &str) -> Value {
    json::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn user(name: &str, groups: &[&str]) -> User {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    User { name: name.to_owned(), groups, ..User::default() }
}

/// A policy with a cluster role of these rules, bound to alice.
fn policy(rules: &str) -> Policy {
    let mut policy = Policy::default();
    policy.set(Kind::ClusterRole, "", "r", &tree(&format!(r#"{{"rules":{rules}}}"#)));
    bind(
        &mut policy,
        Kind::ClusterRoleBinding,
        "",
        "b",
        "ClusterRole/r",
        r#"[{"kind":"User","name":"alice"}]"#,
    );
    policy
}

fn bind(policy: &mut Policy, kind: Kind, namespace: &str, name: &str, role: &str, subjects: &str) {
    let (role_kind, role) = role.split_once('/').unwrap();
    let object =
        format!(r#"{{"roleRef":{{"kind":"{role_kind}","name":"{role}"}},"subjects":{subjects}}}"#);
    policy.set(kind, namespace, name, &tree(&object));
}

/// Parses a request: `verb resource[/subresource][.group] [namespace/]name`, or `verb /path`.
fn asked<'a>(user: &'a User, question: &'a str) -> Attributes<'a> {
    let mut words = question.split(' ');
    let (verb, what) = (words.next().unwrap(), words.next().unwrap());
    if what.starts_with('/') {
        return Attributes { user, verb, subject: Subject::Path(what) };
    }
    let (what, group) = what.split_once('.').unwrap_or((what, ""));
    let (resource, subresource) = what.split_once('/').unwrap_or((what, ""));
    let item = words.next().unwrap_or_default();
    let (namespace, name) = item.split_once('/').unwrap_or(("", item));
    Attributes {
        user,
        verb,
        subject: Subject::Resource(Objects {
            group,
            resource,
            subresource,
            namespace,
            name,
            ..Objects::default()
        }),
    }
}

fn check(rules: &str, question: &str, expected: bool) {
    let alice = user("alice", &[]);
    let ruling = policy(rules).authorize(&asked(&alice, question));
    assert_eq!(ruling.allowed(), expected, "{rules}: {question}");
    let (bob, policy) = (user("bob", &[]), policy(rules));
    assert!(!policy.authorize(&asked(&bob, question)).allowed(), "it is alice's alone");
}

#[test]
fn rules_match_as_upstream() {
    // AUTHZ-01
    let pods = r#"[{"verbs":["get","list"],"apiGroups":[""],"resources":["pods"]}]"#;
    check(pods, "get pods ns/p", true);
    check(pods, "list pods", true);
    check(pods, "create pods ns/", false);
    check(pods, "get pods/log ns/p", false);
    check(pods, "get pods.metrics.k8s.io ns/p", false);
    check(pods, "get /pods", false);
    let all = r#"[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}]"#;
    check(all, "delete things/status.example.com ns/x", true);
    check(all, "get /metrics", false);
    let parts = r#"[{"verbs":["get"],"apiGroups":["*"],"resources":["pods/log","*/scale"]}]"#;
    check(parts, "get pods/log ns/p", true);
    check(parts, "get pods ns/p", false);
    check(parts, "get deployments/scale.apps ns/d", true);
    check(parts, "get deployments/status.apps ns/d", false);
    check(parts, "get deployments.apps ns/d", false);
    let named = r#"[{"verbs":["get","list"],"apiGroups":[""],"resources":["secrets"],"resourceNames":["a","b"]}]"#;
    check(named, "get secrets ns/a", true);
    check(named, "get secrets ns/c", false);
    check(named, "list secrets ns/", false);
    let paths = r#"[{"verbs":["get"],"nonResourceURLs":["/healthz","/logs/*","/x*"]}]"#;
    check(paths, "get /healthz", true);
    check(paths, "get /healthz/etcd", false);
    check(paths, "get /logs/a/b", true);
    check(paths, "get /logs", false);
    check(paths, "get /xyz", true);
    check(paths, "put /healthz", false);
    check(r#"[{"verbs":["*"],"nonResourceURLs":["*"]}]"#, "put /any", true);
}

const PODS: &str = r#"{"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}"#;

fn check_subject(subjects: &str, who: &User, in_namespace: bool, in_cluster: bool) {
    let mut policy = Policy::default();
    policy.set(Kind::ClusterRole, "", "r", &tree(PODS));
    bind(&mut policy, Kind::RoleBinding, "ns", "b", "ClusterRole/r", subjects);
    let ask = |policy: &Policy, question| policy.authorize(&asked(who, question)).allowed();
    assert_eq!(ask(&policy, "get pods ns/p"), in_namespace, "{subjects} {}", who.name);
    assert!(!ask(&policy, "get pods other/p") && !ask(&policy, "get pods p"), "{subjects}");
    let mut policy = Policy::default();
    policy.set(Kind::ClusterRole, "", "r", &tree(PODS));
    bind(&mut policy, Kind::ClusterRoleBinding, "", "b", "ClusterRole/r", subjects);
    assert_eq!(ask(&policy, "get pods other/p"), in_cluster, "{subjects} {}", who.name);
}

#[test]
fn bindings_apply_to_users_groups_and_service_accounts() {
    let jane = user("jane", &["dev"]);
    check_subject(r#"[{"kind":"User","name":"jane"}]"#, &jane, true, true);
    check_subject(r#"[{"kind":"User","name":"dev"}]"#, &jane, false, false);
    check_subject(r#"[{"kind":"Group","name":"dev"}]"#, &jane, true, true);
    check_subject(r#"[{"kind":"Group","name":"jane"}]"#, &jane, false, false);
    check_subject("[]", &jane, false, false);
    let account = user("system:serviceaccount:ns:builder", &[]);
    let qualified = r#"[{"kind":"ServiceAccount","name":"builder","namespace":"ns"}]"#;
    check_subject(qualified, &account, true, true);
    // In a RoleBinding, a service account may be without its namespace.
    check_subject(r#"[{"kind":"ServiceAccount","name":"builder"}]"#, &account, true, false);
    let other = r#"[{"kind":"ServiceAccount","name":"builder","namespace":"other"}]"#;
    check_subject(other, &account, false, false);
}

#[test]
fn reasons_have_upstreams_texts() {
    let alice = user("alice", &["dev"]);
    let check = |policy: &Policy, who: &User, question: &str, expected: &str| {
        let ruling = policy.authorize(&asked(who, question));
        assert_eq!(ruling.reason.to_string(), expected, "{question}");
    };
    let mut policy = Policy::default();
    policy.set(Kind::ClusterRole, "", "r", &tree(PODS));
    policy.set(Kind::Role, "ns", "local", &tree(PODS));
    let subjects = r#"[{"kind":"User","name":"x"},{"kind":"Group","name":"dev"}]"#;
    bind(&mut policy, Kind::ClusterRoleBinding, "", "b", "ClusterRole/r", subjects);
    check(
        &policy,
        &alice,
        "get pods ns/p",
        r#"RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to Group "dev""#,
    );
    check(&policy, &alice, "delete pods ns/p", "");
    let account = r#"[{"kind":"ServiceAccount","name":"sa"}]"#;
    bind(&mut policy, Kind::RoleBinding, "ns", "c", "Role/local", account);
    check(
        &policy,
        &user("system:serviceaccount:ns:sa", &[]),
        "get pods ns/p",
        r#"RBAC: allowed by RoleBinding "c/ns" of Role "local" to ServiceAccount "sa/ns""#,
    );
    bind(&mut policy, Kind::RoleBinding, "ns", "d", "Role/none", subjects);
    let missing = r#"RBAC: role.rbac.authorization.k8s.io "none" not found"#;
    check(&policy, &alice, "delete pods ns/p", missing);
    bind(&mut policy, Kind::ClusterRoleBinding, "", "e", "ClusterRole/none", subjects);
    check(
        &policy,
        &alice,
        "delete pods ns/p",
        r#"RBAC: [clusterrole.rbac.authorization.k8s.io "none" not found, role.rbac.authorization.k8s.io "none" not found]"#,
    );
}

#[test]
fn the_index_follows_changes_of_roles_and_bindings() {
    let alice = user("alice", &[]);
    let question = asked(&alice, "get pods ns/p");
    let to_alice = r#"[{"kind":"User","name":"alice"}]"#;
    let mut policy = Policy::default();
    bind(&mut policy, Kind::RoleBinding, "ns", "b", "Role/r", to_alice);
    assert!(!policy.authorize(&question).allowed());
    policy.set(Kind::Role, "ns", "r", &tree(PODS));
    assert!(policy.authorize(&question).allowed());
    policy.set(Kind::Role, "ns", "r", &tree(r#"{"rules":[]}"#));
    assert!(!policy.authorize(&question).allowed());
    policy.set(Kind::Role, "ns", "r", &tree(PODS));
    bind(&mut policy, Kind::RoleBinding, "ns", "b", "Role/r", r#"[{"kind":"User","name":"bob"}]"#);
    assert!(!policy.authorize(&question).allowed());
    bind(&mut policy, Kind::RoleBinding, "ns", "b", "Role/r", to_alice);
    assert!(policy.authorize(&question).allowed());
    policy.remove(Kind::RoleBinding, "ns", "b");
    assert!(!policy.authorize(&question).allowed());
    bind(&mut policy, Kind::RoleBinding, "ns", "b", "Role/r", to_alice);
    policy.clear(Kind::RoleBinding);
    assert!(!policy.authorize(&question).allowed());
    policy.remove(Kind::Role, "ns", "r");
    assert!(policy.namespaces.is_empty());
}

#[test]
fn a_large_role_that_many_bindings_grant_is_searched_once() {
    let names: Vec<String> = (0..300_000).map(|i| format!(r#""n{i}""#)).collect();
    let names = names.join(",");
    let rule = format!(
        r#"{{"verbs":["get"],"apiGroups":[""],"resources":["pods"],"resourceNames":[{names}]}}"#
    );
    let mut policy = Policy::default();
    policy.set(Kind::Role, "ns", "r", &tree(&format!(r#"{{"rules":[{rule}]}}"#)));
    let to_group = r#"[{"kind":"Group","name":"dev"}]"#;
    for number in 0..5_000 {
        bind(&mut policy, Kind::RoleBinding, "ns", &format!("b{number}"), "Role/r", to_group);
        let absent = format!("Role/{}{number}", "x".repeat(500));
        bind(&mut policy, Kind::RoleBinding, "ns", &format!("c{number}"), &absent, to_group);
    }
    let alice = user("alice", &["dev"]);
    assert!(policy.authorize(&asked(&alice, "get pods ns/n299999")).allowed());
    let refused = policy.authorize(&asked(&alice, "get pods ns/p"));
    assert!(!refused.allowed());
    assert!(refused.reason.to_string().len() < 200_000);
    let rules = policy.rules(&alice, "ns");
    assert!(rules.incomplete && rules.resource.len() < 5, "{}", rules.resource.len());
    let (owned, _) = policy.rules_for(&alice, "ns");
    let owned = &owned[0];
    let wanted = Rule {
        resource_names: (0..500_000).map(|i| format!("m{i}").into()).collect(),
        ..owned[0].clone()
    };
    assert!(missing_rights(owned.iter(), &[wanted]).more);
    assert!(missing_rights(owned.iter(), owned).is_empty());
}

/// Many texts, each of which one of very many rules names: beyond the limit of the work, permissions
/// count as missing.
#[test]
fn a_comparison_with_very_many_rules_ends_and_refuses() {
    let rule = |name: String| Rule {
        verbs: vec!["get".into()],
        api_groups: vec!["".into()],
        resources: vec!["pods".into()],
        resource_names: vec![name.into()],
        ..Rule::default()
    };
    let owned: Vec<Rule> = (0..300_000).map(|i| rule(format!("n{i}"))).collect();
    let names = (0..300_000).map(|i| format!("n{i}").into()).collect();
    let wanted = Rule { resource_names: names, ..owned[0].clone() };
    let missing = missing_rights(&owned, &[wanted]);
    assert!(missing.more && !missing.is_empty());
    assert!(missing_rights(&owned, &owned[..10]).is_empty());
}

#[test]
fn a_subject_that_is_named_many_times_is_indexed_once() {
    let group = r#"{"kind":"Group","name":"dev"}"#;
    let many = format!("[{}]", vec![group; 40_000].join(","));
    let mut policy = Policy::default();
    for number in 0..10_000 {
        let name = format!("b{number}");
        bind(&mut policy, Kind::RoleBinding, "ns", &name, "Role/r", &format!("[{group}]"));
    }
    for _ in 0..2 {
        bind(&mut policy, Kind::RoleBinding, "ns", "many", "Role/r", &many);
        assert_eq!(policy.namespaces["ns"].groups["dev"].len(), 10_001);
    }
    policy.remove(Kind::RoleBinding, "ns", "many");
    assert_eq!(policy.namespaces["ns"].groups["dev"].len(), 10_000);
}

fn check_missing(owned: &str, wanted: &str, expected: &[&str]) {
    let rules = |text: &str| Rule::all_of(&tree(&format!(r#"{{"rules":{text}}}"#)));
    let missing = missing_rights(&rules(owned), &rules(wanted));
    let rights: Vec<&str> = missing.rights.iter().map(String::as_str).collect();
    assert_eq!(rights, expected, "{owned} {wanted}");
    assert!(!missing.more);
}

#[test]
fn a_rule_with_a_million_combinations_is_compared_by_its_lists() {
    // AUTHZ-03
    let names = |prefix: &str| (0..5_000).map(|i| Str::from(format!("{prefix}{i}"))).collect();
    let wide = || Rule {
        verbs: names("v"),
        api_groups: names("g"),
        resources: names("r"),
        ..Rule::default()
    };
    assert!(missing_rights(&[wide()], &[wide()]).is_empty());
    let mut narrow = wide();
    narrow.verbs.truncate(4_999);
    let missing = missing_rights(&[narrow], &[wide()]);
    assert!(missing.more && missing.rights.len() == 1_000, "{}", missing.rights.len());
    assert!(missing.rights.iter().all(|right| right.ends_with(r#"Verbs:["v4999"]}"#)));
    assert!(missing_rights(&[], &[wide()]).more);
}

#[test]
fn comparing_lists_equals_comparing_each_combination() {
    // AUTHZ-03: each combination of small rules, one by one.
    const LISTS: [&[&str]; 5] = [
        &["get", "list", "*"],
        &["", "apps", "*"],
        &["pods", "pods/log", "*/log", "*"],
        &["a", "b"],
        &["/a", "/a/*", "/a/b", "*"],
    ];
    let mut seed = 7_u64;
    let mut below = |bound: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(seed >> 33).unwrap() % bound
    };
    for _ in 0..3_000 {
        let mut rules = |count: usize| -> Vec<Rule> {
            let mut list = |of: &[&str]| -> Vec<Str> {
                let count = below(3);
                (0..count).map(|_| Str::from(of[below(of.len())])).collect()
            };
            let mut rule = || Rule {
                verbs: list(LISTS[0]),
                api_groups: list(LISTS[1]),
                resources: list(LISTS[2]),
                resource_names: list(LISTS[3]),
                paths: list(LISTS[4]),
                ..Rule::default()
            };
            (0..count).map(|_| rule()).collect()
        };
        let (owned, wanted) = (rules(3), rules(2));
        let covered = wanted.iter().flat_map(singles).all(|single| {
            owned.iter().any(|rule| {
                missing_rights(std::slice::from_ref(rule), std::slice::from_ref(&single)).is_empty()
            })
        });
        let missing = missing_rights(&owned, &wanted);
        assert_eq!(missing.is_empty(), covered, "{owned:?} {wanted:?}");
    }
}

/// Splits a rule into rules of one verb on one object.
fn singles(rule: &Rule) -> Vec<Rule> {
    let mut singles = Vec::new();
    let one = |text: &Str| vec![text.clone()];
    let names: Vec<Vec<Str>> = match rule.resource_names.as_slice() {
        [] => vec![Vec::new()],
        names => names.iter().map(one).collect(),
    };
    for verb in &rule.verbs {
        for path in &rule.paths {
            singles.push(Rule { verbs: one(verb), paths: one(path), ..Rule::default() });
        }
        for group in &rule.api_groups {
            for resource in &rule.resources {
                singles.extend(names.iter().map(|names| Rule {
                    verbs: one(verb),
                    api_groups: one(group),
                    resources: one(resource),
                    resource_names: names.clone(),
                    ..Rule::default()
                }));
            }
        }
    }
    singles
}

#[test]
fn users_cannot_grant_rights_that_they_do_not_have() {
    // AUTHZ-03
    let pods = r#"[{"verbs":["get","list"],"apiGroups":[""],"resources":["pods"]}]"#;
    let all = r#"[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}]"#;
    check_missing(pods, pods, &[]);
    check_missing(all, pods, &[]);
    check_missing(pods, all, &[r#"{APIGroups:["*"], Resources:["*"], Verbs:["*"]}"#]);
    check_missing("[]", pods, &[r#"{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}"#]);
    check_missing(
        pods,
        r#"[{"verbs":["get","create"],"apiGroups":["","apps"],"resources":["pods"]}]"#,
        &[
            r#"{APIGroups:[""], Resources:["pods"], Verbs:["create"]}"#,
            r#"{APIGroups:["apps"], Resources:["pods"], Verbs:["get" "create"]}"#,
        ],
    );
    let one = r#"[{"verbs":["get"],"apiGroups":[""],"resources":["pods"],"resourceNames":["a"]}]"#;
    check_missing(pods, one, &[]);
    check_missing(
        one,
        r#"[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]"#,
        &[r#"{APIGroups:[""], Resources:["pods"], Verbs:["get"]}"#],
    );
    check_missing(
        "[]",
        one,
        &[r#"{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["get"]}"#],
    );
    let scale = r#"[{"verbs":["get"],"apiGroups":["*"],"resources":["*/scale"]}]"#;
    check_missing(
        scale,
        r#"[{"verbs":["get"],"apiGroups":["apps"],"resources":["deployments/scale"]}]"#,
        &[],
    );
    let logs = r#"[{"verbs":["get"],"nonResourceURLs":["/logs/*"]}]"#;
    check_missing(logs, r#"[{"verbs":["get"],"nonResourceURLs":["/logs/a"]}]"#, &[]);
    check_missing(
        logs,
        r#"[{"verbs":["put"],"nonResourceURLs":["/logs"]}]"#,
        &[r#"{NonResourceURLs:["/logs"], Verbs:["put"]}"#],
    );
}

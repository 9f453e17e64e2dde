use futures_util::FutureExt as _;
use http::Method;
use pintle_auth::{Authorizer, Decision, Rules, Ruling, RulingFuture};

use super::*;
use crate::authentication::impersonation::Measures;
use crate::query::Query;

/// An authorizer that allows only the listed requests: `verb path`, or
/// `verb group/resource/subresource namespace/name`.
struct Allows<'a>(&'a [&'a str]);

impl Authorizer for Allows<'_> {
    fn authorize<'a>(&self, attributes: &'a Attributes<'a>) -> RulingFuture<'a> {
        let verb = attributes.verb;
        let asked = match attributes.subject {
            Subject::Path(path) => format!("{verb} {path}"),
            Subject::Resource(Objects {
                group, resource, subresource, namespace, name, ..
            }) => {
                let part = if subresource.is_empty() { "" } else { "/" };
                format!("{verb} {group}/{resource}{part}{subresource} {namespace}/{name}")
            }
        };
        match self.0.contains(&asked.as_str()) {
            true => Ruling::new(Decision::Allow, "").into(),
            false => Ruling::NO_OPINION.into(),
        }
    }

    fn rules(&self, _: &User, _: &str) -> Rules {
        Rules::default()
    }
}

const LIST: &str = "impersonate-on:user-info:list /pods t/";
const JANE: &str = "impersonate:user-info authentication.k8s.io/users /jane";

fn wanted(user: &str, groups: &[&str], extra: &[(&str, &[&str])]) -> Wanted {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let extra = extra.iter().map(|(key, values)| ((*key).to_owned(), texts(values))).collect();
    Wanted { user: user.to_owned(), groups: texts(groups), extra, ..Wanted::default() }
}

/// Asks whether a user may impersonate for a list of the pods in namespace `t`. Returns the group
/// that the mode adds, if any, or the message of the refusal.
fn list_pods(
    user: &User,
    wanted: &Wanted,
    allowed: &[&str],
) -> Result<Option<&'static str>, String> {
    let info = RequestInfo::parse(&Method::GET, "/api/v1/namespaces/t/pods", &Query::parse(""))
        .expect("the path is valid");
    let impersonation = Impersonation {
        authorizer: &Allows(allowed),
        is_constrained: true,
        measures: &Measures::default(),
    };
    let permitted = permit(wanted, user, &info, &impersonation).now_or_never();
    let permitted = permitted.expect("no webhook");
    permitted.map(|allowed| allowed.group).map_err(|status| status.message)
}

fn robot(node: &str) -> User {
    User {
        name: "system:serviceaccount:t:robot".to_owned(),
        extra: vec![(NODE_NAME.to_owned(), vec![node.to_owned()])],
        ..User::default()
    }
}

fn check(wanted: &Wanted, allowed: &[&str], expected: Result<Option<&'static str>, &str>) {
    let found = list_pods(&robot("n1"), wanted, allowed);
    let found = found.as_ref().map_err(String::as_str);
    assert_eq!(found.copied(), expected, "{wanted:?} {allowed:?}");
}

/// AUTHN-04
#[test]
fn each_mode_needs_permission_for_the_request_and_for_the_user() {
    let jane = wanted("jane", &[], &[]);
    check(&jane, &[LIST, JANE], Ok(None));
    check(&jane, &["impersonate /users /jane"], Ok(None));
    let refused = "pods is forbidden: User \"system:serviceaccount:t:robot\" cannot \
                   impersonate-on:user-info:list resource \"pods\" in API group \"\" in the namespace \
                   \"t\"";
    check(&jane, &[JANE], Err(refused));
    let refused = "users.authentication.k8s.io \"jane\" is forbidden: User \
                   \"system:serviceaccount:t:robot\" cannot impersonate:user-info resource \"users\" in \
                   API group \"authentication.k8s.io\" at the cluster scope";
    check(&jane, &[LIST], Err(refused));

    let account = wanted("system:serviceaccount:x:y", &[], &[]);
    let on = "impersonate-on:serviceaccount:list /pods t/";
    let be = "impersonate:serviceaccount authentication.k8s.io/serviceaccounts x/y";
    check(&account, &[on, be], Ok(None));
    check(
        &wanted("system:serviceaccount:x:y", &["dev"], &[]),
        &[on, be],
        Err(
            "serviceaccounts \"y\" is forbidden: User \"system:serviceaccount:t:robot\" cannot impersonate \
         resource \"serviceaccounts\" in API group \"\" in the namespace \"x\"",
        ),
    );
}

#[test]
fn a_pod_can_impersonate_only_its_own_node() {
    let on = "impersonate-on:associated-node:list /pods t/";
    let be = "impersonate:associated-node authentication.k8s.io/nodes /*";
    check(&wanted("system:node:n1", &[], &[]), &[on, be], Ok(Some("system:nodes")));
    check(
        &wanted("system:node:n2", &[], &[]),
        &[on, be],
        Err("pods is forbidden: User \"system:serviceaccount:t:robot\" cannot \
         impersonate-on:arbitrary-node:list resource \"pods\" in API group \"\" in the namespace \"t\""),
    );
    let on = "impersonate-on:arbitrary-node:list /pods t/";
    let be = "impersonate:arbitrary-node authentication.k8s.io/nodes /n2";
    check(&wanted("system:node:n2", &[], &[]), &[on, be], Ok(Some("system:nodes")));
    // The legacy mode treats a node like any other user.
    check(&wanted("system:node:n2", &[], &[]), &["impersonate /users /system:node:n2"], Ok(None));
}

#[test]
fn groups_and_extras_are_authorized_one_by_one_or_all_at_once() {
    let group = |name| format!("impersonate:user-info authentication.k8s.io/groups /{name}");
    let (a, b, all) = (group("a"), group("b"), group("*"));
    check(&wanted("jane", &["a", "b"], &[]), &[LIST, JANE, &a, &b], Ok(None));
    check(&wanted("jane", &["a", "b", "c", "d"], &[]), &[LIST, JANE, &all], Ok(None));
    let refused = list_pods(&robot("n1"), &wanted("jane", &["a", "b"], &[]), &[LIST, JANE, &all]);
    assert!(
        refused
            .expect_err("two groups are authorized one by one")
            .starts_with("groups.authentication.k8s.io \"a\" ")
    );

    let extra = "impersonate:user-info authentication.k8s.io/userextras/a.io/b /c";
    check(&wanted("jane", &[], &[("a.io/b", &["c"])]), &[LIST, JANE, extra], Ok(None));
    let extra = "impersonate:user-info authentication.k8s.io/userextras/* /*";
    check(
        &wanted("jane", &[], &[("a.io/b", &["c", "d"]), ("a.io/c", &["c", "d"])]),
        &[LIST, JANE, extra],
        Ok(None),
    );
}

#[test]
fn constrained_modes_refuse_masters_and_malformed_values() {
    let masters = "impersonate:user-info authentication.k8s.io/groups /system:masters";
    let allowed = [LIST, JANE, masters];
    for (wanted, why) in [
        (wanted("jane", &["system:masters"], &[]), "the system:masters group"),
        (wanted("jane", &[""], &[]), "the empty string group"),
        (wanted("jane", &[], &[("", &["a"])]), "the empty string key in extra"),
        (wanted("jane", &[], &[("a.io/b", &[""])]), "the empty string value in extra"),
        (wanted("jane", &[], &[("a.io/B", &["a"])]), "a non-lowercase key in extra"),
        (wanted("jane", &[], &[("scopes", &["a"])]), "an invalid key in extra"),
    ] {
        let refusal = list_pods(&robot("n1"), &wanted, &allowed).expect_err(why);
        assert!(refusal.contains(&format!(": impersonating {why} is not allowed")), "{refusal}");
    }
    // The legacy mode allows them.
    let allowed = ["impersonate /users /jane", "impersonate /groups /system:masters"];
    check(&wanted("jane", &["system:masters"], &[]), &allowed, Ok(None));
}

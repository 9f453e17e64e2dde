//! Upstream's test cases of NodeRestriction and further ones, from `cases.yaml`.

use pintle_auth::User;
use pintle_meta::{GroupResource, Status, object};
use pintle_registry::admission::Operation;
use pintle_value::{Value, yaml};

use super::{Refusal, Restricted, World, node};

/// The stored objects, and the audience, namespace and service account for which tokens are
/// allowed.
struct Fixture<'a> {
    stored: Vec<&'a Value>,
    may: Vec<&'a str>,
}

impl World for Fixture<'_> {
    fn find(&self, _: &str, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let is_it = |object: &&&Value| {
            let text = |path: &[&str]| object.str_at(path).unwrap_or_default();
            let kind = format!("{}s", text(&["kind"]).to_lowercase());
            kind == resource
                && text(&["metadata", "namespace"]) == namespace
                && text(&["metadata", "name"]) == name
        };
        self.stored.iter().find(is_it).map(|object| (**object).clone())
    }

    fn may_have_audience(&self, audience: &str, namespace: &str, account: &str) -> bool {
        self.may == [audience, namespace, account]
    }
}

const OPERATIONS: [Operation; 3] = [Operation::Create, Operation::Update, Operation::Delete];

fn texts(value: Option<&Value>) -> Vec<&str> {
    let list = value.and_then(Value::as_array).unwrap_or_default();
    list.iter().filter_map(Value::as_str).collect()
}

/// The message of the refusal in a case; empty if the write is allowed. All writes of users that
/// are not nodes are.
fn refusal(case: &Value, objects: &Value, stores: &Value) -> String {
    let text = |member: &str| case.str_at(&[member]).unwrap_or_default();
    let user = User {
        name: case.str_at(&["user"]).unwrap_or("system:node:mynode").to_owned(),
        groups: match case.get("groups") {
            Some(groups) => texts(Some(groups)).into_iter().map(str::to_owned).collect(),
            None => vec!["system:nodes".to_owned()],
        },
        ..User::default()
    };
    let Some(node) = node::name(&user) else { return String::new() };
    let write = OPERATIONS
        .into_iter()
        .find_map(|operation| Some((operation, case.str_at(&[operation.name()])?)));
    let (operation, target) = write.expect("a case names an operation and its target");
    let (path, subresource) = target.split_once('/').unwrap_or((target, ""));
    let (resource, group) = path.split_once('.').unwrap_or((path, ""));
    let stored_as = |name: &str| objects.get(name).unwrap_or_else(|| panic!("no object {name}"));
    let named = |member: &str| Some(text(member)).filter(|name| !name.is_empty()).map(stored_as);
    let stored = texts(stores.get(text("stored")));
    let world = Fixture {
        stored: stored.into_iter().map(stored_as).collect(),
        may: texts(case.get("may")),
    };
    let resource = GroupResource::new(group, resource);
    let restricted = Restricted {
        node,
        operation,
        resource: &resource,
        namespace: text("namespace"),
        name: text("name"),
        subresource,
        object: named("object"),
        old: named("old"),
        world: &world,
    };
    match restricted.decide() {
        Ok(()) => String::new(),
        Err(Refusal::Forbidden(why)) => {
            let given = restricted.object.map(object::name).unwrap_or_default();
            let mut names = [text("name"), given].into_iter().filter(|name| !name.is_empty());
            let name = names.next().unwrap_or("Unknown");
            Status::forbidden(&resource, name, &why).message
        }
        Err(refusal) => refusal.words(),
    }
}

#[test]
fn node_restriction_decides_as_upstream() {
    let cases = yaml::parse(include_bytes!("cases.yaml")).expect("it is YAML");
    let (objects, stores) = (cases.get("objects").unwrap(), cases.get("stores").unwrap());
    let rows = cases.get("cases").and_then(Value::as_array).unwrap();
    let mut wrong = Vec::new();
    for case in rows {
        let expected = case.str_at(&["said"]).expect("a case has `said`");
        let found = refusal(case, objects, stores);
        if found.is_empty() != expected.is_empty() || !found.starts_with(expected) {
            wrong.push(format!("{:?}\n  {expected:?}\n  {found:?}", case.str_at(&["case"])));
        }
    }
    assert!(rows.len() > 150 && wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_node_is_recognised_by_user_name_and_group() {
    for (name, group, expected) in [
        ("system:node:a", "system:nodes", Some("a")),
        ("system:node:", "system:nodes", Some("")),
        ("system:node:a", "system:masters", None),
        ("a", "system:nodes", None),
    ] {
        let groups = vec![group.to_owned()];
        let user = User { name: name.to_owned(), groups, ..User::default() };
        assert_eq!(node::name(&user), expected, "{name} {group}");
    }
}

//! Attribute-based access control: a policy file with one JSON object a line (upstream: ABAC).

use pintle_value::{Value, json};

use crate::{
    Attributes, Authorizer, Decision, Error, NonResourceRule, Objects, ResourceRule, Rules, Ruling,
    RulingFuture, Subject, User,
};

const API_VERSION: &str = "abac.authorization.kubernetes.io/v1beta1";
/// The members of a policy's `spec`.
const MEMBERS: [&str; 7] =
    ["user", "group", "readonly", "apiGroup", "resource", "namespace", "nonResourcePath"];

/// The policies of a file; any of them may allow a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies(Vec<Policy>);

/// A policy. `*` matches every value. `""` as the user or the group matches every user if the
/// other of the two is set; in any other member it matches only `""`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Policy {
    user: String,
    group: String,
    readonly: bool,
    api_group: String,
    resource: String,
    namespace: String,
    path: String,
}

impl Policies {
    /// Parses a file. Empty lines and comment lines (`#`) are ignored.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let lines = text.lines().enumerate().filter(|(_, line)| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with('#')
        });
        let read = |(at, line): (usize, &str)| {
            Policy::parse(line).map_err(|why| Error::Abac(format!("line {}: {why}", at + 1)))
        };
        lines.map(read).collect::<Result<_, _>>().map(Self)
    }
}

impl Policy {
    fn parse(line: &str) -> Result<Self, String> {
        let value = json::parse(line.as_bytes()).map_err(|why| why.to_string())?;
        let text = |member: &str| value.str_at(&[member]).unwrap_or_default();
        if text("apiVersion") != API_VERSION || text("kind") != "Policy" {
            return Err(format!(
                "the policy must have apiVersion {API_VERSION:?} and kind \"Policy\""
            ));
        }
        let empty = Value::object();
        let spec = value.get("spec").unwrap_or(&empty);
        let members = spec.as_object().ok_or("spec must be an object")?;
        if let Some(unknown) = members.keys().find(|name| !MEMBERS.contains(&name.as_str())) {
            return Err(format!("unknown field \"spec.{unknown}\""));
        }
        let text = |member: &str| match spec.get(member) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.to_string()),
            Some(_) => Err(format!("spec.{member} must be a string")),
        };
        let readonly = match spec.get("readonly") {
            None | Some(Value::Null) => false,
            Some(value) => value.as_bool().ok_or("spec.readonly must be true or false")?,
        };
        Ok(Self {
            user: text("user")?,
            group: text("group")?,
            readonly,
            api_group: text("apiGroup")?,
            resource: text("resource")?,
            namespace: text("namespace")?,
            path: text("nonResourcePath")?,
        })
    }

    fn is_about(&self, user: &User) -> bool {
        let fits = |wanted: &str, is: bool| wanted.is_empty() || wanted == "*" || is;
        let names_anyone = !self.user.is_empty() || !self.group.is_empty();
        names_anyone
            && fits(&self.user, self.user == user.name)
            && fits(&self.group, user.is_in(&self.group))
    }

    fn allows(&self, asked: &Attributes<'_>) -> bool {
        let reads = matches!(asked.verb, "get" | "list" | "watch");
        let fits = |wanted: &str, is: &str| wanted == "*" || wanted == is;
        self.is_about(asked.user)
            && (reads || !self.readonly)
            && match asked.subject {
                Subject::Path(path) => {
                    let begins = || path.starts_with(self.path.trim_end_matches('*'));
                    fits(&self.path, path) || self.path.ends_with('*') && begins()
                }
                Subject::Resource(Objects { group, resource, namespace, .. }) => {
                    fits(&self.namespace, namespace)
                        && fits(&self.resource, resource)
                        && fits(&self.api_group, group)
                }
            }
    }

    fn verbs(&self) -> Vec<String> {
        let verbs: &[&str] = if self.readonly { &["get", "list", "watch"] } else { &["*"] };
        verbs.iter().map(|verb| (*verb).to_owned()).collect()
    }
}

impl Authorizer for Policies {
    fn authorize<'a>(&self, attributes: &'a Attributes<'a>) -> RulingFuture<'a> {
        if self.0.iter().any(|policy| policy.allows(attributes)) {
            return Ruling::new(Decision::Allow, "").into();
        }
        Ruling::new(Decision::NoOpinion, "No policy matched.").into()
    }

    fn rules(&self, user: &User, namespace: &str) -> Rules {
        let mut rules = Rules::default();
        let is_there = |policy: &&Policy| policy.namespace == "*" || policy.namespace == namespace;
        for policy in self.0.iter().filter(|policy| policy.is_about(user)).filter(is_there) {
            let verbs = policy.verbs();
            if !policy.resource.is_empty() {
                rules.resource.push(ResourceRule {
                    verbs: verbs.clone(),
                    api_groups: vec![policy.api_group.clone()],
                    resources: vec![policy.resource.clone()],
                    resource_names: Vec::new(),
                });
            }
            if !policy.path.is_empty() {
                rules
                    .non_resource
                    .push(NonResourceRule { verbs, paths: vec![policy.path.clone()] });
            }
        }
        rules
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Policies of the forms in upstream's `example_policy_file.jsonl`, and one that names no user.
    const FILE: &str = r#"
# Everyone reads paths.
{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"group":"system:authenticated", "nonResourcePath": "*", "readonly": true}}
{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"user":"admin", "namespace": "*", "resource": "*", "apiGroup": "*"}}
{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"user":"scheduler", "namespace": "*", "resource": "pods", "readonly": true}}
{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"user":"alice", "namespace": "projectCaribou", "resource": "*", "apiGroup": "*"}}
{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"user":"*", "group":"ops", "nonResourcePath": "/debug/*"}}
{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"namespace": "*", "resource": "*", "apiGroup": "*"}}
"#;

    #[test]
    fn a_file_allows_what_a_policy_of_it_allows() {
        let policies = Policies::parse(FILE).expect("upstream's file");
        let rows = [
            ("get /metrics", "bob", true),
            ("post /metrics", "bob", false),
            ("post /debug/x", "bob", false),
            ("post /debug/x", "olga", true),
            ("delete apps deployments x", "admin", true),
            ("get  pods x", "scheduler", true),
            ("get apps pods x", "scheduler", false),
            ("create  pods x", "scheduler", false),
            ("create  pods projectCaribou", "alice", true),
            ("create  pods x", "alice", false),
            ("create  pods ", "alice", false),
            ("get  pods x", "nobody", false),
        ];
        for (question, name, allowed) in rows {
            let mut groups = vec!["system:authenticated".to_owned()];
            groups.extend((name == "olga").then(|| "ops".to_owned()));
            let user = User { name: name.to_owned(), groups, ..User::default() };
            let words: Vec<&str> = question.split(' ').collect();
            let subject = match words[..] {
                [_, path] => Subject::Path(path),
                [_, group, resource, namespace] => {
                    Subject::Resource(Objects { group, resource, namespace, ..Objects::default() })
                }
                _ => panic!("{question}"),
            };
            let asked = Attributes { user: &user, verb: words[0], subject };
            let ruling = policies.authorize(&asked).ready().expect("nobody is asked");
            assert_eq!(ruling.allowed(), allowed, "{name}: {question}");
        }
        let alice = User { name: "alice".to_owned(), ..User::default() };
        let rules = policies.rules(&alice, "projectCaribou");
        assert_eq!(rules.resource[0].verbs, ["*"]);
        assert_eq!(policies.rules(&alice, "x"), Rules::default());
    }

    #[test]
    fn an_invalid_line_is_an_error() {
        let rows = [
            ("{", "line 1: "),
            ("\n{}", "line 2: the policy must have apiVersion"),
            (
                r#"{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"usr": "a"}}"#,
                "line 1: unknown field \"spec.usr\"",
            ),
            (
                r#"{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"readonly": "yes"}}"#,
                "line 1: spec.readonly must be true or false",
            ),
        ];
        for (file, why) in rows {
            let error = Policies::parse(file).expect_err(file).to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}

//! Random roles and bindings, and random access reviews.

use serde_json::{Value, json};

use super::mutants::Question;
use crate::http::Request;
use crate::random::Random;

/// The number of sets of roles and bindings, each a scenario.
pub(super) const WORLDS: u64 = 20;
/// The number of reviews per set: ten thousand in all.
const QUESTIONS: usize = 500;
const CLUSTER_ROLES: usize = 5;
const ROLES: usize = 4;
const BINDINGS: usize = 8;
/// The number of roles that bindings name and that do not exist.
const MISSING: usize = 1;
/// The number of other requests between writes and reviews, because a kube-apiserver sees roles
/// some time after they were written.
const PAUSES: usize = 60;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

const VERBS: &[&str] =
    &["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "bind"];
const GROUPS: &[&str] = &["", "apps", "batch", "x.example.com"];
const RESOURCES: &[&str] = &["pods", "configmaps", "deployments", "nodes", "things"];
const PARTS: &[&str] = &["", "", "", "status", "log", "scale"];
const NAMES: &[&str] = &["", "", "a", "b"];
const PATHS: &[&str] = &["/healthz", "/healthz/etcd", "/metrics", "/api", "/api/v1", "/logs/"];
const PATH_RULES: &[&str] = &["/healthz", "/healthz/*", "/metrics", "/api/*", "*", "/logs/*"];

/// The roles, bindings and reviews of one set; all cluster-scoped names end in `unique`.
pub(super) fn questions(seed: u64, world: u64, unique: &str, namespace: &str) -> Vec<Question> {
    let mut world = World { random: Random::of(seed, world), unique, namespace };
    let mut questions = Vec::new();
    for number in 0..CLUSTER_ROLES {
        questions.push(world.role("ClusterRole", number));
    }
    for number in 0..ROLES {
        questions.push(world.role("Role", number));
    }
    for number in 0..BINDINGS {
        questions.push(world.binding(number));
    }
    questions.extend((0..PAUSES).map(|_| world.ask("GET", "/version", None)));
    questions.extend((0..QUESTIONS).map(|_| world.review()));
    questions
}

struct World<'a> {
    random: Random,
    unique: &'a str,
    namespace: &'a str,
}

impl World<'_> {
    fn role(&mut self, kind: &str, number: usize) -> Question {
        let is_cluster = kind == "ClusterRole";
        let rules: Vec<Value> = (0..=self.random.below(3)).map(|_| self.rule(is_cluster)).collect();
        let role = json!({"metadata": {"name": self.named("r", number)}, "rules": rules});
        self.ask("POST", &self.collection(kind), Some(&role))
    }

    fn rule(&mut self, is_cluster: bool) -> Value {
        let verbs = self.some(VERBS);
        if is_cluster && self.random.once_in(4) {
            return json!({"verbs": verbs, "nonResourceURLs": self.some(PATH_RULES)});
        }
        let resources: Vec<String> = (0..=self.random.below(2)).map(|_| self.resource()).collect();
        let mut rule =
            json!({"verbs": verbs, "apiGroups": self.some(GROUPS), "resources": resources});
        if self.random.once_in(3) {
            rule["resourceNames"] = json!(["a"]);
        }
        rule
    }

    /// A resource as rules name it: alone, with one or all subresources, or `*`.
    fn resource(&mut self) -> String {
        let resource = *self.random.pick(RESOURCES);
        let part = *self.random.pick(PARTS);
        match self.random.below(8) {
            0 => "*".to_owned(),
            1 => format!("{resource}/*"),
            2 => format!("*/{}", if part.is_empty() { "scale" } else { part }),
            _ if part.is_empty() => resource.to_owned(),
            _ => format!("{resource}/{part}"),
        }
    }

    fn binding(&mut self, number: usize) -> Question {
        let is_cluster = self.random.once_in(2);
        let of_cluster = is_cluster || self.random.once_in(2);
        let (kind, count) =
            if of_cluster { ("ClusterRole", CLUSTER_ROLES) } else { ("Role", ROLES) };
        let role = self.random.below(count + MISSING);
        let subjects: Vec<Value> = (0..=self.random.below(2)).map(|_| self.subject()).collect();
        let group = "rbac.authorization.k8s.io";
        let binding = json!({
            "metadata": {"name": self.named("b", number)},
            "roleRef": {"apiGroup": group, "kind": kind, "name": self.named("r", role)},
            "subjects": subjects,
        });
        let kind = if is_cluster { "ClusterRoleBinding" } else { "RoleBinding" };
        self.ask("POST", &self.collection(kind), Some(&binding))
    }

    fn subject(&mut self) -> Value {
        let number = self.random.below(3);
        match self.random.below(3) {
            0 => json!({"kind": "User", "name": self.named("u", number)}),
            1 => json!({"kind": "Group", "name": self.named("g", number)}),
            _ => {
                let name = format!("sa{number}");
                json!({"kind": "ServiceAccount", "name": name, "namespace": self.namespace})
            }
        }
    }

    fn review(&mut self) -> Question {
        let number = self.random.below(3);
        let user = match self.random.once_in(3) {
            true => format!("system:serviceaccount:{}:sa{number}", self.namespace),
            false => self.named("u", number),
        };
        let mut spec = json!({"user": user});
        if self.random.once_in(2) {
            let number = self.random.below(3);
            spec["groups"] = json!([self.named("g", number)]);
        }
        let verb = *self.random.pick(VERBS);
        if self.random.once_in(6) {
            let path = self.random.pick(PATHS);
            spec["nonResourceAttributes"] = json!({"path": path, "verb": verb});
        } else {
            let namespace = if self.random.once_in(4) { "" } else { self.namespace };
            let mut attributes = json!({"verb": verb, "namespace": namespace, "version": "v1"});
            for (member, values) in [
                ("group", GROUPS),
                ("resource", RESOURCES),
                ("subresource", PARTS),
                ("name", NAMES),
            ] {
                attributes[member] = json!(self.random.pick(values));
            }
            spec["resourceAttributes"] = attributes;
        }
        self.ask("POST", REVIEWS, Some(&json!({"spec": spec})))
    }

    /// One or two of the texts, which may be equal, or `*` for all.
    fn some(&mut self, of: &[&'static str]) -> Vec<&'static str> {
        if self.random.once_in(8) {
            return vec!["*"];
        }
        (0..=self.random.below(2)).map(|_| *self.random.pick(of)).collect()
    }

    fn named(&self, prefix: &str, number: usize) -> String {
        format!("{prefix}{number}-{}", self.unique)
    }

    fn collection(&self, kind: &str) -> String {
        let plural = format!("{}s", kind.to_lowercase());
        match kind.starts_with("Cluster") {
            true => format!("{RBAC}/{plural}"),
            false => format!("{RBAC}/namespaces/{}/{plural}", self.namespace),
        }
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Question {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let body = body.map(Value::to_string);
        let question = format!("{method} {path} {}", body.as_deref().unwrap_or_default());
        let request = Request {
            method: method.to_owned(),
            target: path.to_owned(),
            headers: vec![
                header("Accept", "application/json"),
                header("Content-Type", "application/json"),
                header("User-Agent", "apiscript/1"),
            ],
            body: body.map(String::into_bytes),
        };
        (question.replace(self.unique, "$unique"), request)
    }
}

//! Reads the stored flow schemas and priority levels.

use pintle_fairness::{
    CATCH_ALL, Dealer, Discipline, Distinguisher, EXEMPT, FlowSchema, Level, NonResourceRule,
    PolicyRule, ResourceRule, Shares, Subject, in_order,
};
use pintle_meta::{GroupVersionResource, object};
use pintle_registry::Registry;
use pintle_value::Value;

const GROUP: &str = "flowcontrol.apiserver.k8s.io";
const LEVELS: &str = "prioritylevelconfigurations";
const SCHEMAS: &str = "flowschemas";

/// The most queues of a level (also in upstream's validation).
const QUEUES_MAX: usize = 10_000_000;

/// The configuration.
pub(super) struct Configured {
    pub(super) levels: Vec<Level>,
    /// In order of precedence.
    pub(super) schemas: Vec<FlowSchema>,
}

/// The resources that configure priority and fairness. They are served wherever it is on.
pub(crate) fn resources() -> [GroupVersionResource; 2] {
    [LEVELS, SCHEMAS].map(|name| GroupVersionResource::new(GROUP, "v1", name))
}

/// Reads the stored objects and adds the mandatory ones. Contradictory objects are ignored.
pub(super) fn read(registry: &Registry) -> Configured {
    let mut levels: Vec<Level> = trees(registry, LEVELS).iter().filter_map(level).collect();
    for (name, discipline, nominal) in
        [(EXEMPT, Discipline::Exempt, 0), (CATCH_ALL, Discipline::Reject, 5)]
    {
        if !levels.iter().any(|level| level.name == name) {
            let shares = Shares { nominal, ..Shares::default() };
            levels.push(Level { name: name.to_owned(), uid: String::new(), shares, discipline });
        }
    }
    let mut schemas: Vec<FlowSchema> = trees(registry, SCHEMAS).iter().map(schema).collect();
    in_order(&mut schemas);
    let has = |schemas: &[FlowSchema], name| schemas.iter().any(|schema| schema.name == name);
    if !has(&schemas, EXEMPT) {
        schemas.insert(0, mandatory(EXEMPT, &[pintle_auth::MASTERS]));
    }
    if !has(&schemas, CATCH_ALL) {
        let everybody = [pintle_auth::UNAUTHENTICATED, pintle_auth::AUTHENTICATED];
        let distinguisher = Some(Distinguisher::ByUser);
        schemas.push(FlowSchema { distinguisher, ..mandatory(CATCH_ALL, &everybody) });
    }
    Configured { levels, schemas }
}

fn trees(registry: &Registry, name: &str) -> Vec<Value> {
    let Some(resource) = registry.resource(&GroupVersionResource::new(GROUP, "v1", name)) else {
        return Vec::new();
    };
    let trees = registry.objects(&resource).filter_map(|object| match resource.tree(&object) {
        Ok(tree) => Some(tree),
        Err(status) => {
            tracing::warn!(%status, "cannot read an object of priority and fairness");
            None
        }
    });
    trees.collect()
}

/// A mandatory schema, which matches all requests of these groups.
fn mandatory(name: &str, groups: &[&str]) -> FlowSchema {
    let all = || vec!["*".to_owned()];
    let rule = PolicyRule {
        subjects: groups.iter().map(|group| Subject::Group((*group).to_owned())).collect(),
        resource_rules: vec![ResourceRule {
            verbs: all(),
            groups: all(),
            resources: all(),
            cluster_scope: true,
            namespaces: all(),
        }],
        non_resource_rules: vec![NonResourceRule { verbs: all(), urls: all() }],
    };
    FlowSchema {
        name: name.to_owned(),
        priority_level: name.to_owned(),
        rules: vec![rule],
        ..FlowSchema::default()
    }
}

/// Parses a priority level; `None` if its parts contradict each other.
fn level(tree: &Value) -> Option<Level> {
    let name = object::name(tree);
    let spec = tree.get("spec")?;
    let is_exempt = spec.str_at(&["type"]) == Some("Exempt");
    if is_exempt != (name == EXEMPT) {
        return None;
    }
    let settings = spec.get(if is_exempt { "exempt" } else { "limited" })?;
    let number = |tree: &Value, key: &str| tree.get(key).and_then(Value::as_int);
    let whole = |key| number(settings, key).and_then(|number| u32::try_from(number).ok());
    let response = settings.get("limitResponse");
    let discipline = match response.and_then(|response| response.str_at(&["type"])) {
        _ if is_exempt => Discipline::Exempt,
        Some("Queue") => {
            let queuing = response?.get("queuing")?;
            let size = |key| number(queuing, key).and_then(|size| usize::try_from(size).ok());
            let (queues, hand_size) = (size("queues")?, size("handSize")?);
            Dealer::new(queues, hand_size).filter(|_| queues <= QUEUES_MAX)?;
            Discipline::Queue { queues, hand_size, length_max: size("queueLengthLimit")? }
        }
        _ => Discipline::Reject,
    };
    let shares = Shares {
        nominal: whole("nominalConcurrencyShares").unwrap_or(if is_exempt { 0 } else { 30 }),
        lendable_percent: whole("lendablePercent").unwrap_or(0).min(100),
        borrowing_limit_percent: if is_exempt { None } else { whole("borrowingLimitPercent") },
    };
    Some(Level { name: name.to_owned(), uid: uid(tree), shares, discipline })
}

fn schema(tree: &Value) -> FlowSchema {
    let text = |path: &[&str]| tree.str_at(path).unwrap_or_default().to_owned();
    let distinguisher = match tree.str_at(&["spec", "distinguisherMethod", "type"]) {
        Some("ByUser") => Some(Distinguisher::ByUser),
        Some("ByNamespace") => Some(Distinguisher::ByNamespace),
        _ => None,
    };
    let precedence = tree.at(&["spec", "matchingPrecedence"]).and_then(Value::as_int);
    FlowSchema {
        name: object::name(tree).to_owned(),
        uid: uid(tree),
        priority_level: text(&["spec", "priorityLevelConfiguration", "name"]),
        matching_precedence: precedence.unwrap_or(1000),
        distinguisher,
        rules: items(tree.get("spec"), "rules").iter().map(rule).collect(),
    }
}

fn rule(tree: &Value) -> PolicyRule {
    let resource_rule = |tree: &Value| ResourceRule {
        verbs: texts(tree, "verbs"),
        groups: texts(tree, "apiGroups"),
        resources: texts(tree, "resources"),
        cluster_scope: tree.get("clusterScope").and_then(Value::as_bool).unwrap_or(false),
        namespaces: texts(tree, "namespaces"),
    };
    let path_rule = |tree: &Value| NonResourceRule {
        verbs: texts(tree, "verbs"),
        urls: texts(tree, "nonResourceURLs"),
    };
    PolicyRule {
        subjects: items(Some(tree), "subjects").iter().filter_map(subject).collect(),
        resource_rules: items(Some(tree), "resourceRules").iter().map(resource_rule).collect(),
        non_resource_rules: items(Some(tree), "nonResourceRules").iter().map(path_rule).collect(),
    }
}

fn subject(tree: &Value) -> Option<Subject> {
    let text = |path: &[&str]| tree.str_at(path).map(str::to_owned);
    match tree.str_at(&["kind"])? {
        "User" => Some(Subject::User(text(&["user", "name"])?)),
        "Group" => Some(Subject::Group(text(&["group", "name"])?)),
        "ServiceAccount" => Some(Subject::ServiceAccount {
            namespace: text(&["serviceAccount", "namespace"])?,
            name: text(&["serviceAccount", "name"])?,
        }),
        _ => None,
    }
}

fn items<'a>(tree: Option<&'a Value>, key: &str) -> &'a [Value] {
    tree.and_then(|tree| tree.get(key)).and_then(Value::as_array).unwrap_or_default()
}

fn texts(tree: &Value, key: &str) -> Vec<String> {
    let texts = items(Some(tree), key).iter().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

fn uid(tree: &Value) -> String {
    tree.str_at(&["metadata", "uid"]).unwrap_or_default().to_owned()
}

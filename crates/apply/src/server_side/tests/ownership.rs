//! Behaviour that clients see: `managedFields` of built-in kinds, conflicts, and the rules around
//! them.

use pintle_schema::{Schema, TypeId, builtin, conform};
use pintle_value::{Value, json, yaml};

use crate::server_side::{
    CreatedFields, FieldSet, Filter, Identity, Ownership, UniformVersions, Versions, managers,
    same_but_for_times, stored_managers,
};

const DEPLOYMENT: &str = "io.k8s.api.apps.v1.Deployment";
const CONFIG_MAP: &str = "io.k8s.api.core.v1.ConfigMap";
const SERVICE_ACCOUNT: &str = "io.k8s.api.core.v1.ServiceAccount";

/// An object and its writers. Each write is a second after the one before.
struct Object {
    ty: TypeId,
    kind: &'static str,
    api_version: &'static str,
    subresource: &'static str,
    filter: Filter,
    created: CreatedFields,
    live: Option<Value>,
    second: i64,
}

impl Object {
    fn new(name: &str) -> Self {
        let (kind, api_version) = match name {
            DEPLOYMENT => ("Deployment", "apps/v1"),
            SERVICE_ACCOUNT => ("ServiceAccount", "v1"),
            _ => ("ConfigMap", "v1"),
        };
        let ty = builtin().find(name).expect("a built-in type");
        let filter = Filter::except(&[&["status"]]);
        let (created, second) = (CreatedFields::default(), 1_600_000_000);
        Self { ty, kind, api_version, subresource: "", filter, created, live: None, second }
    }

    fn with<T>(&mut self, write: impl FnOnce(&Ownership<'_>, Option<&Value>, i64) -> T) -> T {
        let versions = UniformVersions(builtin(), self.ty);
        let ownership = Ownership {
            versions: &versions,
            api_version: self.api_version,
            kind: self.kind,
            subresource: self.subresource,
            filter: &self.filter,
            created: Some(&self.created),
        };
        self.second += 1;
        write(&ownership, self.live.as_ref(), self.second * 1_000_000)
    }

    fn parse(&self, text: &str) -> Value {
        let mut object = yaml::parse(text.as_bytes()).expect("YAML");
        let members = object.make_object();
        members.insert("apiVersion", self.api_version);
        members.insert("kind", self.kind);
        object
    }

    /// Conforms the object to its type.
    fn conform(&mut self, mut object: Value) {
        let problems = conform(builtin(), self.ty, &mut object).expect("fits the type");
        assert_eq!(problems, []);
        self.live = Some(object);
    }

    fn update(&mut self, manager: &str, text: &str) -> &mut Self {
        let mut new = self.parse(text);
        conform(builtin(), self.ty, &mut new).expect("fits the type");
        self.with(|o, live, now| o.track_update(live, &mut new, manager, now));
        self.conform(new);
        self
    }

    fn try_apply(&mut self, manager: &str, text: &str, force: bool) -> Result<(), crate::Error> {
        let applied = self.parse(text);
        let merged =
            self.with(|o, live, now| o.apply(live.cloned(), &applied, manager, force, now))?;
        self.conform(merged);
        Ok(())
    }

    fn apply(&mut self, manager: &str, text: &str) -> &mut Self {
        self.try_apply(manager, text, false).expect("nothing is in the way");
        self
    }

    fn live(&self) -> &Value {
        self.live.as_ref().expect("it is there")
    }

    fn at(&self, path: &[&str]) -> String {
        self.live().at(path).map(json::to_string).unwrap_or_default()
    }

    /// One line for each entry: `manager operation: fields`, in the order of the entries.
    fn owners(&self) -> Vec<String> {
        let entries = self.live().at(&["metadata", "managedFields"]).and_then(Value::as_array);
        let entry = |entry: &Value| {
            let text = |member: &str| entry.str_at(&[member]).unwrap_or_default().to_owned();
            let fields = json::to_string(entry.get("fieldsV1").expect("fields"));
            let fields = FieldSet::from_json(&fields).expect("FieldsV1").to_json();
            let sub = text("subresource");
            let slash = if sub.is_empty() { "" } else { "/" };
            format!("{} {}{slash}{sub}: {fields}", text("manager"), text("operation"))
        };
        entries.unwrap_or_default().iter().map(entry).collect()
    }

    fn times(&self) -> Vec<Option<&str>> {
        let entries = self.live().at(&["metadata", "managedFields"]).and_then(Value::as_array);
        entries.unwrap_or_default().iter().map(|entry| entry.str_at(&["time"])).collect()
    }
}

const WEB: &str = "
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: c
        image: i
        ports: [{containerPort: 80}]
";

/// Objects of one outline have the same fields, and of another outline others.
#[test]
fn fields_of_a_known_outline_are_those_of_an_unknown_one() {
    let text = |key: &str, name: &str| {
        format!(
            "{{metadata: {{name: w}}, secrets: [{{name: {name}}}], automountServiceAccountToken: {key}}}"
        )
    };
    let fields = |object: &Object| {
        object.live.as_ref().and_then(|live| {
            live.at(&["metadata", "managedFields"])?.as_array()?.first()?.get("fieldsV1").cloned()
        })
    };
    let mut object = Object::new(SERVICE_ACCOUNT);
    for (key, name) in [("true", "a"), ("false", "a"), ("true", "b"), ("null", "a"), ("true", "a")]
    {
        object.live = None;
        object.update("creator", &text(key, name));
        let mut alone = Object::new(SERVICE_ACCOUNT);
        alone.update("creator", &text(key, name));
        assert!(fields(&alone).is_some());
        assert_eq!(fields(&object), fields(&alone), "{key} {name}");
    }
}

/// SSA-06, SSA-08, SSAI-05: as a kube-apiserver records a created Deployment. Structs that Go holds
/// by value always exist and have no owner; pointers and maps have owners.
#[test]
fn a_create_owns_the_fields_that_it_sets() {
    let mut object = Object::new(DEPLOYMENT);
    object.update("kubectl", WEB);
    let expected = r#"kubectl Update: {"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}},"f:resources":{}}}}}}}"#;
    assert_eq!(object.owners(), [expected]);
    assert_eq!(object.times(), [Some("2020-09-13T12:26:41Z")]);
}

/// SSA-03, SSA-08: an applier owns the fields in its configuration, and no prefixes of them.
#[test]
fn an_applier_owns_the_fields_in_its_configuration() {
    let mut object = Object::new(DEPLOYMENT);
    object.apply("me", WEB);
    let expected = r#"me Apply: {"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:metadata":{"f:labels":{"f:app":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:name":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}}}}}}"#;
    assert_eq!(object.owners(), [expected]);
}

/// As in a kube-apiserver: an object with items that cannot be identified has no managers until
/// somebody applies to it after the items became identifiable.
#[test]
fn objects_with_items_without_keys_have_no_managers() {
    let mut object = Object::new(SERVICE_ACCOUNT);
    let sent = "metadata: {name: s, namespace: ns, labels: {a: b}}\nsecrets: [{}]";
    assert_eq!(object.update("kubectl", sent).owners(), [""; 0]);
    let labels = "metadata: {labels: {a: c}}";
    let refused = object.try_apply("me", labels, false).expect_err("nothing is known");
    let why = r#"failed to create manager for existing fields: failed to convert new object (ns/s; /v1, Kind=ServiceAccount) to smd typed: .secrets: element 0: associative list with keys has an element that omits all key fields ["name"] (and doesn't have default values for any key fields)"#;
    assert_eq!(refused.to_string(), why);

    let keyed = "metadata: {name: s, namespace: ns, labels: {a: b}}\nsecrets: [{name: x}]";
    assert_eq!(object.update("kubectl", keyed).owners(), [""; 0]);
    assert_eq!(object.apply("me", "metadata: {labels: {b: c}}").owners().len(), 2);
    assert_eq!(object.update("kubectl", sent).owners(), [""; 0]);
}

/// SSA-09..12, SSA-14..19: conflicts, force, shared ownership and giving up fields, in sequence.
#[test]
fn conflicts_force_and_giving_up_fields() {
    let mut object = Object::new(CONFIG_MAP);
    object.apply("a", "data: {x: '1', w: '1'}");
    let conflict = object.try_apply("b", "data: {x: '2'}", false).expect_err("a owns x");
    assert_eq!(conflict.to_string(), r#"Apply failed with 1 conflict: conflict with "a": .data.x"#);
    object.apply("b", "data: {x: '1'}");
    assert_eq!(
        object.owners(),
        [r#"b Apply: {"f:data":{"f:x":{}}}"#, r#"a Apply: {"f:data":{"f:w":{},"f:x":{}}}"#,]
    );
    assert_eq!(object.times()[0], None, "the object did not change");
    object.apply("a", "data: {w: '1'}");
    assert_eq!(object.at(&["data"]), r#"{"w":"1","x":"1"}"#, "b wants x");
    object.try_apply("a", "data: {x: '3'}", true).expect("forced");
    assert_eq!(object.at(&["data"]), r#"{"x":"3"}"#, "no manager owns w");
    assert_eq!(object.owners(), [r#"a Apply: {"f:data":{"f:x":{}}}"#]);
    object.update("c", "data: {x: '4', z: '1'}");
    assert_eq!(object.owners(), [r#"c Update: {"f:data":{"f:x":{},"f:z":{}}}"#]);
    let conflict = object.try_apply("a", "data: {x: '5', z: '5'}", false).expect_err("c has both");
    assert_eq!(
        conflict.to_string(),
        "Apply failed with 2 conflicts: conflicts with \"c\" using v1:\n- .data.x\n- .data.z"
    );
    let status = conflict.status();
    let causes = status.details.expect("details").causes;
    assert_eq!(status.code, 409);
    assert_eq!(
        (causes[0].reason.as_str(), causes[0].field.as_str()),
        ("FieldManagerConflict", ".data.x")
    );
    assert_eq!(causes[0].message, r#"conflict with "c" using v1"#);
}

/// SSA-51, SSAI-06, SSAI-09: a write without a change keeps the times.
#[test]
fn a_repeated_write_keeps_the_times() {
    let mut object = Object::new(DEPLOYMENT);
    object.apply("me", WEB);
    let before = object.live().clone();
    object.apply("me", WEB);
    assert_eq!(*object.live(), before);
    let body = json::to_string(&before);
    object.update("me", &body);
    assert_eq!(*object.live(), before);
    let mut later = before.clone();
    let entries = later.get_mut("metadata").and_then(|m| m.get_mut("managedFields"));
    let entry = &mut entries.and_then(Value::as_array_mut).expect("entries")[0];
    entry.make_object().insert("time", "2030-01-01T00:00:00Z");
    assert!(later != before && same_but_for_times(&later, &before));
    entry_of(&mut later).make_object().insert("manager", "other");
    assert!(!same_but_for_times(&later, &before));
}

fn entry_of(object: &mut Value) -> &mut Value {
    let entries = object.get_mut("metadata").and_then(|m| m.get_mut("managedFields"));
    &mut entries.and_then(Value::as_array_mut).expect("entries")[0]
}

/// SSAI-01: the oldest of more than ten updaters are merged into `ancient-changes`.
#[test]
fn the_oldest_updaters_are_merged() {
    let mut object = Object::new(CONFIG_MAP);
    let mut data = String::new();
    for at in 0..13 {
        data += &format!("k{at}: v, ");
        object.update(&format!("m{at}"), &format!("data: {{{data}}}"));
    }
    let owners = object.owners();
    assert_eq!(owners.len(), 10);
    let ancient =
        r#"ancient-changes Update: {"f:data":{".":{},"f:k0":{},"f:k1":{},"f:k2":{},"f:k3":{}}}"#;
    assert_eq!(owners[0], ancient);
    assert_eq!(owners[9], r#"m12 Update: {"f:data":{"f:k12":{}}}"#);
}

/// SSAI-02, SSA-42..44, CF-10: fields without owners, and how an object gets into that state.
#[test]
fn clients_can_reset_managed_fields() {
    let mut object = Object::new(CONFIG_MAP);
    object.update("a", "data: {x: '1'}");
    object.update("b", "{metadata: {managedFields: []}, data: {x: '1'}}");
    assert_eq!(object.owners(), [r#"a Update: {"f:data":{".":{},"f:x":{}}}"#], "[] says nothing");
    object.update("b", "{metadata: {managedFields: [{}]}, data: {x: '1', w: '1'}}");
    assert_eq!(object.owners(), [r#"b Update: {"f:data":{"f:w":{}}}"#]);
    object.update("b", "{metadata: {managedFields: [{}]}, data: {x: '1', w: '1'}}");
    assert_eq!(object.owners().len(), 0);
    object.update("c", "data: {x: '2', w: '1'}");
    assert_eq!(object.owners().len(), 0, "not tracked before the first apply");
    let before =
        r#"Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.x"#;
    let conflict = object.try_apply("d", "data: {x: '3'}", false).expect_err("it was there");
    assert_eq!(conflict.to_string(), before);
    object.apply("d", "data: {x: '2'}");
    assert_eq!(
        object.owners(),
        [
            r#"d Apply: {"f:data":{"f:x":{}}}"#,
            r#"before-first-apply Update: {"f:data":{".":{},"f:w":{},"f:x":{}}}"#,
        ]
    );
}

/// SSA-45, SSAI-08: clients can edit entries; invalid entries are dropped.
#[test]
fn clients_can_edit_managed_fields() {
    let entry = |fields_type: &str| {
        format!(
            "{{manager: e, operation: Apply, apiVersion: v1, fieldsType: {fields_type}, fieldsV1: {{f:data: {{f:x: {{}}}}}}}}"
        )
    };
    let mut object = Object::new(CONFIG_MAP);
    object.update("a", "data: {x: '1'}");
    let body =
        |entry: &str| format!("{{metadata: {{managedFields: [{entry}]}}, data: {{x: '1'}}}}");
    object.update("b", &body(&entry("FieldsV2")));
    assert_eq!(object.owners(), [r#"a Update: {"f:data":{".":{},"f:x":{}}}"#]);
    object.update("b", &body(&entry("FieldsV1")));
    assert_eq!(object.owners(), [r#"e Apply: {"f:data":{"f:x":{}}}"#]);
}

/// SSA-34, SSA-46, SSAI-04: writes to subresources have entries of their own.
#[test]
fn subresources_have_their_own_entries() {
    let mut object = Object::new(DEPLOYMENT);
    object.apply("me", WEB);
    object.subresource = "status";
    object.filter = Filter::except(&[&["spec"], &["metadata"]]);
    let mut body = object.live().clone();
    body.make_object().insert("status", Value::from([("replicas", 2)]));
    object.update("me", &json::to_string(&body));
    let owners = object.owners();
    assert_eq!(owners.len(), 2);
    assert_eq!(owners[1], r#"me Update/status: {"f:status":{"f:replicas":{}}}"#);
    let error = object.try_apply("you", "status: {replicas: 3}", false).expect_err("a conflict");
    let expected = r#"Apply failed with 1 conflict: conflict with "me" with subresource "status" using apps/v1: .status.replicas"#;
    assert_eq!(error.to_string(), expected);
}

/// SSA-20, SSA-49, SSA-50: invalid configurations are rejected with upstream's messages.
#[test]
fn an_invalid_configuration_is_rejected() {
    let rows = [
        (
            "{spec: {foo: 1}}",
            500,
            "failed to create typed patch object (/; apps/v1, Kind=Deployment): .spec.foo: field not declared in schema",
        ),
        (
            "{metadata: {name: web, namespace: s}, spec: {replicas: x}}",
            500,
            "failed to create typed patch object (s/web; apps/v1, Kind=Deployment): .spec.replicas: expected numeric (int or float), got string",
        ),
        (
            "{spec: {template: {spec: {containers: [{name: a}, {name: a}]}}}}",
            500,
            "failed to create typed patch object (/; apps/v1, Kind=Deployment): .spec.template.spec.containers: duplicate entries for key [name=\"a\"]",
        ),
        (
            "{spec: {template: {spec: {containers: [1]}}}}",
            500,
            "failed to create typed patch object (/; apps/v1, Kind=Deployment): .spec.template.spec.containers: element 0: associative list with keys may not have non-map elements",
        ),
        ("{metadata: {managedFields: []}}", 400, "metadata.managedFields must be nil"),
    ];
    for (text, code, message) in rows {
        let error = Object::new(DEPLOYMENT).try_apply("me", text, false).expect_err(text);
        assert_eq!((error.status().code, error.to_string().as_str()), (code, message));
    }
    let mut object = Object::new(DEPLOYMENT);
    let applied = Value::from([("apiVersion", "v1"), ("kind", "Pod")]);
    let error = object.with(|o, live, now| o.apply(live.cloned(), &applied, "me", false, now));
    let error = error.expect_err("another kind");
    assert_eq!(
        (error.status().code, error.to_string().as_str()),
        (400, "invalid object type: /v1, Kind=Pod")
    );
}

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// SSA-38..41: from client-side apply to server-side apply and back.
#[test]
fn kubectl_migrates_from_client_side_apply() {
    let applied = r#"{"apiVersion":"v1","kind":"ConfigMap","data":{"w":"1","x":"1"}}"#;
    let body = |x: &str| {
        format!(
            "{{metadata: {{annotations: {{{ANNOTATION}: '{applied}'}}}}, data: {{x: '{x}', w: '1'}}}}"
        )
    };
    let mut object = Object::new(CONFIG_MAP);
    object.update("kubectl-client-side-apply", &body("1"));
    object.try_apply("other", "data: {x: '2'}", false).expect_err("only kubectl may");
    object.apply("kubectl", "data: {x: '2', w: '1'}");
    assert_eq!(object.at(&["data", "x"]), r#""2""#);
    let annotation = object.live().str_at(&["metadata", "annotations", ANNOTATION]);
    let expected =
        "{\"apiVersion\":\"v1\",\"data\":{\"w\":\"1\",\"x\":\"2\"},\"kind\":\"ConfigMap\"}\n";
    assert_eq!(annotation, Some(expected));

    let mut object = Object::new(CONFIG_MAP);
    object.update("kubectl-client-side-apply", &body("1"));
    object.update("scaler", &body("7"));
    let conflict = object.try_apply("kubectl", "data: {x: '2', w: '2'}", false);
    let expected = r#"Apply failed with 1 conflict: conflict with "scaler" using v1: .data.x"#;
    assert_eq!(conflict.expect_err("x was changed").to_string(), expected);
}

/// Entries of versions that are not served any more are dropped (upstream: TestObsoleteVersions,
/// TestApplyObsoleteVersion).
#[test]
fn entries_of_unserved_versions_are_dropped() {
    struct Served(TypeId, [&'static str; 2]);
    impl Versions for Served {
        fn type_of(&self, api_version: &str) -> Option<(&Schema, TypeId)> {
            self.1.contains(&api_version).then_some((builtin(), self.0))
        }
        fn convert(&self, object: Value, _: &str, _: &str) -> Result<Value, String> {
            Ok(object)
        }
    }
    let ty = builtin().find(CONFIG_MAP).expect("a built-in type");
    let write = |live: Option<&Value>, version: &'static str, served| {
        let served = Served(ty, served);
        let ownership = Ownership {
            versions: &served,
            api_version: version,
            kind: "ConfigMap",
            subresource: "",
            filter: &Filter::ALL,
            created: None,
        };
        let mut new = live.cloned().unwrap_or_else(Value::object);
        new.object_entry("data").insert(version, "0");
        ownership.track_update(live, &mut new, version, 0);
        new
    };
    let v1 = write(None, "v1", ["v1", "v2"]);
    let v2 = write(Some(&v1), "v2", ["v1", "v2"]);
    let v3 = write(Some(&v2), "v3", ["v2", "v3"]);
    let managers: Vec<_> =
        stored_managers(&v3).into_keys().map(|identity| identity.manager).collect();
    assert_eq!(managers, ["v2", "v3"]);
}

/// SSAI-06: entries are sorted by operation, time, manager, version and subresource.
#[test]
fn entries_are_sorted_as_upstream() {
    let fields = FieldSet::from([&["data"][..]]);
    let mut known = managers::Managers::new();
    for (manager, operation, version, subresource, second) in [
        ("b", managers::Operation::Update, "v1", "", 5),
        ("a", managers::Operation::Update, "v1", "s", 5),
        ("a", managers::Operation::Update, "v1", "", 5),
        ("z", managers::Operation::Update, "v1", "", 4),
        ("y", managers::Operation::Apply, "v1", "", 9),
    ] {
        let identity = Identity::new(manager, operation, version, subresource);
        managers::grant(&mut known, identity, version, fields.clone(), second * 1_000_000);
    }
    let mut object = Value::object();
    managers::write(&mut object, known);
    let object = Object { live: Some(object), ..Object::new(CONFIG_MAP) };
    let names = object
        .owners()
        .iter()
        .map(|o| o.split(':').next().map(str::to_owned))
        .collect::<Option<Vec<_>>>();
    assert_eq!(
        names.expect("names"),
        ["y Apply", "z Update", "a Update", "a Update/s", "b Update"]
    );
}

//! The objects that a server creates when it starts (BOOT-01).
//!
//! [`objects`] returns them as trees, in the order of their creation. [`BootstrapObject::step`]
//! decides what to do with one, given the stored object. The data files are parsed only when
//! [`objects`] is called.

mod apiservice;
mod authentication;
mod cluster;
mod flowcontrol;
mod rbac;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use pintle_meta::GroupVersionResource;
use pintle_value::{Map, Value};

use crate::RuntimeConfig;

pub use apiservice::{AUTOMANAGED, Priority, custom_api_service, priority};
pub use cluster::{endpoints, first_address};
pub use rbac::node_role;

/// The configuration that the objects of a server depend on.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// The enabled API versions and features.
    pub config: &'a RuntimeConfig,
    /// `--service-cluster-ip-range`: the ranges of the services' addresses, the primary one first.
    pub service_ranges: &'a [&'a str],
    /// The address at which clients in the cluster reach the server; `None` if several servers
    /// share the endpoints.
    pub advertise_address: Option<IpAddr>,
    /// The port at which clients in the cluster reach the server.
    pub secure_port: u16,
    /// The CAs of client certificates as PEM, if there are any.
    pub client_ca: Option<&'a str>,
    /// The configuration of front proxies, if there is one.
    pub request_header: Option<RequestHeader<'a>>,
}

/// The configuration of front proxies: the `--requestheader-*` flags.
#[derive(Clone, Copy, Debug)]
pub struct RequestHeader<'a> {
    /// The CAs of the proxy's certificates as PEM.
    pub client_ca: &'a str,
    /// The names that the certificates may have.
    pub allowed_names: &'a [&'a str],
    /// The headers with the user's name, uid and groups, and the prefixes of headers with extra
    /// values.
    pub username_headers: &'a [&'a str],
    pub uid_headers: &'a [&'a str],
    pub group_headers: &'a [&'a str],
    pub extra_headers_prefix: &'a [&'a str],
}

/// An object that the server creates.
#[derive(Clone, Debug)]
pub struct BootstrapObject {
    /// Its resource.
    pub resource: GroupVersionResource,
    /// The desired state. A status in it must be written to `/status`, as a create drops it.
    pub object: Value,
    /// How an existing object is reconciled.
    pub reconcile: Reconcile,
}

/// How an existing object is reconciled with the desired state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reconcile {
    /// It is not changed.
    CreateOnly,
    /// Missing rules, subjects, labels and annotations are added, unless its annotation
    /// `rbac.authorization.kubernetes.io/autoupdate` is `false`; a binding to another role is
    /// replaced.
    AtLeast,
    /// Its spec is set to the desired one.
    Exactly,
    /// Its spec is set to the desired one while its annotation `apf.kubernetes.io/autoupdate-spec`
    /// is `true` (without the annotation, until another client changes it).
    WhileOurs,
    /// Missing certificates and list items are added to each entry of its data; those of other
    /// servers in the cluster stay.
    United,
    /// These members are set to the desired ones; others stay. An endpoint slice of another address
    /// type is replaced, since the type is immutable (upstream:
    /// `EnsureEndpointSliceFromEndpoints`).
    WithMembers(&'static [&'static str]),
}

/// The write that establishes the desired state of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The object has the desired state.
    Nothing,
    /// Create it.
    Create,
    /// Update it to this state.
    Update(Value),
    /// Delete it, then create it.
    Replace,
}

/// The objects, in the order of their creation.
pub fn objects(settings: &Settings<'_>) -> Vec<BootstrapObject> {
    let mut objects = cluster::namespaces();
    objects.extend(cluster::priority_classes());
    objects.extend(rbac::objects(settings.config.features()));
    objects.extend(flowcontrol::objects());
    objects.extend(apiservice::objects(settings.config));
    objects.extend(cluster::service(settings));
    objects.extend(authentication::authentication(settings));
    objects.retain(|made| {
        let r = &made.resource;
        settings.config.serves(&r.group, &r.version, &r.resource, true)
    });
    objects
}

impl BootstrapObject {
    fn new(resource: [&'static str; 3], object: Value, reconcile: Reconcile) -> Self {
        let [group, version, plural] = resource;
        Self { resource: GroupVersionResource::new(group, version, plural), object, reconcile }
    }

    /// The field manager of the object; `""` for the server itself.
    pub fn manager(&self) -> &'static str {
        match self.resource.group.as_str() {
            "flowcontrol.apiserver.k8s.io" => "api-priority-and-fairness-config-producer-v1",
            _ => "",
        }
    }

    /// The binding of which this one was a part in earlier releases (upstream:
    /// `ClusterRoleBindingsToSplit`).
    pub fn split_from(&self) -> Option<&'static str> {
        let name = pintle_meta::object::name(&self.object);
        let is_split =
            self.resource.resource == "clusterrolebindings" && name == "system:public-info-viewer";
        is_split.then_some("system:discovery")
    }

    /// Returns the object for a store that has that binding (`from`): it gets the binding's
    /// subjects, labels and annotations, so that administrators' changes apply to it, too.
    pub fn split(&self, from: &Value) -> Value {
        let mut object = self.object.clone();
        let subjects = from.get("subjects").cloned().unwrap_or_default();
        object.make_object().insert("subjects", subjects);
        merge(&mut object, from, &["metadata", "labels"]);
        merge(&mut object, from, &["metadata", "annotations"]);
        object
    }

    /// Returns the write for the object, given the stored one.
    pub fn step(&self, stored: Option<&Value>) -> Step {
        let Some(stored) = stored else { return Step::Create };
        let updated = match self.reconcile {
            Reconcile::CreateOnly => return Step::Nothing,
            Reconcile::AtLeast if is_annotated(stored, rbac::AUTO_UPDATE) == Some(false) => {
                return Step::Nothing;
            }
            Reconcile::AtLeast if stored.get("roleRef") != self.object.get("roleRef") => {
                return Step::Replace;
            }
            Reconcile::AtLeast => self.at_least(stored),
            Reconcile::WhileOurs if !is_ours(stored) => return Step::Nothing,
            Reconcile::Exactly | Reconcile::WhileOurs => self.exactly(stored),
            Reconcile::United => self.united(stored),
            Reconcile::WithMembers(_)
                if stored.get("addressType") != self.object.get("addressType") =>
            {
                return Step::Replace;
            }
            Reconcile::WithMembers(members) => {
                let mut updated = stored.clone();
                for member in members {
                    let wanted = self.object.get(member).cloned().unwrap_or_default();
                    if !contains(stored.get(member).unwrap_or(&Value::Null), &wanted) {
                        updated.make_object().insert(*member, wanted);
                    }
                }
                updated
            }
        };
        if updated == *stored { Step::Nothing } else { Step::Update(updated) }
    }

    fn at_least(&self, stored: &Value) -> Value {
        let mut updated = stored.clone();
        merge(&mut updated, &self.object, &["metadata", "labels"]);
        merge(&mut updated, &self.object, &["metadata", "annotations"]);
        for list in ["rules", "subjects"] {
            let wanted = self.object.get(list).and_then(Value::as_array).unwrap_or_default();
            let present = stored.get(list).and_then(Value::as_array).unwrap_or_default();
            let missing: Vec<Value> =
                wanted.iter().filter(|item| !present.contains(item)).cloned().collect();
            if !missing.is_empty() {
                let all: Vec<Value> = present.iter().cloned().chain(missing).collect();
                updated.make_object().insert(list, all);
            }
        }
        if let Some(rule) = self.object.get("aggregationRule") {
            updated.make_object().insert("aggregationRule", rule.clone());
        }
        updated
    }

    fn united(&self, stored: &Value) -> Value {
        let mut updated = stored.clone();
        let wanted = self.object.get("data").and_then(Value::as_object);
        let data = updated.object_entry("data");
        for (name, wanted) in wanted.into_iter().flat_map(Map::iter) {
            let wanted = wanted.as_str().unwrap_or_default();
            let united = match data.get(name).and_then(Value::as_str) {
                Some(stored) => authentication::united(stored, wanted),
                None => wanted.to_owned(),
            };
            data.insert(name.clone(), united);
        }
        updated
    }

    fn exactly(&self, stored: &Value) -> Value {
        let mut updated = stored.clone();
        merge(&mut updated, &self.object, &["metadata", "labels"]);
        merge(&mut updated, &self.object, &["metadata", "annotations"]);
        let spec = self.object.get("spec").cloned().unwrap_or_default();
        if !contains(stored.get("spec").unwrap_or(&Value::Null), &spec) {
            updated.make_object().insert("spec", spec);
        }
        updated
    }
}

/// Whether all desired members are stored. Additional stored members may be defaults.
fn contains(stored: &Value, wanted: &Value) -> bool {
    match (stored, wanted) {
        (Value::Object(stored), Value::Object(wanted)) => wanted
            .iter()
            .all(|(member, value)| stored.get(member).is_some_and(|s| contains(s, value))),
        (Value::Array(stored), Value::Array(wanted)) => {
            stored.len() == wanted.len() && stored.iter().zip(wanted).all(|(s, w)| contains(s, w))
        }
        _ => stored == wanted,
    }
}

/// Copies the entries of a map from another object.
fn merge(to: &mut Value, from: &Value, path: &[&str]) {
    let Some(entries) = from.at(path).and_then(Value::as_object) else { return };
    let map = path.iter().fold(to.make_object(), |map, member| map.entry_object(member));
    for (key, value) in entries.iter() {
        map.insert(key.clone(), value.clone());
    }
}

/// The value of a boolean annotation; `None` without it.
fn is_annotated(object: &Value, annotation: &str) -> Option<bool> {
    let annotations = pintle_meta::object::annotations(object)?;
    Some(annotations.get(annotation)?.as_str() == Some("true"))
}

/// Whether a suggested flow control object still follows the server.
fn is_ours(stored: &Value) -> bool {
    is_annotated(stored, flowcontrol::AUTO_UPDATE)
        .unwrap_or_else(|| pintle_meta::object::generation(stored) == 1)
}

/// An object with nothing but its kind and its metadata.
fn object(api_version: &str, kind: &str, namespace: &str, name: &str) -> Map {
    let mut metadata = Map::new();
    metadata.insert("name", name);
    if !namespace.is_empty() {
        metadata.insert("namespace", namespace);
    }
    let mut object = Map::new();
    object.insert("apiVersion", api_version);
    object.insert("kind", kind);
    object.insert("metadata", metadata);
    object
}

/// Parses a data file. The data files are part of the program, and a test parses all of them.
fn parse(file: &str) -> Value {
    pintle_value::json::parse(file.as_bytes()).expect("a test reads every data file")
}

/// The items of a list in a data file.
fn list<'a>(file: &'a Value, name: &str) -> &'a [Value] {
    file.get(name).and_then(Value::as_array).unwrap_or_default()
}

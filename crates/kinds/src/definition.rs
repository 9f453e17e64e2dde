//! The definitions of the built-in resources: the generated table joined with the kinds' entries.

use std::sync::Arc;

use pintle_crd::{BuiltIn, BuiltInResource};
use pintle_meta::{GroupVersionKind, GroupVersionResource};
use pintle_registry::{
    Conversion, Members, ResourceDefinition, ScalePaths, Scope, Storage, Subresource,
    SubresourceBehaviour,
};
use pintle_schema::{Schema, builtin};
use pintle_value::Str;

use crate::{
    RuntimeConfig, deprecation,
    generated::{self, Gvk},
    groups,
    kind::{Kept, Kind},
    printers,
};

/// The definitions of every built-in resource that is switched on.
pub fn definitions(config: &RuntimeConfig) -> Vec<ResourceDefinition> {
    let schema = Arc::new(builtin().clone());
    generated::resources()
        .iter()
        .filter(|row| config.serves(row.group, row.version, row.plural, row.on))
        .filter_map(|row| {
            // Every row has an entry and a type: a test sees to it.
            let kind = groups::find(row.group, row.plural)?;
            define(row, kind, &schema)
        })
        .collect()
}

/// The names of all built-in resources, and which are switched on.
pub fn built_in(config: &RuntimeConfig) -> BuiltIn {
    let name = |row: &generated::Resource| BuiltInResource {
        group: row.group,
        plural: row.plural,
        singular: row.singular,
        short_names: row.short_names,
        kind: row.kind,
        list_kind: row.list_kind,
        is_on: config.serves(row.group, row.version, row.plural, row.on),
    };
    generated::resources().iter().map(name).collect()
}

fn define(
    row: &generated::Resource,
    kind: &Kind,
    schema: &Arc<Schema>,
) -> Option<ResourceDefinition> {
    let strs = |texts: &[&'static str]| texts.iter().copied().map(Str::const_new).collect();
    let own = Gvk { group: row.group, version: row.version, kind: row.kind };
    Some(ResourceDefinition {
        resource: GroupVersionResource::new(row.group, row.version, row.plural),
        kind: row.kind.into(),
        list_kind: row.list_kind.into(),
        singular: row.singular.into(),
        scope: if row.namespaced { Scope::Namespaced } else { Scope::Cluster },
        verbs: row.verbs.to_vec(),
        short_names: strs(row.short_names),
        categories: strs(row.categories),
        storage_kind: gvk(row.storage.unwrap_or(own)),
        schema: schema.clone(),
        ty: schema.find(row.type_name)?,
        strategy: Arc::new(kind.strategy.clone()),
        subresources: row.subresources.iter().map(|sub| subresource(row, sub)).collect(),
        printer: printers::printer(row.group, row.kind),
        storage: storage(row, kind, schema),
        allocator: None,
        action: None,
        deprecation: deprecation::warning(row).map(Str::from),
        typed_items: false,
        described: None,
    })
}

/// Where the objects are kept, and how this version's become the stored form.
fn storage(row: &generated::Resource, kind: &Kind, schema: &Schema) -> Option<Storage> {
    let collection = match kind.kept {
        Kept::Not => return None,
        Kept::With(collection) => collection.into(),
        Kept::Own if row.group.is_empty() => row.plural.into(),
        Kept::Own => format!("{}/{}", row.group, row.plural).into(),
    };
    let form = kind.conversions.iter().find(|form| form.version == row.version);
    let conversion = form.and_then(|form| {
        Some(Conversion {
            ty: schema.find(stored_type(row)?)?,
            to_stored: form.to_stored,
            from_stored: form.from_stored,
        })
    });
    Some(Storage {
        collection,
        etcd_prefix: etcd_prefix(row),
        conversion,
        keeping: None,
        definer: None,
    })
}

/// Prefixes in etcd that are not the name of the resource (upstream: `SpecialDefaultResourcePrefixes`,
/// and the servers of two groups that put the group first).
const ETCD_PREFIXES: [(&str, &str, &str); 7] = [
    ("", "replicationcontrollers", "controllers"),
    ("", "endpoints", "services/endpoints"),
    ("", "nodes", "minions"),
    ("", "services", "services/specs"),
    ("networking.k8s.io", "ingresses", "ingress"),
    (
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "apiextensions.k8s.io/customresourcedefinitions",
    ),
    ("apiregistration.k8s.io", "apiservices", "apiregistration.k8s.io/apiservices"),
];

fn etcd_prefix(row: &generated::Resource) -> Str {
    let mut special = ETCD_PREFIXES.iter();
    let special = special.find(|(group, plural, _)| (*group, *plural) == (row.group, row.plural));
    Str::const_new(special.map_or(row.plural, |(_, _, prefix)| prefix))
}

/// The name of the type of a resource's stored form.
fn stored_type(row: &generated::Resource) -> Option<&'static str> {
    let stored = row.storage?;
    let rows = generated::resources().iter();
    let mut named = rows
        .filter(|r| (r.group, r.version, r.kind) == (stored.group, stored.version, stored.kind));
    named.next().map(|row| row.type_name)
}

fn subresource(row: &generated::Resource, sub: &generated::Subresource) -> Subresource {
    Subresource {
        name: sub.name.into(),
        kind: gvk(sub.kind),
        verbs: sub.verbs.to_vec(),
        behaviour: behaviour(row.plural, sub.name),
        tables: !(sub.name == "status" && STATUS_WITHOUT_TABLE.contains(&row.plural)),
    }
}

/// Resources of whose `status` upstream makes no Table.
const STATUS_WITHOUT_TABLE: [&str; 6] = [
    "apiservices",
    "customresourcedefinitions",
    "devicetaintrules",
    "podgroups",
    "resourceclaims",
    "resourcepoolstatusrequests",
];

/// The subresources that are parts of their object, other than `status`.
const PARTS: &[(&str, &str, Members)] = &[
    ("certificatesigningrequests", "approval", &[&["status", "conditions"]]),
    ("pods", "ephemeralcontainers", &[&["spec", "ephemeralContainers"]]),
    (
        "pods",
        "resize",
        &[&["spec", "containers"], &["spec", "initContainers"], &["spec", "resources"]],
    ),
];

/// What a subresource does. Those that carry something other than objects, or that act on other
/// objects, are not served yet.
fn behaviour(resource: &str, name: &str) -> SubresourceBehaviour {
    match name {
        "status" => SubresourceBehaviour::Part(&[&["status"]]),
        "scale" => SubresourceBehaviour::Scale(Arc::new(ScalePaths {
            spec_replicas: vec!["spec".into(), "replicas".into()],
            status_replicas: vec!["status".into(), "replicas".into()],
            selector: Some(vec!["spec".into(), "selector".into()]),
        })),
        "finalize" => SubresourceBehaviour::Finalize,
        "token" => SubresourceBehaviour::Token,
        _ => PARTS
            .iter()
            .find(|(of, part, _)| (*of, *part) == (resource, name))
            .map_or(SubresourceBehaviour::Unserved, |(_, _, members)| {
                SubresourceBehaviour::Part(members)
            }),
    }
}

fn gvk(gvk: Gvk) -> GroupVersionKind {
    GroupVersionKind::new(gvk.group, gvk.version, gvk.kind)
}

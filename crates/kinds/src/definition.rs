//! The definitions of the built-in resources: the generated table joined with the kinds' entries.

use std::sync::{Arc, OnceLock};

use pintle_crd::{BuiltIn, BuiltInResource};
use pintle_meta::{GroupVersionKind, GroupVersionResource};
use pintle_registry::{
    Conversion, Etcd, EtcdForm, Members, ResourceDefinition, ScalePaths, ScaleVersion, Scope,
    Storage, Subresource, SubresourceBehaviour, Verb,
};
use pintle_schema::{Schema, builtin, with_removed};
use pintle_value::Str;

use crate::{
    RuntimeConfig, deprecation,
    features::Features,
    generated::{self, Gvk},
    groups,
    kind::{Collection, Kind, kind},
    printers,
    removed::{self, Removed},
    strategy::{PLAIN, Strategy},
};

/// The definitions of every enabled built-in resource, including removed versions.
pub fn definitions(config: &RuntimeConfig) -> Vec<ResourceDefinition> {
    let schema = Arc::new(builtin().clone());
    let rows = generated::resources().iter();
    let on = rows.filter(|row| config.serves(row.group, row.version, row.plural, row.on));
    let served = on.filter_map(|row| {
        // Every row has an entry and a type: a test ensures this.
        let kind = groups::find(row.group, row.plural)?;
        define(row, kind, &schema, config.features())
    });
    let removed = removed::all()
        .filter(|row| config.serves_removed(row.group, row.form.version, row.resource))
        .filter_map(|row| define_removed(row, config.features()));
    served.chain(removed).collect()
}

/// The definitions of all stored resources in every current version: enabled, disabled, and the
/// records that the servers of one database store for each other ([`internal`]). A resource without
/// a current version is among them if it is enabled. [`removed_version`] returns the removed
/// versions.
pub fn stored(config: &RuntimeConfig) -> Vec<ResourceDefinition> {
    let schema = Arc::new(builtin().clone());
    let rows = generated::resources().iter();
    let public = rows.filter_map(|row| {
        let kind = groups::find(row.group, row.plural)?;
        define(row, kind, &schema, Features::NONE).filter(|d| d.storage.is_some())
    });
    let internal = INTERNAL.iter().filter_map(|row| define_internal(row, &schema));
    let gone = removed::all()
        .filter(|row| row.is_last())
        .filter(|row| config.serves_removed(row.group, row.form.version, row.resource))
        .filter_map(|row| define_removed(row, Features::NONE));
    public.chain(internal).chain(gone).collect()
}

/// The definition of a kind in a removed version, in which another release may have stored objects.
/// The first call makes all of these definitions.
pub fn removed_version(api_version: &str, kind: &str) -> Option<&'static ResourceDefinition> {
    static ALL: OnceLock<Vec<ResourceDefinition>> = OnceLock::new();
    let define = || removed::all().filter_map(|row| define_removed(row, Features::NONE)).collect();
    let mut all = ALL.get_or_init(define).iter();
    all.find(|definition| definition.kind == kind && definition.api_version() == api_version)
}

/// The definition of a record that the servers of one database store for each other and no client
/// sees: `ranges`, `masterleases`, `peerserverleases`.
pub fn internal(resource: &str) -> Option<ResourceDefinition> {
    let row = INTERNAL.iter().find(|row| row.plural == resource)?;
    define_internal(row, &Arc::new(builtin().clone()))
}

fn define_internal(row: &generated::Resource, schema: &Arc<Schema>) -> Option<ResourceDefinition> {
    define(row, &kind(row.group, row.plural, PLAIN), schema, Features::NONE)
}

/// Records that upstream's servers store for each other: allocated node ports, and the live servers
/// (`k8s.io/kubernetes/pkg/registry/core/rest/storage_core.go`, `pkg/controlplane/reconcilers`).
const INTERNAL: [generated::Resource; 3] = [
    internal_row("ranges", "RangeAllocation", "io.k8s.api.core.v1.RangeAllocation"),
    internal_row("masterleases", "Endpoints", "io.k8s.api.core.v1.Endpoints"),
    internal_row("peerserverleases", "Endpoints", "io.k8s.api.core.v1.Endpoints"),
];

const fn internal_row(
    plural: &'static str,
    kind: &'static str,
    type_name: &'static str,
) -> generated::Resource {
    generated::Resource {
        group: "",
        version: "v1",
        plural,
        singular: plural,
        kind,
        list_kind: "",
        namespaced: false,
        verbs: &[],
        short_names: &[],
        categories: &[],
        subresources: &[],
        type_name,
        storage: None,
        on: false,
    }
}

/// The names of all built-in resources, and which of them are enabled.
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
    features: Features,
) -> Option<ResourceDefinition> {
    let strs = |texts: &[&'static str]| texts.iter().copied().map(Str::const_new).collect();
    Some(ResourceDefinition {
        resource: GroupVersionResource::new(row.group, row.version, row.plural),
        kind: row.kind.into(),
        list_kind: row.list_kind.into(),
        singular: row.singular.into(),
        scope: if row.namespaced { Scope::Namespaced } else { Scope::Cluster },
        verbs: row.verbs.to_vec(),
        short_names: strs(row.short_names),
        categories: strs(row.categories),
        storage_kind: storage_kind(row, &etcd(row)),
        schema: schema.clone(),
        ty: schema.find(row.type_name)?,
        strategy: Arc::new(Strategy { features, ..kind.strategy.clone() }),
        subresources: row.subresources.iter().map(|sub| subresource(row, sub)).collect(),
        printer: printers::printer(row.group, row.kind),
        storage: storage(row, kind, schema),
        allocator: None,
        observer: None,
        action: None,
        deprecation: deprecation::of(row),
        typed_items: false,
        described: None,
    })
}

/// The definition of the current resource with the differences of a removed version. `None` if a
/// table lacks the row's names, which a test rules out.
fn define_removed(row: &Removed, features: Features) -> Option<ResourceDefinition> {
    let (ours, kind) = row.latest()?;
    let schema = Arc::new(with_removed().clone());
    let today = define(ours, kind, &schema, features)?;
    let conversion = Conversion {
        ty: today.stored_type(),
        to_stored: row.form.to_stored,
        from_stored: row.form.from_stored,
        conforms: row.conforms,
    };
    let conversion = Some(conversion).filter(|_| !row.is_last());
    let storage = today.storage.clone().map(|s| Storage { conversion, ..s });
    let ty = schema.find(row.type_name)?;
    Some(ResourceDefinition {
        resource: GroupVersionResource::new(row.group, row.form.version, row.resource),
        ty,
        strategy: Arc::new(Strategy { features, ..(row.strategy)(&kind.strategy) }),
        storage,
        subresources: removed_subresources(row, &today),
        deprecation: Some(row.deprecated().deprecation(ours.kind)),
        schema,
        ..today
    })
}

/// The subresources of the current resource as the removed version had them: Parts have the
/// version's own kind. A Scale has the version's own type if the version's package has one, and
/// `rollback` exists if the package has its type.
fn removed_subresources(row: &Removed, today: &ResourceDefinition) -> Vec<Subresource> {
    let own = |kind: &str| GroupVersionKind::new(row.group, row.form.version, kind);
    let beside = |kind: &str| {
        let package = row.type_name.rsplit_once('.').map_or("", |(package, _)| package);
        let name = format!("{package}.{kind}");
        today.schema.find(&name).map(|_| name)
    };
    let mut subresources = today.subresources.clone();
    for part in &mut subresources {
        match &mut part.behaviour {
            SubresourceBehaviour::Scale(paths) => {
                let Some(type_name) = beside("Scale") else { continue };
                part.kind = own("Scale");
                let version = ScaleVersion {
                    api_version: part.kind.group_version().to_string().into(),
                    type_name: type_name.into(),
                    has_map: true,
                };
                *paths = Arc::new(ScalePaths { version, ..ScalePaths::clone(paths) });
            }
            _ if part.kind == today.gvk() => part.kind = own(&today.kind),
            _ => {}
        }
    }
    if row.resource == "deployments" && beside(ROLLBACK).is_some() {
        let rollback = Subresource {
            name: "rollback".into(),
            kind: own(ROLLBACK),
            verbs: vec![Verb::Create],
            behaviour: SubresourceBehaviour::Unserved,
            printer: None,
        };
        subresources.insert(0, rollback);
    }
    subresources
}

/// The kind that a client posts to restore an earlier template of a Deployment.
const ROLLBACK: &str = "DeploymentRollback";

/// The collection of the objects, and the conversion of this version to the stored form.
fn storage(row: &generated::Resource, kind: &Kind, schema: &Schema) -> Option<Storage> {
    let collection = match kind.collection {
        Collection::None => return None,
        Collection::Shared(collection) => collection.into(),
        Collection::Own if row.group.is_empty() => row.plural.into(),
        Collection::Own => format!("{}/{}", row.group, row.plural).into(),
    };
    let form = kind.conversions.iter().find(|form| form.version == row.version);
    let conversion = form.and_then(|form| {
        Some(Conversion {
            ty: schema.find(stored_type(row)?)?,
            to_stored: form.to_stored,
            from_stored: form.from_stored,
            conforms: false,
        })
    });
    Some(Storage { collection, etcd: etcd(row), conversion, converter: None, definer: None })
}

/// Resources whose keys or values in etcd differ from the usual ones: the group and the resource,
/// the prefix of the keys (upstream: `SpecialDefaultResourcePrefixes`, and two groups whose servers
/// put the group first), and the form of the values, which is JSON for two servers.
const SPECIAL: [(&str, &str, &str, EtcdForm); 8] = [
    ("", "replicationcontrollers", "controllers", EtcdForm::Protobuf),
    ("", "endpoints", "services/endpoints", EtcdForm::Protobuf),
    ("", "nodes", "minions", EtcdForm::Protobuf),
    ("", "services", "services/specs", EtcdForm::Protobuf),
    ("networking.k8s.io", "ingresses", "ingress", EtcdForm::Protobuf),
    ("policy", "podsecuritypolicies", "podsecuritypolicy", EtcdForm::Protobuf),
    (
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "apiextensions.k8s.io/customresourcedefinitions",
        EtcdForm::Unserved(&pintle_crd::V1BETA1),
    ),
    ("apiregistration.k8s.io", "apiservices", "apiregistration.k8s.io/apiservices", EtcdForm::Json),
];

fn etcd(row: &generated::Resource) -> Etcd {
    let mut special = SPECIAL.iter();
    let special = special.find(|(group, plural, ..)| (*group, *plural) == (row.group, row.plural));
    let (prefix, form) = special.map_or((row.plural, EtcdForm::Protobuf), |s| (s.2, s.3));
    Etcd { prefix: Str::const_new(prefix), form }
}

/// The kind in which upstream stores the objects.
fn storage_kind(row: &generated::Resource, etcd: &Etcd) -> GroupVersionKind {
    if let EtcdForm::Unserved(version) = etcd.form
        && let Some((group, version)) = version.api_version.split_once('/')
    {
        return GroupVersionKind::new(group, version, row.kind);
    }
    let own = Gvk { group: row.group, version: row.version, kind: row.kind };
    gvk(row.storage.unwrap_or(own))
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
    let has_table = !(sub.name == "status" && STATUS_WITHOUT_TABLE.contains(&row.plural));
    Subresource {
        name: sub.name.into(),
        kind: gvk(sub.kind),
        verbs: sub.verbs.to_vec(),
        behaviour: behaviour(row.plural, sub.name),
        printer: has_table.then(|| printers::printer(sub.kind.group, sub.kind.kind)),
    }
}

/// Resources for whose `status` upstream makes no Table.
const STATUS_WITHOUT_TABLE: [&str; 6] = [
    "apiservices",
    "customresourcedefinitions",
    "devicetaintrules",
    "podgroups",
    "resourceclaims",
    "resourcepoolstatusrequests",
];

/// The subresources, other than `status`, whose object is the parent object.
const PARTS: &[(&str, &str, Members)] = &[
    ("certificatesigningrequests", "approval", &[&["status", "conditions"]]),
    ("namespaces", "finalize", &[&["spec"]]),
    ("pods", "ephemeralcontainers", &[&["spec", "ephemeralContainers"]]),
    (
        "pods",
        "resize",
        &[&["spec", "containers"], &["spec", "initContainers"], &["spec", "resources"]],
    ),
];

/// The behaviour of a subresource. Subresources with other objects than the parent's, or that act
/// on other objects, have no behaviour here.
fn behaviour(resource: &str, name: &str) -> SubresourceBehaviour {
    match name {
        "status" => SubresourceBehaviour::Part(&[&["status"]]),
        "scale" => SubresourceBehaviour::Scale(Arc::new(ScalePaths {
            spec_replicas: vec!["spec".into(), "replicas".into()],
            status_replicas: vec!["status".into(), "replicas".into()],
            selector: Some(vec!["spec".into(), "selector".into()]),
            version: ScaleVersion::V1,
        })),
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

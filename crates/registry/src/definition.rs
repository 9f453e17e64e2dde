//! A resource definition: everything the engine needs to serve a resource, built-in or custom.
//!
//! Definitions are made in two places only (`pintle-kinds` and `pintle-crd`); the engine, discovery,
//! OpenAPI and the handlers read them and never ask which place one came from.

use std::sync::Arc;

use pintle_meta::{GroupKind, GroupResource, GroupVersionKind, GroupVersionResource, field, names};
use pintle_schema::{Schema, TypeId};
use pintle_value::{Str, Value};

use crate::table::Printer;

/// Whether names are unique in a namespace or in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// In the cluster.
    Cluster,
}

/// What clients may do with a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Verb {
    Create,
    Delete,
    DeleteCollection,
    Get,
    List,
    Patch,
    Update,
    Watch,
}

impl Verb {
    /// The verb as discovery and authorization name it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Get => "get",
            Self::List => "list",
            Self::Patch => "patch",
            Self::Update => "update",
            Self::Watch => "watch",
        }
    }
}

/// One resource in one version.
#[derive(Clone)]
pub struct ResourceDefinition {
    /// What the URL names.
    pub resource: GroupVersionResource,
    /// The kind of its objects.
    pub kind: Str,
    /// The kind of its lists.
    pub list_kind: Str,
    /// The name for one of it: `pod`.
    pub singular: Str,
    /// Namespaced or not.
    pub scope: Scope,
    /// In discovery's order (sorted).
    pub verbs: Vec<Verb>,
    /// Short names for kubectl: `po`.
    pub short_names: Vec<Str>,
    /// Categories for kubectl: `all`.
    pub categories: Vec<Str>,
    /// The kind whose hash discovery shows as `storageVersionHash`.
    pub storage_kind: GroupVersionKind,
    /// The resource's types.
    pub schema: Arc<Schema>,
    /// Its objects' type in `schema`.
    pub ty: TypeId,
    /// How its objects behave.
    pub strategy: Strategy,
    /// Its subresources, in discovery's order.
    pub subresources: Vec<Subresource>,
    /// Its columns.
    pub printer: Arc<dyn Printer>,
    /// Where its objects are kept and in which form; `None` for virtual resources (reviews, bindings),
    /// which are answered and not kept.
    pub storage: Option<Storage>,
    /// `Some` when using it should warn (DEP-12): the text of the warning.
    pub deprecation: Option<Str>,
    /// Whether items in JSON lists carry `kind` and `apiVersion` (those of custom resources do).
    pub typed_items: bool,
}

impl ResourceDefinition {
    /// The kind with its group and version.
    pub fn gvk(&self) -> GroupVersionKind {
        let r = &self.resource;
        GroupVersionKind::new(r.group.clone(), r.version.clone(), self.kind.clone())
    }

    /// The kind as errors name it.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(self.resource.group.clone(), self.kind.clone())
    }

    /// The resource as errors name it.
    pub fn group_resource(&self) -> GroupResource {
        self.resource.group_resource()
    }

    /// `apps/v1`: the `apiVersion` of its objects.
    pub fn api_version(&self) -> String {
        self.resource.group_version().to_string()
    }

    /// The type of the stored form of its objects.
    pub fn stored_type(&self) -> TypeId {
        let conversion = self.storage.as_ref().and_then(|s| s.conversion);
        conversion.map_or(self.ty, |c| c.ty)
    }

    /// Whether its objects live in namespaces.
    pub fn namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// The subresource of that name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }
}

/// Where a resource's objects are kept.
#[derive(Clone)]
pub struct Storage {
    /// The collection in the store: `pods`, `apps/deployments`. Versions of a resource share one.
    pub collection: Arc<str>,
    /// How this version's objects become the stored form and back; `None` where this version is the
    /// stored form.
    pub conversion: Option<Conversion>,
}

/// How a version's objects become the stored form and back; both ways lose nothing.
#[derive(Clone, Copy)]
pub struct Conversion {
    /// The stored form's type in the resource's schema.
    pub ty: TypeId,
    /// From this version to the stored form, `apiVersion` included.
    pub to_stored: fn(&mut Value),
    /// From the stored form to this version, `apiVersion` included.
    pub from_stored: fn(&mut Value),
}

/// What a subresource does.
#[derive(Clone, Debug)]
pub struct Subresource {
    /// Its name in the URL.
    pub name: Str,
    /// The kind that it reads and writes.
    pub kind: GroupVersionKind,
    /// What clients may do with it.
    pub verbs: Vec<Verb>,
    /// How it behaves.
    pub behaviour: SubresourceBehaviour,
}

/// The behaviours that the engine knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubresourceBehaviour {
    /// Writes touch only these members of the object (and its metadata); everything else is reset to
    /// what is stored: `status`, `approval`, `ephemeralcontainers`. Reads give the whole object.
    Part(Members),
    /// `autoscaling/v1` Scale; paths are members from the root of the object.
    Scale {
        /// Where the wanted count is: `["spec", "replicas"]`.
        spec_replicas: &'static [&'static str],
        /// Where the actual count is.
        status_replicas: &'static [&'static str],
        /// Where the label selector is: text, a map, or a LabelSelector.
        selector: &'static [&'static str],
    },
    /// `namespaces/finalize`: the only way to change `spec.finalizers`.
    Finalize,
    /// In discovery and OpenAPI, answered with 501-like `Status` until its own issue brings it.
    Unserved,
}

/// Members of an object, each as a path from its root: `&[&["status"]]`.
pub type Members = &'static [&'static [&'static str]];

/// How objects of a kind behave: upstream's strategies, as data where it is data.
///
/// Functions get the tree and change it in place; they do no I/O. `default` sees the version that the
/// client sent; all the others see the stored form.
#[derive(Clone)]
pub struct Strategy {
    /// The rule for names.
    pub name: NameRule,
    /// Finalizers must be qualified names, but for Kubernetes' own (upstream: the built-in kinds).
    pub qualified_finalizers: bool,
    /// PUT to a name that is free creates (STRAT-01).
    pub create_on_update: bool,
    /// PUT without a resource version overwrites (STRAT-02).
    pub unconditional_update: bool,
    /// Which members a write to the resource itself resets to what they were: mostly `status`.
    pub reset_fields: Members,
    /// When `metadata.generation` grows.
    pub generation: Generation,
    /// DELETE answers with the object instead of a Status (STRAT-03).
    pub delete_returns_object: bool,
    /// How long a DELETE lets the object live on.
    pub graceful: Option<fn(&Value) -> GracePeriod>,
    /// Changes an object whose deletion begins and cannot be finished at once (a namespace's phase).
    pub terminating: fn(&mut Value),
    /// Whether something besides `metadata.finalizers` keeps a deleted object from going (a
    /// namespace's `spec.finalizers`).
    pub held: fn(&Value) -> bool,
    /// Objects of the kind vanish by themselves after so many seconds (events: an hour).
    pub ttl_seconds: Option<u64>,
    /// Members by which lists and watches may be selected, besides name and namespace (SEL-01).
    pub fields: &'static [SelectableField],
    /// Sets what the kind's defaults say, on every decode of the kind.
    pub default: fn(&mut Value),
    /// Changes a new object before it is validated: drops what clients may not set.
    pub prepare_create: fn(&mut Value),
    /// Changes an updated object before it is validated; the second is what is stored.
    pub prepare_update: fn(&mut Value, &Value),
    /// What is wrong with an object beyond what the schema's rules say. The second is what is stored,
    /// on updates.
    pub validate: fn(&Value, Option<&Value>) -> Vec<field::Error>,
    /// What a client should hear about an object that is accepted.
    pub warnings: fn(&Value, Option<&Value>) -> Vec<String>,
}

/// Rules for `metadata.name`, by upstream's names (`k8s.io/apimachinery/pkg/api/validation`).
#[derive(Clone, Copy, Debug)]
pub enum NameRule {
    /// A DNS-1123 subdomain: most kinds.
    DnsSubdomain,
    /// A DNS-1123 label: namespaces.
    DnsLabel,
    /// A DNS-1035 label: services.
    Dns1035Label,
    /// Anything that can stand in a path: RBAC.
    PathSegment,
    /// A rule of the kind's own.
    Custom(fn(name: &str, prefix: bool) -> Vec<String>),
}

impl NameRule {
    /// What is wrong with a name; `prefix` for the beginning of a generated one.
    pub fn check(self, name: &str, prefix: bool) -> Vec<String> {
        match self {
            Self::DnsSubdomain => names::subdomain_rule(name, prefix),
            Self::DnsLabel => names::label_rule(name, prefix),
            Self::Dns1035Label => names::dns1035_rule(name, prefix),
            Self::PathSegment => names::path_segment_rule(name, prefix),
            Self::Custom(rule) => rule(name, prefix),
        }
    }
}

/// When `metadata.generation` grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// The kind has none.
    None,
    /// It starts at 1 and grows when any member other than `metadata` and `status` changes.
    Spec,
    /// As [`Generation::Spec`], and it also grows when this member of `metadata` changes:
    /// `annotations` of deployments, `labels` of endpoint slices.
    SpecAnd(&'static str),
}

/// How long after a DELETE an object lives on, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GracePeriod {
    /// It goes at once.
    Immediate,
    /// So long, unless the client says otherwise.
    Seconds(i64),
}

/// A member by which lists and watches may be selected.
#[derive(Clone, Copy)]
pub struct SelectableField {
    /// The label in `fieldSelector`: `spec.nodeName`.
    pub label: &'static str,
    /// Its text in an object of the stored form; `""` where it is absent.
    pub value: fn(&Value) -> Str,
}

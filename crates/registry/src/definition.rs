//! A resource definition: everything the engine needs to serve a resource, built-in or custom.
//!
//! Only `pintle-kinds` and `pintle-crd` make definitions; the engine, discovery, OpenAPI and the handlers read
//! them and never ask which crate made one.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use pintle_meta::{GroupKind, GroupResource, GroupVersionKind, GroupVersionResource, Status};
use pintle_schema::openapi::Described;
use pintle_schema::{Schema, TypeId};
use pintle_value::{Str, Value};

use crate::action::Action;
use crate::allocation::Allocator;
use crate::strategy::Strategy;
use crate::table::Printer;
use crate::{Definer, Observer};

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

/// What is told of a deprecated version of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deprecation {
    /// What clients hear.
    pub warning: Str,
    /// The release that no longer has it: `1.16`.
    pub removed_release: Option<Str>,
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
    pub strategy: Arc<dyn Strategy>,
    /// Its subresources, in discovery's order.
    pub subresources: Vec<Subresource>,
    /// Its columns.
    pub printer: Arc<dyn Printer>,
    /// Where its objects are stored and in which form; `None` for virtual resources (reviews, bindings),
    /// which are answered and not stored.
    pub storage: Option<Storage>,
    /// Who gives its objects what they share with others, where they share something.
    pub allocator: Option<Arc<dyn Allocator>>,
    /// Who is told of changes that were committed, where somebody wants to know.
    pub observer: Option<Arc<dyn Observer>>,
    /// What happens when an object is posted to a virtual resource, where that is for the engine.
    pub action: Option<Arc<dyn Action>>,
    /// `Some` when using it should warn (DEP-12).
    pub deprecation: Option<Deprecation>,
    /// Whether items in JSON lists carry `kind` and `apiVersion` (those of custom resources do).
    pub typed_items: bool,
    /// What OpenAPI says of its types, where the schema's table does not tell it all.
    pub described: Option<Described>,
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

    /// The key that an object would have in upstream's etcd.
    pub fn etcd_key(&self, namespace: &str, name: &str) -> String {
        let prefix = self.storage.as_ref().map_or("", |storage| storage.etcd.prefix.as_str());
        let slash = if namespace.is_empty() { "" } else { "/" };
        format!("{ETCD_PREFIX}/{prefix}/{namespace}{slash}{name}")
    }

    /// The type of the stored form of its objects.
    pub fn stored_type(&self) -> TypeId {
        let conversion = self.storage.as_ref().and_then(|s| s.conversion);
        conversion.map_or(self.ty, |c| c.ty)
    }

    /// Turns a tree of the stored form into one of this version.
    pub fn to_served(&self, tree: &mut Value) {
        if let Some(conversion) = self.storage.as_ref().and_then(|storage| storage.conversion) {
            (conversion.from_stored)(tree);
            self.conform(conversion, self.ty, tree);
        }
    }

    /// Turns a tree of this version into one of the stored form.
    pub fn to_stored(&self, tree: &mut Value) {
        if let Some(conversion) = self.storage.as_ref().and_then(|storage| storage.conversion) {
            (conversion.to_stored)(tree);
            self.conform(conversion, conversion.ty, tree);
        }
    }

    /// Gives a converted tree the zeros that its type writes, and takes those that it leaves out.
    fn conform(&self, conversion: Conversion, ty: TypeId, tree: &mut Value) {
        if conversion.conforms
            && let Err(error) = pintle_schema::conform(&self.schema, ty, tree)
        {
            let (version, kind) = (self.api_version(), &self.kind);
            tracing::error!(%version, %kind, "a converted object is not of its type: {error}");
        }
    }

    /// Sets what an object of this version leaves unsaid: the declared defaults, and the kind's own.
    pub fn set_defaults(&self, tree: &mut Value) {
        pintle_schema::default::apply(&self.schema, self.ty, tree);
        self.strategy.default(tree);
    }

    /// The verbs that discovery shows: while nothing may be created, none that writes.
    pub fn shown_verbs(&self) -> impl Iterator<Item = Verb> + '_ {
        let all = self.strategy.refuse_create().is_none();
        let writes = |verb: &Verb| matches!(verb, Verb::Create | Verb::Patch | Verb::Update);
        self.verbs.iter().copied().filter(move |verb| all || !writes(verb))
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

/// What upstream's keys in etcd begin with.
pub(crate) const ETCD_PREFIX: &str = "/registry";

/// Where a resource's objects are stored.
#[derive(Clone)]
pub struct Storage {
    /// The collection in the store: `pods`, `apps/deployments`. Versions of a resource share one.
    pub collection: Arc<str>,
    /// How upstream stores them in etcd.
    pub etcd: Etcd,
    /// How this version's objects become the stored form and back; `None` where this version is the
    /// stored form.
    pub conversion: Option<Conversion>,
    /// Converts between that form and the stored one, where they differ: versions of custom resources are
    /// converted by webhooks, and objects may have been stored under an older schema.
    pub converter: Option<Arc<dyn StorageConverter>>,
    /// The object that defines the resource, if there is one: objects cannot be created while it is
    /// terminating, or after it is gone.
    pub definer: Option<Arc<Definer>>,
}

/// How upstream keeps a resource's objects in etcd.
#[derive(Clone, Debug)]
pub struct Etcd {
    /// What follows `/registry/` in the keys, which some errors name: `pods`, `minions`.
    pub prefix: Str,
    /// What the values are.
    pub form: EtcdForm,
}

/// The values in upstream's etcd. Where nothing else is said they are of the stored version.
#[derive(Clone, Copy, Debug)]
pub enum EtcdForm {
    /// Kubernetes' Protobuf.
    Protobuf,
    /// JSON, members in the order of their declaration.
    Json,
    /// JSON of a version that is not served.
    Unserved(&'static UnservedVersion),
    /// JSON of objects without a Go type: members sorted.
    Sorted,
}

/// A version that upstream keeps objects in and serves no longer.
#[derive(Debug)]
pub struct UnservedVersion {
    /// The `apiVersion` of its objects.
    pub api_version: &'static str,
    /// Writes an object of the stored form as JSON of this version.
    pub write: fn(Value, &mut Vec<u8>),
    /// Turns an object of this version into the stored form, `apiVersion` included.
    pub read: fn(&mut Value),
}

/// Converts objects between the strategy's form and the stored one. Unlike a [`Conversion`] it may fail,
/// and may call a webhook.
pub trait StorageConverter: Send + Sync {
    /// Whether the stored form is the strategy's: an object written through this definition is then read
    /// without conversion.
    fn writes_own_form(&self) -> bool;

    /// Whether conversion changes more than the `apiVersion`: labels and selectable fields may then differ
    /// between versions.
    fn converts(&self) -> bool;

    /// From the strategy's form to the stored one.
    fn to_storage(&self, objects: Vec<Value>) -> Converting<'_>;

    /// From the stored form to the strategy's, by the definition as it is now.
    fn to_own_form(&self, objects: Vec<Value>) -> Converting<'_>;

    /// Objects of any of the kind's versions as objects of this one.
    fn convert<'a>(&'a self, objects: Vec<Value>, version: &'a str) -> Converting<'a>;
}

/// The converted objects: as many as were given, in the same order.
pub type Converting<'a> = Pin<Box<dyn Future<Output = Result<Vec<Value>, Status>> + Send + 'a>>;

/// How a version's objects become the form that the strategy sees and back; both ways lose nothing.
#[derive(Clone, Copy)]
pub struct Conversion {
    /// The stored form's type in the resource's schema.
    pub ty: TypeId,
    /// From this version to the stored form, `apiVersion` included.
    pub to_stored: fn(&mut Value),
    /// From the stored form to this version, `apiVersion` included.
    pub from_stored: fn(&mut Value),
    /// Whether the types of the two forms differ in which zeros they write, and the functions leave that
    /// to their callers ([`ResourceDefinition::to_stored`], [`ResourceDefinition::to_served`]).
    pub conforms: bool,
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
    /// What makes rows of it; `None` where it cannot be answered as a Table.
    pub printer: Option<Arc<dyn Printer>>,
}

impl Subresource {
    /// The kind of what is written, where it is not the object or a part of it.
    pub(crate) fn own_kind(&self) -> Option<&GroupVersionKind> {
        match self.behaviour {
            SubresourceBehaviour::Scale(_)
            | SubresourceBehaviour::Action(_)
            | SubresourceBehaviour::Token
            | SubresourceBehaviour::Connect => Some(&self.kind),
            _ => None,
        }
    }
}

/// The behaviours that the engine knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubresourceBehaviour {
    /// Writes touch only these members of the object (and its metadata); everything else is reset to
    /// what is stored: `status`, `approval`, `ephemeralcontainers`. Reads give the whole object.
    Part(Members),
    /// `autoscaling/v1` Scale.
    Scale(Arc<ScalePaths>),
    /// `namespaces/finalize`: the only way to change `spec.finalizers`.
    Finalize,
    /// What is posted makes something happen: `binding`, `eviction`.
    Action(Arc<dyn Action>),
    /// It connects the client to something else: `log`, `exec`, `proxy`. Not for the engine.
    Connect,
    /// `serviceaccounts/token`: answered by the server itself, and not stored.
    Token,
    /// In discovery and OpenAPI, answered with 501-like `Status` until its own issue brings it.
    Unserved,
}

/// Where the numbers of a Scale are in its object, as members from the object's root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// The wanted count: `["spec", "replicas"]`.
    pub spec_replicas: Vec<Str>,
    /// The actual count.
    pub status_replicas: Vec<Str>,
    /// The label selector, where there is one: text, a map, or a LabelSelector.
    pub selector: Option<Vec<Str>>,
}

/// Members of an object, each as a path from its root: `&[&["status"]]`.
pub type Members = &'static [&'static [&'static str]];

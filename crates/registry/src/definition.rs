//! Resource definitions: everything that the engine needs to serve a resource, built-in or custom.
//!
//! Only `pintle-kinds` and `pintle-crd` make definitions. The engine, discovery, OpenAPI and the
//! handlers read them and never ask which crate made one.

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

/// The deprecation of a version of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deprecation {
    /// The text of the `Warning` header that clients get.
    pub warning: Str,
    /// The first release without the version: `1.16`.
    pub removed_release: Option<Str>,
}

/// The definition of one resource in one version.
#[derive(Clone)]
pub struct ResourceDefinition {
    /// Group, version and plural name, as in the URL.
    pub resource: GroupVersionResource,
    /// The kind of the resource's objects.
    pub kind: Str,
    /// The kind of the resource's lists.
    pub list_kind: Str,
    /// The singular name: `pod`.
    pub singular: Str,
    /// Whether the objects live in namespaces.
    pub scope: Scope,
    /// The supported verbs, sorted as discovery shows them.
    pub verbs: Vec<Verb>,
    /// Short names for kubectl: `po`.
    pub short_names: Vec<Str>,
    /// Categories for kubectl: `all`.
    pub categories: Vec<Str>,
    /// The kind whose hash discovery shows as `storageVersionHash`.
    pub storage_kind: GroupVersionKind,
    /// The schema with the resource's types.
    pub schema: Arc<Schema>,
    /// The type of the objects in `schema`.
    pub ty: TypeId,
    /// The rules for create, update and delete.
    pub strategy: Arc<dyn Strategy>,
    /// The subresources, in discovery's order.
    pub subresources: Vec<Subresource>,
    /// Makes the rows of a Table.
    pub printer: Arc<dyn Printer>,
    /// Where and in which form the objects are stored; `None` for a virtual resource (reviews,
    /// bindings), whose objects are answered and never stored.
    pub storage: Option<Storage>,
    /// Assigns shared values, such as IP addresses and ports, to the objects.
    pub allocator: Option<Arc<dyn Allocator>>,
    /// Learns of committed changes.
    pub observer: Option<Arc<dyn Observer>>,
    /// Performs what is posted to a virtual resource, where the engine does so.
    pub action: Option<Arc<dyn Action>>,
    /// The deprecation warning, if the version is deprecated (DEP-12).
    pub deprecation: Option<Deprecation>,
    /// Whether items in JSON lists carry `kind` and `apiVersion` (only items of custom resources
    /// do).
    pub typed_items: bool,
    /// OpenAPI schemas of the resource's types, where `schema` lacks details.
    pub described: Option<Described>,
}

impl ResourceDefinition {
    /// Returns the objects' group, version and kind.
    pub fn gvk(&self) -> GroupVersionKind {
        let r = &self.resource;
        GroupVersionKind::new(r.group.clone(), r.version.clone(), self.kind.clone())
    }

    /// Returns the kind with its group, as errors name it.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(self.resource.group.clone(), self.kind.clone())
    }

    /// Returns the resource with its group, as errors name it.
    pub fn group_resource(&self) -> GroupResource {
        self.resource.group_resource()
    }

    /// Returns the `apiVersion` of the objects: `apps/v1`.
    pub fn api_version(&self) -> String {
        self.resource.group_version().to_string()
    }

    /// Returns the key that upstream uses for an object in etcd.
    pub fn etcd_key(&self, namespace: &str, name: &str) -> String {
        let prefix = self.storage.as_ref().map_or("", |storage| storage.etcd.prefix.as_str());
        let slash = if namespace.is_empty() { "" } else { "/" };
        format!("{ETCD_PREFIX}/{prefix}/{namespace}{slash}{name}")
    }

    /// Returns the type of the stored form of the objects.
    pub fn stored_type(&self) -> TypeId {
        let conversion = self.storage.as_ref().and_then(|s| s.conversion);
        conversion.map_or(self.ty, |c| c.ty)
    }

    /// Converts a tree from the stored form to this version.
    pub fn to_served(&self, tree: &mut Value) {
        if let Some(conversion) = self.storage.as_ref().and_then(|storage| storage.conversion) {
            (conversion.from_stored)(tree);
            self.conform(conversion, self.ty, tree);
        }
    }

    /// Converts a tree from this version to the stored form.
    pub fn to_stored(&self, tree: &mut Value) {
        if let Some(conversion) = self.storage.as_ref().and_then(|storage| storage.conversion) {
            (conversion.to_stored)(tree);
            self.conform(conversion, conversion.ty, tree);
        }
    }

    /// Adds the zero values that `ty` writes to a converted tree, and removes those that it omits.
    fn conform(&self, conversion: Conversion, ty: TypeId, tree: &mut Value) {
        if conversion.conforms
            && let Err(error) = pintle_schema::conform(&self.schema, ty, tree)
        {
            let (version, kind) = (self.api_version(), &self.kind);
            tracing::error!(%version, %kind, "a converted object does not match its type: {error}");
        }
    }

    /// Sets absent members to the schema's declared defaults and to the kind's own defaults.
    pub fn set_defaults(&self, tree: &mut Value) {
        pintle_schema::default::apply(&self.schema, self.ty, tree);
        self.strategy.default(tree);
    }

    /// Returns the verbs that discovery shows: no writing verb while the strategy refuses creates.
    pub fn shown_verbs(&self) -> impl Iterator<Item = Verb> + '_ {
        let all = self.strategy.refuse_create().is_none();
        let writes = |verb: &Verb| matches!(verb, Verb::Create | Verb::Patch | Verb::Update);
        self.verbs.iter().copied().filter(move |verb| all || !writes(verb))
    }

    /// Whether the objects live in namespaces.
    pub fn namespaced(&self) -> bool {
        self.scope == Scope::Namespaced
    }

    /// Finds a subresource by name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|s| s.name == name)
    }
}

/// The prefix of all of upstream's keys in etcd.
pub(crate) const ETCD_PREFIX: &str = "/registry";

/// Where and how a resource's objects are stored.
#[derive(Clone)]
pub struct Storage {
    /// The collection in the store: `pods`, `apps/deployments`. All versions of a resource share
    /// it.
    pub collection: Arc<str>,
    /// How upstream stores the objects in etcd.
    pub etcd: Etcd,
    /// Converts between this version and the stored form; `None` where this version is the stored
    /// form.
    pub conversion: Option<Conversion>,
    /// Converts between the strategy's form and the stored form of a custom resource: its objects
    /// may be stored in another version, which a webhook converts, or under an older schema.
    pub converter: Option<Arc<dyn StorageConverter>>,
    /// The object that defines the resource (a CustomResourceDefinition). No object can be created
    /// while the definer is terminating or after it is deleted.
    pub definer: Option<Arc<Definer>>,
}

/// How upstream stores a resource's objects in etcd.
#[derive(Clone, Debug)]
pub struct Etcd {
    /// The key prefix after `/registry/`, which some errors name: `pods`, `minions`.
    pub prefix: Str,
    /// The encoding of the values.
    pub form: EtcdForm,
}

/// The encoding of values in upstream's etcd. All but `Unserved` are of the storage version.
#[derive(Clone, Copy, Debug)]
pub enum EtcdForm {
    /// Kubernetes' Protobuf envelope.
    Protobuf,
    /// JSON with members in the order of their declaration.
    Json,
    /// JSON of a version that is not served.
    Unserved(&'static UnservedVersion),
    /// JSON of objects without a Go type, with sorted members.
    Sorted,
}

/// A version that upstream still stores objects in but no longer serves.
#[derive(Debug)]
pub struct UnservedVersion {
    /// The `apiVersion` of its objects.
    pub api_version: &'static str,
    /// Encodes an object of the stored form as JSON of this version.
    pub write: fn(Value, &mut Vec<u8>),
    /// Converts an object of this version to the stored form, `apiVersion` included.
    pub read: fn(&mut Value),
}

/// Converts objects between the strategy's form and the stored form. Unlike a [`Conversion`], it
/// may fail and may call a webhook.
pub trait StorageConverter: Send + Sync {
    /// Whether the stored form is the strategy's form, so that an object which this definition
    /// wrote is read without conversion.
    fn writes_own_form(&self) -> bool;

    /// Whether a conversion changes more than the `apiVersion`. If so, labels and selectable fields
    /// may differ between versions.
    fn converts(&self) -> bool;

    /// Converts from the strategy's form to the stored form.
    fn to_storage(&self, objects: Vec<Value>) -> Converting<'_>;

    /// Converts from the stored form to the strategy's form, by the current definition.
    fn to_own_form(&self, objects: Vec<Value>) -> Converting<'_>;

    /// Converts objects of any version of the kind to `version`.
    fn convert<'a>(&'a self, objects: Vec<Value>, version: &'a str) -> Converting<'a>;
}

/// The future of converted objects: as many as the input has, in the same order.
pub type Converting<'a> = Pin<Box<dyn Future<Output = Result<Vec<Value>, Status>> + Send + 'a>>;

/// The functions between a built-in version and the stored form. Both directions are lossless.
#[derive(Clone, Copy)]
pub struct Conversion {
    /// The type of the stored form in the resource's schema.
    pub ty: TypeId,
    /// Converts from this version to the stored form, `apiVersion` included.
    pub to_stored: fn(&mut Value),
    /// Converts from the stored form to this version, `apiVersion` included.
    pub from_stored: fn(&mut Value),
    /// True if the two types write different zero values and the functions leave it to
    /// [`ResourceDefinition::to_stored`] and [`ResourceDefinition::to_served`] to add or remove
    /// them.
    pub conforms: bool,
}

/// A subresource of a resource.
#[derive(Clone, Debug)]
pub struct Subresource {
    /// The name in the URL.
    pub name: Str,
    /// The kind of request and response bodies.
    pub kind: GroupVersionKind,
    /// The supported verbs.
    pub verbs: Vec<Verb>,
    /// What the engine does for a request.
    pub behaviour: SubresourceBehaviour,
    /// Makes the rows of a Table; `None` if the subresource has no Table.
    pub printer: Option<Arc<dyn Printer>>,
}

impl Subresource {
    /// Returns the kind of the body, where the body is not the object or a part of it.
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

/// What the engine does for a subresource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubresourceBehaviour {
    /// Reads return the whole object. Writes change only these members and the metadata; the other
    /// members keep their stored values: `status`, `approval`, `ephemeralcontainers`.
    Part(Members),
    /// Reads and writes an `autoscaling/v1` Scale.
    Scale(Arc<ScalePaths>),
    /// `namespaces/finalize`: the only way to change `spec.finalizers`.
    Finalize,
    /// A POST performs an action and stores no object of its own: `binding`, `eviction`.
    Action(Arc<dyn Action>),
    /// Connects the client to another server: `log`, `exec`, `proxy`. The engine does not serve it.
    Connect,
    /// `serviceaccounts/token`: the server answers it and stores nothing.
    Token,
    /// In discovery and OpenAPI, but not implemented: answered with an error `Status`.
    Unserved,
}

/// The paths of a Scale's values in its object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// The desired count: `["spec", "replicas"]`.
    pub spec_replicas: Vec<Str>,
    /// The observed count.
    pub status_replicas: Vec<Str>,
    /// The label selector, if the kind has one: a string, a map, or a LabelSelector.
    pub selector: Option<Vec<Str>>,
}

/// Paths of members from an object's root: `&[&["status"]]`.
pub type Members = &'static [&'static [&'static str]];

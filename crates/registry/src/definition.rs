//! Resource definitions: everything that the engine needs to serve a resource, built-in or custom.
//!
//! Only `pintle-kinds` and `pintle-crd` make definitions. The engine, discovery, OpenAPI and the
//! handlers read them and never ask which crate made one.

mod storage;
mod subresource;

use std::borrow::Cow;
use std::sync::Arc;

use pintle_meta::{GroupKind, GroupResource, GroupVersionKind, GroupVersionResource};
use pintle_schema::openapi::Described;
use pintle_schema::{Schema, TypeId};
use pintle_value::{Str, Value};

use crate::Observer;
use crate::action::Action;
use crate::allocation::Allocator;
pub use crate::strategy::Members;
use crate::strategy::Strategy;
use crate::table::Printer;
pub(crate) use storage::ETCD_PREFIX;
pub use storage::{
    Conversion, Converting, Etcd, EtcdForm, Storage, StorageConverter, UnservedVersion,
};
pub use subresource::{ScalePaths, ScaleVersion, Subresource, SubresourceBehaviour};

/// Whether names are unique in a namespace or in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// In the cluster.
    Cluster,
}

/// A verb of the API: an operation on a resource that clients may request.
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
    /// bindings), whose objects are returned and never stored.
    pub storage: Option<Storage>,
    /// Assigns shared values, such as IP addresses and ports, to the objects.
    pub allocator: Option<Arc<dyn Allocator>>,
    /// Learns of committed changes.
    pub observer: Option<Arc<dyn Observer>>,
    /// Performs the action of an object that is posted to a virtual resource; `None` if the engine
    /// has no action for it.
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

    /// Returns a tree of the stored form in this version: itself, if the version is the stored one.
    pub fn served<'t>(&self, stored: &'t Value) -> Cow<'t, Value> {
        match self.storage.as_ref().and_then(|storage| storage.conversion) {
            None => Cow::Borrowed(stored),
            Some(_) => {
                let mut tree = stored.clone();
                self.to_served(&mut tree);
                Cow::Owned(tree)
            }
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

    /// Returns the verbs that discovery shows: without create, patch and update while the strategy
    /// refuses creates.
    pub fn shown_verbs(&self) -> impl Iterator<Item = Verb> + '_ {
        let all = self.strategy.refuse_create().is_none();
        let writes = |verb: &Verb| matches!(verb, Verb::Create | Verb::Patch | Verb::Update);
        self.verbs.iter().copied().filter(move |verb| all || !writes(verb))
    }

    /// Whether an object (a CustomResourceDefinition) defines the resource.
    pub fn is_custom(&self) -> bool {
        self.storage.as_ref().is_some_and(|storage| storage.definer.is_some())
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

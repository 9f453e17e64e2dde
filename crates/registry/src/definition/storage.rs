//! How the objects of a resource are stored: the collection, upstream's form in etcd, and the
//! conversions between versions.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use pintle_meta::Status;
use pintle_schema::TypeId;
use pintle_value::{Str, Value};

use crate::Definer;

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
    /// Whether the two types write different zero values and the functions leave it to
    /// [`ResourceDefinition::to_stored`] and [`ResourceDefinition::to_served`] to add or remove
    /// them.
    pub conforms: bool,
}

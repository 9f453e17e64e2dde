//! The admission seam: who may still say no, after authorization and before validation.

use pintle_meta::{Status, User};
use pintle_value::Value;

use crate::{Registry, Resource};

/// What a write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// An object that was absent.
    Create,
    /// An object that is there; every patch is one.
    Update,
    /// A deletion, also of each object of a collection.
    Delete,
}

/// A write as admission sees it.
pub struct Attributes<'a> {
    /// What it does.
    pub operation: Operation,
    /// On which resource.
    pub resource: &'a Resource,
    /// In which namespace, `""` for cluster-scoped resources.
    pub namespace: &'a str,
    /// Which object; `""` where the name is yet to be generated.
    pub name: &'a str,
    /// Which part of it, or `""`.
    pub subresource: &'a str,
    /// The object that is to be written, in its stored form; absent in deletions.
    pub object: Option<&'a Value>,
    /// What is stored, where an object is updated.
    pub old: Option<&'a Value>,
    /// Who writes.
    pub user: &'a User,
}

/// Who may still refuse a write.
pub trait Admission: Send + Sync {
    /// Refuses a write, or lets it pass.
    fn admit(&self, attributes: &Attributes<'_>, registry: &Registry) -> Result<(), Status>;
}

/// The admission chain: all are asked, in order.
pub struct Chain(pub Vec<Box<dyn Admission>>);

impl Admission for Chain {
    fn admit(&self, attributes: &Attributes<'_>, registry: &Registry) -> Result<(), Status> {
        self.0.iter().try_for_each(|one| one.admit(attributes, registry))
    }
}

/// Lets everything pass.
pub struct AdmitAll;

impl Admission for AdmitAll {
    fn admit(&self, _: &Attributes<'_>, _: &Registry) -> Result<(), Status> {
        Ok(())
    }
}

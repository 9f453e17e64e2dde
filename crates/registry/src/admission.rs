//! The admission seam: who may still say no, after authorization and before validation; and who is asked
//! elsewhere, about a new object before it is validated and after.

use std::future::Future;
use std::pin::Pin;

use pintle_meta::{GroupVersionKind, Status, User};
use pintle_value::Value;

use crate::allocation::Companion;
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

impl Operation {
    /// The name by which rules and reviews call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
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
    /// The kind of what is written, where it is not the resource's own but a Scale, or what is posted to
    /// make something happen.
    pub kind: Option<&'a GroupVersionKind>,
    /// The object that is to be written, in its stored form; absent in deletions.
    pub object: Option<&'a Value>,
    /// What is stored, where an object is updated or deleted.
    pub old: Option<&'a Value>,
    /// Who writes.
    pub user: &'a User,
    /// Nothing will come of the write.
    pub dry_run: bool,
}

/// What is waited for.
pub type Waited<'a, T> = Pin<Box<dyn Future<Output = Result<T, Status>> + Send + 'a>>;

/// What was made of an object.
#[derive(Debug, Default)]
pub struct Mutated {
    /// The object in the version of the write's resource, where it was changed.
    pub object: Option<Value>,
    /// Texts for `Warning` headers.
    pub warnings: Vec<String>,
}

/// Who may still refuse a write.
pub trait Admission: Send + Sync {
    /// Refuses a write, or lets it pass.
    fn admit(&self, _: &Attributes<'_>, _: &Registry) -> Result<(), Status> {
        Ok(())
    }

    /// Changes a new state, which `write` is without, or refuses the write. What is set here belongs to
    /// nobody.
    fn shape(&self, _: &Attributes<'_>, _: &mut Value, _: &Registry) -> Result<(), Status> {
        Ok(())
    }

    /// What must come to be before a write can be shaped, where there is hope that it does.
    fn awaited<'a>(&'a self, _: &'a Attributes<'a>, _: &'a Registry) -> Option<Waited<'a, ()>> {
        None
    }

    /// Asks elsewhere what to make of an object, or refuses the write; `None` where nobody has anything to
    /// say.
    fn mutate<'a>(&'a self, _: &'a Attributes<'a>, _: &'a Registry) -> Option<Waited<'a, Mutated>> {
        None
    }

    /// Refuses what is valid otherwise, or lets it pass with texts for `Warning` headers.
    fn judge(&self, _: &Attributes<'_>, _: &Registry) -> Result<Vec<String>, Status> {
        Ok(Vec::new())
    }

    /// What must be committed with a write, or not at all.
    fn charge(&self, _: &Attributes<'_>, _: &Registry) -> Result<Vec<Companion>, Status> {
        Ok(Vec::new())
    }

    /// As [`Admission::judge`], elsewhere; `None` where nobody has anything to say.
    fn review<'a>(
        &'a self,
        _: &'a Attributes<'a>,
        _: &'a Registry,
    ) -> Option<Waited<'a, Vec<String>>> {
        None
    }
}

/// The admission chain: all are asked, in order. Only one may wait, and one may have objects changed
/// elsewhere.
pub struct Chain(pub Vec<Box<dyn Admission>>);

impl Admission for Chain {
    fn admit(&self, attributes: &Attributes<'_>, registry: &Registry) -> Result<(), Status> {
        self.0.iter().try_for_each(|one| one.admit(attributes, registry))
    }

    fn shape(
        &self,
        attributes: &Attributes<'_>,
        object: &mut Value,
        registry: &Registry,
    ) -> Result<(), Status> {
        self.0.iter().try_for_each(|one| one.shape(attributes, object, registry))
    }

    fn awaited<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        registry: &'a Registry,
    ) -> Option<Waited<'a, ()>> {
        self.0.iter().find_map(|one| one.awaited(attributes, registry))
    }

    fn charge(
        &self,
        attributes: &Attributes<'_>,
        registry: &Registry,
    ) -> Result<Vec<Companion>, Status> {
        let mut companions = Vec::new();
        for one in &self.0 {
            companions.extend(one.charge(attributes, registry)?);
        }
        Ok(companions)
    }

    fn judge(
        &self,
        attributes: &Attributes<'_>,
        registry: &Registry,
    ) -> Result<Vec<String>, Status> {
        let mut warnings = Vec::new();
        for one in &self.0 {
            warnings.extend(one.judge(attributes, registry)?);
        }
        Ok(warnings)
    }

    fn mutate<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        registry: &'a Registry,
    ) -> Option<Waited<'a, Mutated>> {
        self.0.iter().find_map(|one| one.mutate(attributes, registry))
    }

    fn review<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        registry: &'a Registry,
    ) -> Option<Waited<'a, Vec<String>>> {
        let mut reviews = self.0.iter().filter_map(|one| one.review(attributes, registry));
        let first = reviews.next()?;
        let others: Vec<_> = reviews.collect();
        if others.is_empty() {
            return Some(first);
        }
        Some(Box::pin(async move {
            let mut warnings = first.await?;
            for review in others {
                warnings.extend(review.await?);
            }
            Ok(warnings)
        }))
    }
}

/// Lets everything pass.
pub struct AdmitAll;

impl Admission for AdmitAll {}

//! The admission seam: who may still say no, after authorization and before validation; and who is asked
//! elsewhere, about a new object before it is validated and after.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;

use pintle_measure::Counter;
use pintle_meta::{GroupVersionKind, Status, User, field::Errors};
use pintle_value::Value;

use crate::allocation::Companion;
use crate::request::{DeleteOptions, Now, Recorder, WriteOptions};
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
    /// A connection through an object to something else.
    Connect,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Create, Self::Update, Self::Delete, Self::Connect];

    /// The name by which rules and reviews call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
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
    /// When.
    pub now: Now,
    /// How long webhooks took, in nanoseconds.
    pub waited: &'a Counter,
    /// Who records the request, if it is audited.
    pub recorder: Option<&'a dyn Recorder>,
    /// Nothing will come of the write.
    pub dry_run: bool,
    /// How it is to be done.
    pub options: Options<'a>,
}

/// The options of a write, as the client gave them.
#[derive(Clone, Copy)]
pub enum Options<'a> {
    /// Of a create, an update or a patch.
    Write(&'a WriteOptions),
    /// Of a deletion.
    Delete(&'a DeleteOptions),
    /// A connection has none.
    None,
}

/// What is waited for.
pub type Waited<'a, T> = Pin<Box<dyn Future<Output = Result<T, Status>> + Send + 'a>>;

/// What was made of an object.
#[derive(Debug, Default)]
pub struct Mutated {
    /// The object in the version of the write's resource, where it was changed. It is yet to be read
    /// against its schema, and defaulted.
    pub object: Option<Value>,
    /// Texts for `Warning` headers.
    pub warnings: Vec<String>,
}

/// What one who changes objects remembers of a write. Each is asked twice at most: once more if anybody
/// changed the object, and then only those of its own askers that want it and have not seen the last
/// change (upstream: `ReinvocationContext`).
#[derive(Debug, Default)]
pub struct Memory {
    /// Whether it is the second time.
    pub again: bool,
    /// Whether it changed the object.
    pub changed: bool,
    /// What was left of the object the first time.
    left: Option<Value>,
    /// Who was asked and wants to be asked again.
    asked: BTreeSet<String>,
    /// Who is to be asked again.
    due: BTreeSet<String>,
}

impl Memory {
    /// The object was changed: who was asked before and wants it is to be asked again.
    pub fn wake(&mut self) {
        self.changed = true;
        self.due.append(&mut self.asked);
    }

    /// Notes that somebody was asked who wants to be asked again.
    pub fn note(&mut self, key: String) {
        self.asked.insert(key);
    }

    /// Whether somebody is to be asked now.
    pub fn is_due(&self, key: &str) -> bool {
        !self.again || self.due.contains(key)
    }

    /// Begins the second time, about an object that others may have changed since.
    pub(crate) fn begin_again(&mut self, object: &Value) {
        self.again = true;
        if self.left.as_ref() != Some(object) {
            self.due.append(&mut self.asked);
        }
    }

    /// Notes what was left of an object.
    pub(crate) fn leave(&mut self, object: &Value) {
        // Where nobody wants to be asked again, nobody compares.
        self.left = (!self.asked.is_empty()).then(|| object.clone());
    }
}

/// Who may still refuse a write.
pub trait Admission: Send + Sync {
    /// Refuses a write, or lets it pass: as the client sent it, and again where a mutator changed it.
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

    /// Asks those whom users registered what to make of an object, or refuses the write; `None` where
    /// nobody has anything to say.
    fn mutate<'a>(
        &'a self,
        _: &'a Attributes<'a>,
        _: &'a Registry,
        _: &'a mut Memory,
    ) -> Option<Waited<'a, Mutated>> {
        None
    }

    /// Those whose [`Admission::mutate`] is asked, one after the other.
    fn mutators(&self) -> &[Box<dyn Admission>] {
        &[]
    }

    /// Refuses an object with which its writer would grant rights that it does not have; `None` where nobody
    /// has anything to say. The object is what the last mutator left, and not yet validated (upstream: the
    /// storage of roles and bindings).
    fn authorize<'a>(&'a self, _: &'a Attributes<'a>, _: &'a Registry) -> Option<Waited<'a, ()>> {
        None
    }

    /// Adds what is wrong with an object that the rules of its kind cannot see, before it is refused for what
    /// they see.
    fn complete(&self, _: &Attributes<'_>, _: &mut Errors) {}

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

/// The admission chain: all are asked, in order. Of a write only one may have to be waited for before it is
/// shaped, and one decide on what it grants.
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

    fn authorize<'a>(
        &'a self,
        attributes: &'a Attributes<'a>,
        registry: &'a Registry,
    ) -> Option<Waited<'a, ()>> {
        self.0.iter().find_map(|one| one.authorize(attributes, registry))
    }

    fn complete(&self, attributes: &Attributes<'_>, errors: &mut Errors) {
        self.0.iter().for_each(|one| one.complete(attributes, errors));
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

    fn mutators(&self) -> &[Box<dyn Admission>] {
        &self.0
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

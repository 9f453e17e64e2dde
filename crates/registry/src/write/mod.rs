//! The write path (law 6): decode, default, own, admit, prepare, validate, encode, commit, answer. Create,
//! update, every patch, subresources and finalizers are this path with other steps filled in; a dry
//! run is this path without the commit.
//!
//! Must not know: which kind it writes; that is in the definition's strategy.

mod act;
mod admission;
mod amend;
mod apply;
mod audited;
mod basis;
mod body;
mod commit;
mod contention;
mod coordinates;
mod create;
mod delete;
mod metadata;
mod mutate;
mod ownership;
mod patch;
mod posting;
mod record;
mod scale;
mod update;
mod versions;

use std::collections::HashSet;

use pintle_meta::{GroupKind, Status, field, object};
use pintle_value::{Path, Value};

use crate::admission::Operation;
use crate::definition::ScalePaths;
use crate::registry::Registry;
use crate::request::{Context, FieldValidation, MayCreate, Target, WriteOptions};

pub(crate) use act::action;
pub(crate) use commit::{Committed, encode};
pub(crate) use contention::RetryQueues;
pub(crate) use create::begin;
pub(crate) use delete::warn_of_dependents;
pub(crate) use ownership::track_own;
pub(crate) use posting::Tills;
pub(crate) use scale::scale_paths;

/// One write request on its way.
pub(crate) struct Write<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) target: &'a Target,
    pub(crate) options: &'a WriteOptions,
    pub(crate) context: &'a Context,
    /// Whether a configuration is applied, which is nothing without its managers.
    pub(crate) applies: bool,
    /// What is changed of the object is its Scale, and that is what admission sees.
    pub(crate) scale: Option<&'a ScalePaths>,
    /// Asked before a write that names an object makes it.
    pub(crate) may_create: &'a dyn MayCreate,
}

/// What a client sent, as a tree.
#[derive(Clone)]
pub(crate) struct Draft {
    /// In the version that the client sent, until [`Write::store_form`].
    pub(crate) tree: Value,
    /// Its managed fields say already who owns what.
    pub(crate) tracked: bool,
    /// It is a body, all of it: the uid that it names must be that of the object which is there. What a
    /// patch makes of a uid is a change of what must not change (upstream: only the object info of an
    /// update has preconditions, and controllers take a patch's 422 for "it is another object now").
    pub(crate) whole: bool,
}

impl Write<'_> {
    /// What is wrong with the form of what a client sent, and can be borne, is refused, told or ignored,
    /// as the client wants it.
    fn heed(
        &self,
        problems: impl ExactSizeIterator<Item = String>,
        refusal: impl FnOnce() -> Status,
    ) -> Result<(), Status> {
        match self.options.strictness() {
            FieldValidation::Strict if problems.len() > 0 => return Err(refusal()),
            FieldValidation::Warn => self.context.warnings.extend(problems),
            FieldValidation::Strict | FieldValidation::Ignore => {}
        }
        Ok(())
    }

    /// The declared defaults and the kind's own, then the stored form.
    fn store_form(&self, tree: &mut Value, applied: bool) {
        let resource = &self.target.resource;
        if !applied {
            resource.strategy.coerce(tree);
        }
        resource.set_defaults(tree);
        resource.to_stored(tree);
    }

    /// Everything that is wrong with an object of the stored form, as one Status (VAL-01, VAL-06).
    fn validate(&self, new: &Value, old: Option<&Value>) -> Result<(), Status> {
        let resource = &self.target.resource;
        self.check_own_kind(new)?;
        let path = Path::new("metadata");
        let rule =
            |name: &str, prefix: bool| resource.strategy.name_rule().check(new, old, name, prefix);
        let mut errors =
            pintle_meta::validation::object_meta(new, resource.namespaced(), &rule, &path);
        if let Some(old) = old {
            let found = pintle_meta::validation::object_meta_update(new, old, &path);
            // Upstream looks at it for every kind, and most kinds do so again: a cause for each.
            if !resource.strategy.metadata_checked_once() {
                errors.extend(found.iter().cloned());
            }
            errors.extend(found);
        }
        if resource.strategy.qualified_finalizers() {
            errors.extend(unqualified_finalizers(new));
        }
        let mut borne = Vec::new();
        let own = resource.strategy.validate(new, old, &self.target.subresource, &mut borne);
        self.context.warnings.extend(borne);
        if resource.strategy.declared_rules() {
            // What a kind says of a field counts; the table's rule would only say it again.
            let (schema, ty) = (&resource.schema, resource.stored_type());
            let declared = pintle_schema::validate::validate(schema, ty, new, old).into_iter();
            let said: HashSet<&str> = own.iter().map(|error| &*error.field).collect();
            errors.extend(declared.filter(|error| !said.contains(&*error.field)));
        }
        errors.extend(own);
        let operation = if old.is_some() { Operation::Update } else { Operation::Create };
        let attributes = self.attributes(operation, object::name(new), Some(new), old);
        self.registry.admission.validate_fields(&attributes, &mut errors);
        if errors.is_empty() {
            return Ok(());
        }
        // The kind is that of the stored form: an Event is one of the core group in every version.
        let api_version = new.str_at(&["apiVersion"]).unwrap_or_default();
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let kind = GroupKind::new(group, resource.kind.clone());
        Err(Status::invalid(&kind, object::name(new), &errors))
    }
}

/// Kubernetes' own finalizers, which have no domain.
const STANDARD_FINALIZERS: &[&str] = &["kubernetes", "orphan", "foregroundDeletion"];

fn unqualified_finalizers(tree: &Value) -> impl Iterator<Item = field::Error> {
    let path = Path::new("metadata").field("finalizers");
    let named = pintle_meta::object::finalizers(tree).enumerate();
    let wrong =
        named.filter(|(_, name)| !name.contains('/') && !STANDARD_FINALIZERS.contains(name));
    wrong.map(move |(i, name)| {
        let why = "name is neither a standard finalizer name nor is it fully qualified";
        field::Error::invalid(&path.index(i), &name.into(), why)
    })
}

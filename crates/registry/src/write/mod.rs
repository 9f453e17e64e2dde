//! The write path (law 6): decode, default, track ownership, admit, prepare, validate, encode,
//! commit, respond. Create, update, every patch, subresources and finalizers take this path with
//! different steps; a dry run takes it without the commit.
//!
//! It must not know which kind it writes: the definition's strategy has the kind's behaviour.

mod act;
mod admission;
mod amend;
mod apply;
mod audit;
mod basis;
mod body;
mod commit;
mod contention;
mod coordinates;
mod create;
mod delete;
mod holding;
mod metadata;
mod metadata_errors;
mod mutate;
mod own_writes;
mod ownership;
mod patch;
mod posting;
mod record;
mod scale;
mod update;
mod versions;

use std::collections::HashSet;
use std::time::Instant;

use pintle_meta::{GroupKind, Status, object};
use pintle_trace::Layer;
use pintle_value::Value;

use crate::admission::Operation;
use crate::definition::ScalePaths;
use crate::registry::Registry;
use crate::request::{Context, FieldValidation, MayCreate, Target, WriteOptions};

use metadata_errors::metadata_errors;

pub(crate) use act::action;
pub(crate) use contention::RetryQueues;
pub(crate) use delete::{Review, warn_of_dependents};
pub use holding::{HOLD_MAX, PostingHold};
pub(crate) use posting::PostingQueues;
pub(crate) use scale::scale_paths;

/// A write request in progress.
pub(crate) struct Write<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) target: &'a Target,
    pub(crate) options: &'a WriteOptions,
    pub(crate) context: &'a Context,
    /// True for server-side apply, whose object must not be stored without `managedFields`.
    pub(crate) is_apply: bool,
    /// Set for a write to the `scale` subresource: admission sees the Scale in place of the object.
    pub(crate) scale: Option<&'a ScalePaths>,
    /// Decides whether an update of a missing object may create it.
    pub(crate) may_create: &'a dyn MayCreate,
}

/// A client's object as a tree.
#[derive(Clone)]
pub(crate) struct Draft {
    /// In the version that the client sent, until [`Write::store_form`].
    pub(crate) tree: Value,
    /// Whether `managedFields` are up to date already.
    pub(crate) tracked: bool,
    /// Whether the draft is a complete request body (create or update), so that a uid in it is a
    /// precondition. In a patch, another uid is a change of an immutable field (upstream: only the
    /// object info of an update has preconditions, and controllers take a patch's 422 to mean that
    /// the object was replaced).
    pub(crate) is_body: bool,
}

impl Write<'_> {
    /// Reports unknown and duplicate fields as the request's `fieldValidation` says: an error,
    /// warnings, or nothing.
    fn report_field_problems(
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

    /// Drops nulls that the schema does not accept, unless in an apply; sets the declared defaults
    /// and the kind's own defaults; then converts to the stored form.
    fn store_form(&self, tree: &mut Value, is_apply: bool) {
        let resource = &self.target.resource;
        if !is_apply {
            resource.strategy.coerce(tree);
        }
        resource.set_defaults(tree);
        resource.to_stored(tree);
    }

    /// Validates an object of the stored form; returns all errors as one Status (VAL-01, VAL-06).
    fn validate(&self, new: &Value, old: Option<&Value>) -> Result<(), Status> {
        let began = Instant::now();
        let valid = self.validated(new, old);
        self.context.timing.spent(Layer::Validation, began);
        valid
    }

    fn validated(&self, new: &Value, old: Option<&Value>) -> Result<(), Status> {
        let resource = &self.target.resource;
        self.check_own_kind(new)?;
        let mut errors = metadata_errors(self.target, new, old);
        let mut tolerated = Vec::new();
        let own = resource.strategy.validate(new, old, &self.target.subresource, &mut tolerated);
        self.context.warnings.extend(tolerated);
        if resource.strategy.declared_rules() {
            // The kind's own error about a field replaces that of the schema's rule.
            let (schema, ty) = (&resource.schema, resource.stored_type());
            let declared = pintle_schema::validate::validate(schema, ty, new, old).into_iter();
            let fields: HashSet<&str> = own.iter().map(|error| &*error.field).collect();
            errors.extend(declared.filter(|error| !fields.contains(&*error.field)));
        }
        errors.extend(own);
        let operation = if old.is_some() { Operation::Update } else { Operation::Create };
        let attributes = self.attributes(operation, object::name(new), Some(new), old);
        self.registry.admission.validate_fields(&attributes, &mut errors);
        if errors.is_empty() {
            return Ok(());
        }
        // The Status names the group of the stored form: an Event is of the core group in every
        // version.
        let api_version = new.str_at(&["apiVersion"]).unwrap_or_default();
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let kind = GroupKind::new(group, resource.kind.clone());
        Err(Status::invalid(&kind, object::name(new), &errors))
    }
}

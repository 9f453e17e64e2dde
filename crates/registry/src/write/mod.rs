//! The write path (law 6): decode, default, own, admit, prepare, validate, encode, commit, answer. Create,
//! update, every patch, subresources and finalizers are this path with other steps filled in; a dry
//! run is this path without the commit.
//!
//! Must not know: which kind it writes; that is in the definition's strategy.

mod act;
mod amend;
mod apply;
mod body;
mod commit;
mod coordinates;
mod create;
mod delete;
mod metadata;
mod mutate;
mod ownership;
mod patch;
mod posting;
mod scale;
mod turns;
mod update;
mod versions;

use std::collections::HashSet;

use pintle_meta::Status;
use pintle_meta::field;
use pintle_value::{Path, Value};

use crate::definition::ScalePaths;
use crate::registry::Registry;
use crate::request::{Context, MayCreate, Target, WriteOptions};

pub(crate) use act::action;
pub(crate) use commit::encode;
pub(crate) use create::begin;
pub(crate) use posting::Tills;
pub(crate) use scale::scale_paths;
pub(crate) use turns::Turns;

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
    pub(crate) may_create: &'a MayCreate<'a>,
}

/// What a client sent, as a tree, with what it should hear about it.
#[derive(Clone)]
pub(crate) struct Draft {
    /// In the version that the client sent, until [`Write::store_form`].
    pub(crate) tree: Value,
    /// Texts for `Warning` headers.
    pub(crate) warnings: Vec<String>,
    /// Its managed fields say already who owns what.
    pub(crate) tracked: bool,
    /// It is a body, all of it: the uid that it names must be that of the object which is there. What a
    /// patch makes of a uid is a change of what must not change (upstream: only the object info of an
    /// update has preconditions, and controllers take a patch's 422 for "it is another object now").
    pub(crate) whole: bool,
}

impl Write<'_> {
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
    fn validate(
        &self,
        new: &Value,
        old: Option<&Value>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let resource = &self.target.resource;
        let path = Path::new("metadata");
        let rule = |name: &str, prefix: bool| resource.strategy.name_rule().check(name, prefix);
        let mut errors =
            pintle_meta::validation::object_meta(new, resource.namespaced(), &rule, &path);
        if let Some(old) = old {
            errors.extend(pintle_meta::validation::object_meta_update(new, old, &path));
        }
        if resource.strategy.qualified_finalizers() {
            errors.extend(unqualified_finalizers(new));
        }
        let own = resource.strategy.validate(new, old, &self.target.subresource, warnings);
        if resource.strategy.declared_rules() {
            // What a kind says of a field counts; the table's rule would only say it again.
            let (schema, ty) = (&resource.schema, resource.stored_type());
            let declared = pintle_schema::validate::validate(schema, ty, new, old).into_iter();
            let said: HashSet<&str> = own.iter().map(|error| &*error.field).collect();
            errors.extend(declared.filter(|error| !said.contains(&*error.field)));
        }
        errors.extend(own);
        if errors.is_empty() {
            return Ok(());
        }
        Err(Status::invalid(&resource.group_kind(), pintle_meta::object::name(new), &errors))
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

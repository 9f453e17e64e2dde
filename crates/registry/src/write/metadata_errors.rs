//! Validation of metadata: the generic rules, and those that the kind repeats.

use pintle_meta::{
    field::{Error, Errors},
    names, object,
    validation::{object_meta, object_meta_but_names, object_meta_update, object_names},
};
use pintle_value::{Path, Value};

use crate::MetadataChecks;
use crate::request::Target;

/// Validates the metadata of a new object, or of an update of `old`. An update is validated by the
/// generic rules first, by which any path segment is a name, and then as the kind says.
pub(super) fn metadata_errors(target: &Target, new: &Value, old: Option<&Value>) -> Errors {
    let (resource, path) = (&target.resource, Path::new("metadata"));
    let MetadataChecks { as_update, as_new, qualified_finalizers } =
        resource.strategy.metadata_checks(&target.subresource);
    let rule =
        |name: &str, prefix: bool| resource.strategy.name_rule().check(new, old, name, prefix);
    let unqualified = || unqualified_finalizers(new).filter(|_| qualified_finalizers);
    let Some(old) = old else {
        let mut errors = object_meta(new, resource.namespaced(), &rule, &path);
        errors.extend(unqualified());
        return errors;
    };
    let of_new = object_meta_but_names(new, resource.namespaced(), &path);
    let of_update = object_meta_update(new, old, &of_new, &path);
    let mut errors = object_names(new, &names::path_segment_rule, &path);
    errors.extend(of_new.iter().chain(&of_update).cloned());
    for _ in 0..as_update {
        errors.extend(of_update.iter().cloned().chain(unqualified()));
    }
    for _ in 0..as_new {
        errors.extend(object_names(new, &rule, &path));
        errors.extend(of_new.iter().cloned().chain(unqualified()));
    }
    errors
}

/// Kubernetes' own finalizers, which have no domain.
const STANDARD_FINALIZERS: &[&str] = &["kubernetes", "orphan", "foregroundDeletion"];

fn unqualified_finalizers(tree: &Value) -> impl Iterator<Item = Error> {
    let path = Path::new("metadata").field("finalizers");
    let named = object::finalizers(tree).enumerate();
    let wrong =
        named.filter(|(_, name)| !name.contains('/') && !STANDARD_FINALIZERS.contains(name));
    wrong.map(move |(i, name)| {
        let why = "name is neither a standard finalizer name nor is it fully qualified";
        Error::invalid(&path.index(i), &name.into(), why)
    })
}

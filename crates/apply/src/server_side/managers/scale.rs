//! Ownership across the scale subresource: the owners of an object's replica count own the count of
//! its Scale, and vice versa (SSA-34, SSA-46).

use pintle_value::{Str, Value};

use super::{FieldSet, Identity, Managers, Owned, write};
use crate::server_side::fieldset::PathElement;
use crate::server_side::stored_managers;

/// Where the replica count is in each version of a kind.
#[derive(Clone, Copy)]
pub struct ScaleOwnership<'a> {
    /// The version of the request.
    pub api_version: &'a str,
    /// The version of the Scale.
    pub scale_version: &'a str,
    /// The served versions of the object's kind, each with the path of its replica count; `None`
    /// for a version without a scale subresource.
    pub replicas: &'a [(String, Option<&'a [Str]>)],
}

impl ScaleOwnership<'_> {
    /// Gives a Scale the owners of its object's replica count.
    pub fn to_scale(&self, object: &Value, scale: &mut Value) {
        let owners = stored_managers(object).into_iter().filter(|(_, owned)| {
            let path = self.path(&owned.api_version).flatten();
            path.is_some_and(|path| owned.fields().has(&elements(path)))
        });
        let owners = owners.map(|(identity, owned)| {
            let fields = FieldSet::from([&["spec", "replicas"][..]]);
            (
                identity.with_version(self.scale_version),
                Owned::new(self.scale_version.into(), fields, owned.unix_micros),
            )
        });
        write(scale, owners.collect());
    }

    /// Gives an object's replica count the owners of the written Scale's count.
    pub fn to_object(&self, scale: &Value, object: &mut Value) {
        let mut of_scale = stored_managers(scale);
        let mut owners = Managers::new();
        for (identity, mut owned) in stored_managers(object) {
            // Entries of versions that are not served any more are dropped.
            let Some(path) = self.path(&owned.api_version) else { continue };
            if let Some(path) = path
                && owned.fields().has(&elements(path))
                && of_scale.remove(&identity.with_version(self.scale_version)).is_none()
            {
                owned.change(|fields| fields.difference(&only(path)));
            }
            if !owned.is_empty() {
                owners.insert(identity, owned);
            }
        }
        let count = only(self.path(self.api_version).flatten().unwrap_or_default());
        for (identity, owned) in of_scale {
            if owned.fields().has(&[PathElement::field("spec"), PathElement::field("replicas")]) {
                // As upstream: an entry that comes from the Scale has no time.
                let identity = identity.with_version(self.api_version);
                owners.insert(identity, Owned::new(self.api_version.into(), count.clone(), None));
            }
        }
        write(object, owners);
    }

    /// The path of the replica count in a version; the outer `None` if the version is not served.
    fn path(&self, api_version: &str) -> Option<Option<&[Str]>> {
        self.replicas.iter().find(|(version, _)| version == api_version).map(|(_, path)| *path)
    }
}

fn elements(path: &[Str]) -> Vec<PathElement> {
    path.iter().map(|name| PathElement::field(name)).collect()
}

/// A set of one field.
fn only(path: &[Str]) -> FieldSet {
    let mut fields = FieldSet::new();
    fields.insert(elements(path));
    fields
}

impl Identity {
    /// The same manager with another version.
    fn with_version(&self, api_version: &str) -> Self {
        Self::new(&self.manager, self.operation, api_version, &self.subresource)
    }
}

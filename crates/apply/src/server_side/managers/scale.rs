//! The scale subresource: who owns the wanted count of an object owns the count of its Scale, and the
//! other way round (SSA-34, SSA-46).

use pintle_value::{Str, Value};

use super::{FieldSet, Identity, Managers, Owned, Versions, write};
use crate::server_side::fieldset::PathElement;
use crate::server_side::stored_managers;

/// The version of every Scale.
const API_VERSION: &str = "autoscaling/v1";

/// Where the owners of an object's wanted count are found.
#[derive(Clone, Copy)]
pub struct ScaleOwnership<'a> {
    /// The versions of the object's kind.
    pub versions: &'a dyn Versions,
    /// The version that the request is in.
    pub api_version: &'a str,
    /// The path of the wanted count in the object.
    pub replicas: &'a [Str],
}

impl ScaleOwnership<'_> {
    /// Gives a Scale the owners that its object's wanted count has.
    pub fn to_scale(&self, object: &Value, scale: &mut Value) {
        let path = self.path();
        let owners = stored_managers(object).into_iter().filter(|(_, owned)| {
            self.versions.type_of(&owned.api_version).is_some() && owned.fields().has(&path)
        });
        let owners = owners.map(|(who, owned)| {
            let fields = FieldSet::from([&["spec", "replicas"][..]]);
            (
                who.with_version(API_VERSION),
                Owned::new(API_VERSION.into(), fields, owned.unix_micros),
            )
        });
        write(scale, owners.collect());
    }

    /// Gives an object's wanted count the owners that the written Scale has.
    pub fn to_object(&self, scale: &Value, object: &mut Value) {
        let path = self.path();
        let mut count = FieldSet::new();
        count.insert(path.iter().cloned());
        let mut of_scale = stored_managers(scale);
        let mut owners = Managers::new();
        for (who, mut owned) in stored_managers(object) {
            // Entries of versions that are not served any more go.
            if self.versions.type_of(&owned.api_version).is_none() {
                continue;
            }
            if owned.fields().has(&path)
                && of_scale.remove(&who.with_version(API_VERSION)).is_none()
            {
                owned.change(|fields| fields.difference(&count));
            }
            if !owned.is_empty() {
                owners.insert(who, owned);
            }
        }
        for (who, owned) in of_scale {
            if owned.fields().has(&[PathElement::field("spec"), PathElement::field("replicas")]) {
                // As upstream has it, an owner by way of the Scale has no time.
                let who = who.with_version(self.api_version);
                owners.insert(who, Owned::new(self.api_version.into(), count.clone(), None));
            }
        }
        write(object, owners);
    }

    fn path(&self) -> Vec<PathElement> {
        self.replicas.iter().map(|name| PathElement::field(name)).collect()
    }
}

impl Identity {
    /// The same manager, writing in another version.
    fn with_version(&self, api_version: &str) -> Self {
        Self::new(&self.manager, self.operation, api_version, &self.subresource)
    }
}

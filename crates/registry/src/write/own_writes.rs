//! The server's own writes, which no client requests: of objects that no client sees, and of objects
//! that are created or removed together with another write.

use std::sync::Arc;

use pintle_meta::{Status, object};
use pintle_store::{Expect, Kind};
use pintle_value::{Str, Value};

use super::commit::{Committed, encode};
use super::create::initialize;
use super::ownership::track_server_update;
use crate::allocation::{Companion, Part};
use crate::request::Now;
use crate::{Object, Registry, Resource};

impl Registry {
    /// Writes an object that no client sees, in the stored form, if it is unchanged since `found`;
    /// returns whether it was written.
    pub async fn write_hidden(
        &self,
        resource: &Resource,
        name: &str,
        tree: Value,
        found: Option<&Object>,
        companions: Vec<Companion>,
    ) -> Result<bool, Status> {
        let (expect, kind) = match found {
            Some(found) => (Expect::At(found.revision), Kind::Updated),
            None => (Expect::Absent, Kind::Created),
        };
        let write = encode(resource, ("", name), &tree, expect, kind)?;
        let committed = self.commit_encoded(write, companions).await?;
        Ok(matches!(committed, Committed::Done(_)))
    }

    /// Returns the creation of an object, which is in its stored form.
    pub fn creation(
        &self,
        resource: &Resource,
        mut tree: Value,
        now: Now,
    ) -> Result<Companion, Status> {
        track_server_update(resource, "", None, &mut tree, now);
        initialize(self, resource, &mut tree, now);
        let (namespace, name): (Str, Str) =
            (object::namespace(&tree).into(), object::name(&tree).into());
        let namespaced_name = (namespace.as_str(), name.as_str());
        let write = encode(resource, namespaced_name, &tree, Expect::Absent, Kind::Created)?;
        Ok(Companion(Part::Write(write)))
    }

    /// Returns the deletion of an object, regardless of finalizers and grace period.
    pub fn removal(&self, resource: &Resource, object: &Arc<Object>) -> Result<Companion, Status> {
        let namespaced_name = (object.namespace(), object.name());
        let expect = Expect::At(object.revision);
        let write = encode(resource, namespaced_name, &object.tree()?, expect, Kind::Deleted)?;
        Ok(Companion(Part::Write(write)))
    }
}

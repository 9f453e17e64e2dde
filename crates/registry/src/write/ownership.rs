//! Who owns what after a write: the seam between the write path and [`pintle_apply::server_side`].
//!
//! Ownership is worked out when a write may no longer be changed by its client, before admission and the kind
//! work on it: what the server sets by itself is nobody's (upstream: the field manager runs in the
//! handlers, before the strategy).

use std::sync::Arc;

use pintle_apply::server_side::{Ownership, Versions};
use pintle_meta::quote::is_print;
use pintle_meta::{Status, object};
use pintle_schema::{Schema, TypeId};
use pintle_value::{Str, Value};

use super::{Draft, Write};
use crate::Resource;

/// The longest name of a manager that is taken from a user agent, in bytes.
const MANAGER_BYTES_MAX: usize = 128;

impl Write<'_> {
    /// Who writes: as the client says, or by its user agent up to the first `/` (SSA-05, SSAI-03).
    pub(super) fn manager(&self) -> Str {
        if !self.options.field_manager.is_empty() {
            return self.options.field_manager.clone();
        }
        let agent = self.context.user_agent.split('/').next().unwrap_or_default();
        let mut manager = Str::default();
        for c in agent.chars().filter(|c| is_print(*c)) {
            if manager.len() + c.len_utf8() > MANAGER_BYTES_MAX {
                break;
            }
            manager.push(c);
        }
        manager
    }

    /// Notes in `new` what the writer changed of `old`, or that it made all of it; both are of the
    /// stored form.
    pub(super) fn track(&self, old: Option<&Value>, new: &mut Value) {
        let resource = &self.target.resource;
        let (manager, now) = (self.manager(), self.context.now.unix_micros);
        self.with_ownership(|ownership| {
            if resource.is_stored_version() {
                ownership.track_update(old, new, &manager, now);
                return;
            }
            let served = |object: &Value| {
                let mut object = object.clone();
                resource.to_served(&mut object);
                object
            };
            let mut changed = served(new);
            ownership.track_update(old.map(served).as_ref(), &mut changed, &manager, now);
            move_managers(&mut changed, new);
        });
    }

    /// Merges a configuration into what is there, or into nothing: a draft that needs no tracking. All
    /// of it is of the version that the client speaks.
    pub(super) fn merge(&self, live: Option<Value>, applied: &Value) -> Result<Draft, Status> {
        let resource = &self.target.resource;
        let (manager, now) = (self.manager(), self.context.now.unix_micros);
        let place = (object::namespace(applied), object::name(applied));
        let force = self.options.force;
        let mut tree = self
            .with_ownership(|o| o.apply(live, applied, &manager, force, now))
            .map_err(|error| error.status())?;
        pintle_schema::conform(&resource.schema, resource.ty, &mut tree).map_err(|error| {
            let (version, (namespace, name)) = (resource.api_version(), place);
            let slash = if version.contains('/') { "" } else { "/" };
            let failed = format!(
                "failed to convert new object ({namespace}/{name}; {slash}{version}, Kind={}) to \
                 proper version: {error}",
                resource.kind
            );
            Status::failure(pintle_meta::Reason::Unknown, failed)
        })?;
        Ok(Draft { tree, warnings: Vec::new(), tracked: true })
    }

    /// Calls `then` with field ownership as it is for the target.
    fn with_ownership<T>(&self, then: impl FnOnce(&Ownership<'_>) -> T) -> T {
        let resource = &self.target.resource;
        let versions = self.versions();
        then(&Ownership {
            versions: &versions,
            api_version: &resource.api_version(),
            kind: &resource.kind,
            subresource: &self.target.subresource,
            filter: resource.filter(&self.target.subresource),
        })
    }

    /// The versions of the target's kind.
    pub(super) fn versions(&self) -> Served<'_> {
        Served { resource: &self.target.resource, all: self.registry.resources().1 }
    }
}

/// Gives `to` the managers of `from`.
pub(super) fn move_managers(from: &mut Value, to: &mut Value) {
    let managers = object::metadata_mut(from).remove("managedFields");
    let metadata = object::metadata_mut(to);
    match managers {
        Some(managers) => metadata.insert("managedFields", managers),
        None => metadata.remove("managedFields"),
    };
}

/// The versions of a kind that are served: the resources that keep their objects in one place.
pub(super) struct Served<'a> {
    resource: &'a Resource,
    all: Arc<[Arc<Resource>]>,
}

impl Served<'_> {
    fn version(&self, api_version: &str) -> Option<&Resource> {
        let is = |resource: &Resource| {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            resource.resource.group == group && resource.resource.version == version
        };
        if is(self.resource) {
            return Some(self.resource);
        }
        let collection = self.resource.storage.as_ref().map(|s| &s.collection)?;
        let mut all = self.all.iter().map(|resource| &**resource);
        all.find(|r| is(r) && r.storage.as_ref().is_some_and(|s| s.collection == *collection))
    }
}

impl Versions for Served<'_> {
    fn type_of(&self, api_version: &str) -> Option<(&Schema, TypeId)> {
        self.version(api_version).map(|resource| (&*resource.schema, resource.ty))
    }

    fn convert(&self, mut object: Value, from: &str, to: &str) -> Result<Value, String> {
        let unknown = |version: &str| format!("no version {version:?} is served");
        let of = self.version(from).ok_or_else(|| unknown(from))?;
        let wanted = self.version(to).ok_or_else(|| unknown(to))?;
        of.to_stored(&mut object);
        wanted.to_served(&mut object);
        wanted.stamp(&mut object);
        Ok(object)
    }
}

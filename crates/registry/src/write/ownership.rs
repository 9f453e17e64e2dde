//! Field ownership in the write path, by [`pintle_apply::server_side`].
//!
//! Ownership is computed from the client's object, before admission and the strategy change it:
//! fields that the server sets have no owner (upstream: the field manager runs in the handlers,
//! before the strategy).

use std::sync::Arc;

use pintle_apply::server_side::Ownership;
use pintle_meta::quote::is_print;
use pintle_meta::{Status, object};
use pintle_value::{Str, Value};

use super::versions::KindVersions;
use super::{Draft, Write};
use crate::Resource;
use crate::request::Now;

/// The field manager of the server's own changes.
const SERVER: &str = "kube-apiserver";

/// The longest manager name that is taken from a user agent, in bytes.
const MANAGER_BYTES_MAX: usize = 128;

impl Write<'_> {
    /// Returns the field manager: the client's `fieldManager`, or the user agent up to the first
    /// `/` (SSA-05, SSAI-03).
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

    /// Records in `new` which fields of `old` the writer changed, or all fields of a new object;
    /// both are in the stored form.
    pub(super) async fn track(&self, old: Option<&Value>, new: &mut Value) {
        let resource = &self.target.resource;
        let (schema, ty) = (&resource.schema, resource.stored_type());
        // Members that are not stored have no owner.
        match pintle_schema::without_empty_distinct(schema, ty, new) {
            Some(mut stored) => {
                self.track_stored(old, &mut stored).await;
                move_managers(&mut stored, new);
            }
            None => self.track_stored(old, new).await,
        }
    }

    async fn track_stored(&self, old: Option<&Value>, new: &mut Value) {
        let resource = &self.target.resource;
        let (manager, now) = (self.manager(), self.context.now.unix_micros);
        let mut versions = self.versions();
        if versions.needs_converter(old) || versions.needs_converter(Some(new)) {
            let tracked = |ownership: &Ownership<'_>| {
                let mut new = new.clone();
                ownership.track_update(old, &mut new, &manager, now);
                new
            };
            *new = self.with_conversions(&mut versions, tracked).await;
            return;
        }
        let api_version = resource.api_version();
        let ownership = self.ownership(&versions, &api_version);
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
    }

    /// Merges an apply configuration into the live object, or makes a new object from it if there
    /// is no live object. The draft has its new `managedFields`. All objects are in the request's
    /// version.
    pub(super) async fn merge(
        &self,
        live: Option<Value>,
        applied: &Value,
    ) -> Result<Draft, Status> {
        let resource = &self.target.resource;
        let (manager, now) = (self.manager(), self.context.now.unix_micros);
        let namespaced_name = (object::namespace(applied), object::name(applied));
        let force = self.options.force;
        let mut versions = self.versions();
        let merged = if versions.needs_converter(live.as_ref()) {
            let merged = |o: &Ownership<'_>| o.apply(live.clone(), applied, &manager, force, now);
            self.with_conversions(&mut versions, merged).await
        } else {
            let api_version = resource.api_version();
            let ownership = self.ownership(&versions, &api_version);
            ownership.apply(live, applied, &manager, force, now)
        };
        let mut tree = merged.map_err(|error| error.status())?;
        pintle_schema::conform(&resource.schema, resource.ty, &mut tree).map_err(|error| {
            let (version, (namespace, name)) = (resource.api_version(), namespaced_name);
            let slash = if version.contains('/') { "" } else { "/" };
            let failed = format!(
                "failed to convert new object ({namespace}/{name}; {slash}{version}, Kind={}) to \
                 proper version: {error}",
                resource.kind
            );
            Status::failure(pintle_meta::Reason::Unknown, failed)
        })?;
        Ok(Draft { tree, tracked: true, is_body: false })
    }

    /// Runs `step` again and again, until all conversions that it needs are done; returns the
    /// result of the last run.
    async fn with_conversions<T>(
        &self,
        versions: &mut KindVersions<'_>,
        step: impl Fn(&Ownership<'_>) -> T,
    ) -> T {
        let api_version = self.target.resource.api_version();
        loop {
            let outcome = step(&self.ownership(versions, &api_version));
            if !versions.convert_pending().await {
                return outcome;
            }
        }
    }

    /// Returns the ownership rules of the target.
    fn ownership<'a>(
        &'a self,
        versions: &'a KindVersions<'_>,
        api_version: &'a str,
    ) -> Ownership<'a> {
        let resource = &self.target.resource;
        Ownership {
            versions,
            api_version,
            kind: &resource.kind,
            subresource: &self.target.subresource,
            filter: resource.filter(&self.target.subresource),
            created: resource.created_fields(&self.target.subresource),
        }
    }

    /// Returns the versions of the target's kind.
    pub(super) fn versions(&self) -> KindVersions<'_> {
        KindVersions::new(&self.target.resource, self.registry.resources().1)
    }
}

/// Tracks a change that the server itself makes to an object of the stored form, outside of a
/// request (upstream: its loopback client).
pub(super) fn track_server_update(
    resource: &Resource,
    subresource: &str,
    old: Option<&Value>,
    new: &mut Value,
    now: Now,
) {
    let versions = KindVersions::new(resource, Arc::default());
    let ownership = Ownership {
        versions: &versions,
        api_version: &resource.api_version(),
        kind: &resource.kind,
        subresource,
        filter: resource.filter(subresource),
        created: resource.created_fields(subresource),
    };
    ownership.track_update(old, new, SERVER, now.unix_micros);
}

/// Moves `managedFields` of `from` to `to`.
pub(super) fn move_managers(from: &mut Value, to: &mut Value) {
    let managers = object::metadata_mut(from).remove("managedFields");
    let metadata = object::metadata_mut(to);
    match managers {
        Some(managers) => metadata.insert("managedFields", managers),
        None => metadata.remove("managedFields"),
    };
}

//! Who owns what after a write: the seam between the write path and [`pintle_apply::server_side`].
//!
//! Ownership is worked out when a write may no longer be changed by its client, before admission and the kind
//! work on it: what the server sets by itself is nobody's (upstream: the field manager runs in the
//! handlers, before the strategy).

use std::sync::Arc;

use pintle_apply::server_side::Ownership;
use pintle_meta::quote::is_print;
use pintle_meta::{Status, object};
use pintle_value::{Str, Value};

use super::versions::KindVersions;
use super::{Draft, Write};
use crate::Resource;
use crate::request::Now;

/// The manager that the server itself is.
const SERVER: &str = "kube-apiserver";

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

    /// Records in `new` which fields of `old` the writer changed, or all fields of a new object; both are in the
    /// stored form.
    pub(super) async fn track(&self, old: Option<&Value>, new: &mut Value) {
        let resource = &self.target.resource;
        let (schema, ty) = (&resource.schema, resource.stored_type());
        // Members that are not stored have no owner.
        match pintle_schema::without_distinct(schema, ty, new) {
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
        if versions.may_ask(old) || versions.may_ask(Some(new)) {
            let tracked = |ownership: &Ownership<'_>| {
                let mut new = new.clone();
                ownership.track_update(old, &mut new, &manager, now);
                new
            };
            *new = self.settled(&mut versions, tracked).await;
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

    /// Merges a configuration into what is there, or into nothing: a draft that needs no tracking. All
    /// of it is of the version that the client speaks.
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
        let merged = if versions.may_ask(live.as_ref()) {
            let merged = |o: &Ownership<'_>| o.apply(live.clone(), applied, &manager, force, now);
            self.settled(&mut versions, merged).await
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
        Ok(Draft { tree, tracked: true, whole: false })
    }

    /// What `step` comes to once all that it wants in other versions is there.
    async fn settled<T>(
        &self,
        versions: &mut KindVersions<'_>,
        step: impl Fn(&Ownership<'_>) -> T,
    ) -> T {
        let api_version = self.target.resource.api_version();
        loop {
            let outcome = step(&self.ownership(versions, &api_version));
            if !versions.ask().await {
                return outcome;
            }
        }
    }

    /// Field ownership as it is for the target.
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
        }
    }

    /// The versions of the target's kind.
    pub(super) fn versions(&self) -> KindVersions<'_> {
        KindVersions::new(&self.target.resource, self.registry.resources().1)
    }
}

/// Notes what the server itself makes of an object of the stored form beside a request (upstream: by its
/// loopback client).
pub(crate) fn track_own(
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
    };
    ownership.track_update(old, new, SERVER, now.unix_micros);
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

//! The versions of a kind as field ownership sees them: their types, and an object of one as an object
//! of another.
//!
//! Ownership is worked out in one go, without waiting; a conversion webhook must be waited for. So a
//! conversion that nobody asked for yet is noted, and fails; then it is asked for, and ownership is
//! worked out once more.
//!
//! Versions that are not served are none: a webhook is not asked for what nobody can read (upstream asks
//! it, <https://issue.k8s.io/111937>, and fails where it does not know them any more).
//!
//! Invariant: ownership is a function of the write and of the conversions so far, so every time it
//! gets further than the time before.

use std::sync::Arc;

use parking_lot::Mutex;
use pintle_apply::server_side::Versions;
use pintle_meta::object;
use pintle_schema::{Schema, TypeId};
use pintle_value::Value;

use crate::Resource;

/// The versions of a resource's kind.
pub(super) struct KindVersions<'a> {
    resource: &'a Resource,
    /// All served versions of the kind: the resources that share its collection.
    all: Arc<[Arc<Resource>]>,
    /// The conversions that were asked for, and their results.
    known: Vec<(Wanted, Result<Value, String>)>,
    /// What is to be asked for.
    wanted: Mutex<Vec<Wanted>>,
}

/// An object that is wanted in another version.
#[derive(PartialEq)]
struct Wanted {
    object: Value,
    api_version: String,
}

impl<'a> KindVersions<'a> {
    pub(super) fn new(resource: &'a Resource, all: Arc<[Arc<Resource>]>) -> Self {
        Self { resource, all, known: Vec::new(), wanted: Mutex::default() }
    }

    /// Whether somebody owns fields of an object in another version than the resource's, which it
    /// takes more than a function to convert to.
    pub(super) fn may_ask(&self, object: Option<&Value>) -> bool {
        if self.resource.converter().is_none() {
            return false;
        }
        let entries = object.and_then(|object| object.at(&["metadata", "managedFields"]));
        let own = self.resource.api_version();
        let entries = entries.and_then(Value::as_array).unwrap_or_default();
        entries.iter().any(|entry| entry.str_at(&["apiVersion"]) != Some(&own))
    }

    /// Asks for what is wanted; says whether that was anything.
    pub(super) async fn ask(&mut self) -> bool {
        let mut wanted = std::mem::take(&mut *self.wanted.lock());
        let Some(api_version) = wanted.first().map(|first| first.api_version.clone()) else {
            return false;
        };
        // What is wanted in a third version is wanted again.
        wanted.retain(|wanted| wanted.api_version == api_version);
        let Some(converter) = self.resource.converter() else { return false };
        let objects = wanted.iter().map(|wanted| wanted.object.clone()).collect();
        let (_, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        match converter.convert(objects, version).await {
            Ok(converted) => {
                self.known.extend(wanted.into_iter().zip(converted.into_iter().map(Ok)));
            }
            Err(status) => {
                let failed = |wanted| (wanted, Err(status.message.clone()));
                self.known.extend(wanted.into_iter().map(failed));
            }
        }
        true
    }

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

    /// What is known of an object in another version; it is asked for if nothing is.
    fn asked(&self, mut object: Value, from: &str, to: &str) -> Result<Value, String> {
        // An object that is not there yet says nothing of itself.
        let members = object.make_object();
        members.insert("kind", self.resource.kind.clone());
        members.insert("apiVersion", from);
        object::metadata_mut(&mut object).remove("managedFields");
        let wanted = Wanted { object, api_version: to.to_owned() };
        if let Some((_, converted)) = self.known.iter().find(|(known, _)| *known == wanted) {
            return converted.clone();
        }
        let mut all = self.wanted.lock();
        if !all.contains(&wanted) {
            all.push(wanted);
        }
        Err(format!("nobody was asked for version {to:?} yet"))
    }
}

impl Versions for KindVersions<'_> {
    fn type_of(&self, api_version: &str) -> Option<(&Schema, TypeId)> {
        self.version(api_version).map(|resource| (&*resource.schema, resource.ty))
    }

    fn schema_may_have_changed(&self) -> bool {
        self.resource.storage.as_ref().is_some_and(|storage| storage.definer.is_some())
    }

    fn convert(&self, mut object: Value, from: &str, to: &str) -> Result<Value, String> {
        if self.resource.converter().is_some() {
            return self.asked(object, from, to);
        }
        let unknown = |version: &str| format!("no version {version:?} is served");
        let of = self.version(from).ok_or_else(|| unknown(from))?;
        let wanted = self.version(to).ok_or_else(|| unknown(to))?;
        of.to_stored(&mut object);
        wanted.to_served(&mut object);
        wanted.stamp(&mut object);
        Ok(object)
    }
}

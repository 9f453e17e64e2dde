//! The versions of a kind for field ownership: their types, and conversion between them.
//!
//! Ownership is computed without waiting, but a conversion webhook has to be awaited. So a
//! conversion whose result is missing is recorded as pending and fails. The caller then awaits the
//! pending conversions and computes ownership again.
//!
//! Versions that are not served count as unknown: no webhook is called for a version that no client
//! can read (upstream calls the webhook, <https://issue.k8s.io/111937>, and fails if the webhook no
//! longer knows the version).
//!
//! Invariant: ownership is a function of the write and of the known conversions. Each run makes
//! more of the needed conversions known, so the runs come to an end.

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
    /// All served resources. Those that share the resource's collection are versions of its kind.
    all: Arc<[Arc<Resource>]>,
    /// The results of conversions so far.
    known: Vec<(Conversion, Result<Value, String>)>,
    /// The conversions that are needed next.
    pending: Mutex<Vec<Conversion>>,
}

/// A conversion of an object to another version.
#[derive(PartialEq)]
struct Conversion {
    object: Value,
    api_version: String,
}

impl<'a> KindVersions<'a> {
    pub(super) fn new(resource: &'a Resource, all: Arc<[Arc<Resource>]>) -> Self {
        Self { resource, all, known: Vec::new(), pending: Mutex::default() }
    }

    /// Whether managers own fields of an object in another version, and a converter is needed to
    /// convert it.
    pub(super) fn needs_converter(&self, object: Option<&Value>) -> bool {
        if self.resource.converter().is_none() {
            return false;
        }
        let entries = object.and_then(|object| object.at(&["metadata", "managedFields"]));
        let own = self.resource.api_version();
        let entries = entries.and_then(Value::as_array).unwrap_or_default();
        entries.iter().any(|entry| entry.str_at(&["apiVersion"]) != Some(&own))
    }

    /// Runs the pending conversions; returns false if there are none.
    pub(super) async fn convert_pending(&mut self) -> bool {
        let mut wanted = std::mem::take(&mut *self.pending.lock());
        let Some(api_version) = wanted.first().map(|first| first.api_version.clone()) else {
            return false;
        };
        // Conversions to a third version become pending again in the next run.
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

    /// Returns the known result of a conversion, or records the conversion as pending.
    fn converted(&self, mut object: Value, from: &str, to: &str) -> Result<Value, String> {
        // An object that does not exist yet has neither kind nor version.
        let members = object.make_object();
        members.insert("kind", self.resource.kind.clone());
        members.insert("apiVersion", from);
        object::metadata_mut(&mut object).remove("managedFields");
        let wanted = Conversion { object, api_version: to.to_owned() };
        if let Some((_, converted)) = self.known.iter().find(|(known, _)| *known == wanted) {
            return converted.clone();
        }
        let mut all = self.pending.lock();
        if !all.contains(&wanted) {
            all.push(wanted);
        }
        Err(format!("the conversion to version {to:?} is pending"))
    }
}

impl Versions for KindVersions<'_> {
    fn type_of(&self, api_version: &str) -> Option<(&Schema, TypeId)> {
        self.version(api_version).map(|resource| (&*resource.schema, resource.ty))
    }

    fn schema_may_have_changed(&self) -> bool {
        self.resource.is_custom()
    }

    fn convert(&self, mut object: Value, from: &str, to: &str) -> Result<Value, String> {
        if self.resource.converter().is_some() {
            return self.converted(object, from, to);
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

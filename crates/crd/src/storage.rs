//! Conversion of custom resources between versions. Objects are stored in the storage version of
//! their definition. Either only the `apiVersion` differs between versions, or a webhook converts
//! them. A stored object is pruned and defaulted by the current schema when it is read.

use std::sync::Arc;

use pintle_meta::{GroupVersion, Reason, Status};
use pintle_registry::StorageConverter;
use pintle_schema::{Schema, decode};
use pintle_value::{Str, Value};

use crate::schemas::Schemas;
use crate::structural::table;
use crate::webhook::Webhook;

/// How objects are converted between versions.
pub(crate) enum Conversion {
    /// Only the `apiVersion` changes.
    None,
    /// A webhook that the definition names converts them.
    Webhook(Webhook),
}

/// Converts objects of one version to the storage version and back.
pub(crate) struct VersionConverter {
    pub(crate) version: Str,
    pub(crate) storage_version: Str,
    pub(crate) group: Str,
    pub(crate) schemas: Arc<Schemas>,
    pub(crate) tables: Arc<Vec<(Str, Arc<Schema>)>>,
    pub(crate) conversion: Arc<Conversion>,
}

impl VersionConverter {
    fn api_version(&self, version: &str) -> Str {
        GroupVersion::new(self.group.clone(), version).to_string().into()
    }

    async fn between(&self, objects: Vec<Value>, version: &str) -> Result<Vec<Value>, Status> {
        let wanted = self.api_version(version);
        match &*self.conversion {
            Conversion::None => Ok(objects
                .into_iter()
                .map(|mut object| {
                    object.make_object().insert("apiVersion", wanted.clone());
                    object
                })
                .collect()),
            Conversion::Webhook(webhook) => webhook.convert(objects, &wanted).await,
        }
    }

    /// Drops the fields that the schema of a version does not specify.
    fn prune(&self, object: &mut Value, version: &str) {
        let Some((_, schema)) = self.tables.iter().find(|(name, _)| name == version) else {
            return;
        };
        // Metadata that does not conform stays unchanged: it was written under other rules.
        let _ = decode::conform(schema, table::root(), object);
    }

    /// Drops, from a stored object, also the nulls that the schema of a version does not allow.
    fn prune_stored(&self, object: &mut Value, version: &str) {
        self.prune(object, version);
        self.schemas.of(version).drop_nulls(object);
    }

    /// Prunes and defaults a stored object by the current schema of its own version.
    fn refresh(&self, object: &mut Value) -> Result<(), Status> {
        let given = object.str_at(&["apiVersion"]).unwrap_or_default();
        let version = Str::from(given.rsplit('/').next().unwrap_or_default());
        if !self.schemas.has(&version) {
            let why = format!("request to convert CR from an invalid group/version: {given}");
            return Err(Status::failure(Reason::Unknown, why));
        }
        self.prune_stored(object, &version);
        self.schemas.of(&version).set_defaults(object);
        Ok(())
    }
}

impl StorageConverter for VersionConverter {
    fn writes_own_form(&self) -> bool {
        self.version == self.storage_version
    }

    fn converts(&self) -> bool {
        matches!(&*self.conversion, Conversion::Webhook(_))
    }

    fn to_storage(&self, objects: Vec<Value>) -> pintle_registry::Converting<'_> {
        Box::pin(async move {
            if self.writes_own_form() {
                return Ok(objects);
            }
            let mut stored = self.between(objects, &self.storage_version).await?;
            stored.iter_mut().for_each(|object| self.prune_stored(object, &self.storage_version));
            Ok(stored)
        })
    }

    fn to_own_form(&self, mut objects: Vec<Value>) -> pintle_registry::Converting<'_> {
        Box::pin(async move {
            for object in &mut objects {
                self.refresh(object)?;
            }
            let own = self.api_version(&self.version);
            let is_own = |object: &Value| object.str_at(&["apiVersion"]) == Some(&own);
            if objects.iter().all(is_own) {
                return Ok(objects);
            }
            let mut read = self.between(objects, &self.version).await?;
            read.iter_mut().for_each(|object| self.prune_stored(object, &self.version));
            Ok(read)
        })
    }

    fn convert<'a>(
        &'a self,
        objects: Vec<Value>,
        version: &'a str,
    ) -> pintle_registry::Converting<'a> {
        Box::pin(async move {
            let mut converted = self.between(objects, version).await?;
            converted.iter_mut().for_each(|object| self.prune(object, version));
            Ok(converted)
        })
    }
}

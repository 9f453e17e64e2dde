//! How custom resources are kept: in the storage version of their definition, converted to the others
//! by nothing but another `apiVersion` or by a webhook, and read by the schemas of today.

use std::sync::Arc;

use pintle_meta::{GroupVersion, Reason, Status};
use pintle_registry::Keeping;
use pintle_schema::{Schema, decode};
use pintle_value::{Str, Value};

use crate::resource::Schemas;
use crate::structural::table;
use crate::webhook::Webhook;

/// How versions become one another.
pub(crate) enum Conversion {
    /// Only the `apiVersion` changes.
    None,
    /// A program that the definition names does it.
    Webhook(Webhook),
}

/// How the objects of one version are kept.
pub(crate) struct Kept {
    pub(crate) version: Str,
    pub(crate) storage_version: Str,
    pub(crate) group: Str,
    pub(crate) schemas: Arc<Schemas>,
    pub(crate) tables: Arc<Vec<(Str, Arc<Schema>)>>,
    pub(crate) conversion: Arc<Conversion>,
}

impl Kept {
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

    /// Drops what the schema of a version does not know.
    fn prune(&self, object: &mut Value, version: &str) {
        let Some((_, schema)) = self.tables.iter().find(|(name, _)| name == version) else {
            return;
        };
        // What cannot be read as metadata stays as it is: it was written under other rules.
        let _ = decode::conform(schema, table::root(), object);
        self.schemas.of(version).drop_nulls(object);
    }

    /// A kept object as its own version's schema has it today.
    fn refresh(&self, object: &mut Value) -> Result<(), Status> {
        let said = object.str_at(&["apiVersion"]).unwrap_or_default();
        let version = Str::from(said.rsplit('/').next().unwrap_or_default());
        if !self.schemas.has(&version) {
            let why = format!("request to convert CR from an invalid group/version: {said}");
            return Err(Status::failure(Reason::Unknown, why));
        }
        self.prune(object, &version);
        self.schemas.of(&version).set_defaults(object);
        Ok(())
    }
}

impl Keeping for Kept {
    fn is_kept_form(&self) -> bool {
        self.version == self.storage_version
    }

    fn converts(&self) -> bool {
        matches!(&*self.conversion, Conversion::Webhook(_))
    }

    fn keep(&self, objects: Vec<Value>) -> pintle_registry::Kept<'_> {
        Box::pin(async move {
            if self.is_kept_form() {
                return Ok(objects);
            }
            let mut kept = self.between(objects, &self.storage_version).await?;
            kept.iter_mut().for_each(|object| self.prune(object, &self.storage_version));
            Ok(kept)
        })
    }

    fn read(&self, mut objects: Vec<Value>) -> pintle_registry::Kept<'_> {
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
            read.iter_mut().for_each(|object| self.prune(object, &self.version));
            Ok(read)
        })
    }

    fn convert<'a>(&'a self, objects: Vec<Value>, version: &'a str) -> pintle_registry::Kept<'a> {
        Box::pin(async move {
            let mut converted = self.between(objects, version).await?;
            converted.iter_mut().for_each(|object| self.prune(object, version));
            Ok(converted)
        })
    }
}

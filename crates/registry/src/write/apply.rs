//! Server-side apply: merges a configuration into an object, or creates it.

use pintle_apply::server_side::Configuration;
use pintle_meta::{Status, object};
use pintle_value::Value;

use super::Write;
use super::contention::ATTEMPTS_MAX;
use super::update::Attempt;
use crate::request::Encoding;
use crate::results::Outcome;
use crate::work;

impl Write<'_> {
    /// Handles PATCH with an apply configuration (SSA-01).
    pub(super) async fn apply(&self, patch: &[u8], encoding: Encoding) -> Result<Outcome, Status> {
        work::ahead(self.target.resource.work(patch.len())).await;
        let configuration = match encoding {
            Encoding::Cbor => Configuration::read_cbor(patch),
            Encoding::Json | Encoding::Yaml | Encoding::Protobuf => Configuration::read(patch),
        };
        let configuration = configuration.map_err(|e| e.status())?;
        if let Some(paths) = super::scale_paths(self.target) {
            return self.apply_scale(&configuration, paths).await;
        }
        let mut queued = None;
        for _ in 0..ATTEMPTS_MAX {
            match self.try_apply(&configuration).await? {
                Attempt::Done(outcome) => return Ok(outcome),
                Attempt::Conflict | Attempt::CompanionConflict => {
                    queued = self.registry.queue_retry(self.target, queued).await?
                }
            }
        }
        Err(self.stale())
    }

    async fn try_apply(&self, configuration: &Configuration) -> Result<Attempt, Status> {
        let existing = self.existing();
        let creates =
            self.target.subresource.is_empty() || self.target.resource.strategy.create_on_update();
        if existing.is_none() && !creates {
            return Err(self.not_found());
        }
        let old = match &existing {
            None => Value::Null,
            Some(existing) => self.load(existing).await?,
        };
        let live = existing.as_ref().map(|_| self.target.resource.served(&old).into_owned());
        let is_new = live.is_none();
        let mut draft = self.merge(live, &configuration.value).await?;
        self.check_duplicates(configuration)?;
        self.target.resource.stamp(&mut draft.tree);
        if is_new {
            self.check_no_uid(&draft.tree)?;
        }
        self.set_namespace(&mut draft.tree)?;
        self.check_name(&draft.tree)?;
        match &existing {
            // A resource version in the configuration is a precondition, so a conflict is final.
            // Without one, the caller merges again after a conflict.
            Some(existing) => match self.replace(existing, old, draft).await? {
                Attempt::Conflict if says_version(&configuration.value) => Err(self.stale()),
                attempt => Ok(attempt),
            },
            None => {
                self.may_create.ask().await?;
                match self.create_draft(draft).await {
                    Err(status) if self.existing().is_some() && is_taken(&status) => {
                        Ok(Attempt::Conflict)
                    }
                    outcome => outcome.map(Attempt::Done),
                }
            }
        }
    }

    /// Reports duplicate keys of a configuration. The merge has refused all other field problems,
    /// such as unknown fields, whatever `fieldValidation` says (FV-04).
    pub(super) fn check_duplicates(&self, configuration: &Configuration) -> Result<(), Status> {
        self.report_field_problems(configuration.duplicates.iter().cloned(), || {
            let error = configuration.strict_error().unwrap_or_default();
            Status::bad_request(format!("error strict decoding YAML: {error}"))
        })
    }

    /// Refuses a configuration with a uid if the object does not exist.
    fn check_no_uid(&self, tree: &Value) -> Result<(), Status> {
        let uid = object::uid(tree);
        if uid.is_empty() {
            return Ok(());
        }
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        let resource = self.target.resource.group_resource();
        Err(Status::conflict(&resource, &self.target.name, &why))
    }
}

fn says_version(configuration: &Value) -> bool {
    !object::resource_version(configuration).is_empty()
}

fn is_taken(status: &Status) -> bool {
    status.reason == Some(pintle_meta::Reason::AlreadyExists)
}

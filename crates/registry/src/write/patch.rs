//! PATCH: changes the current state, and is retried after a conflict.
//!
//! [`super::apply`] has server-side apply.

use pintle_apply::PatchType as Algorithm;
use pintle_meta::quote::plain;
use pintle_meta::{GroupKind, Status, field, object};
use pintle_value::{Path, Value, json};

use super::contention::ATTEMPTS_MAX;
use super::update::Attempt;
use super::{Draft, Write};
use crate::request::PatchType;
use crate::results::Outcome;
use crate::work;
use pintle_schema::{Schema, TypeId, decode};

impl Write<'_> {
    /// Handles PATCH of an object or of a subresource.
    pub(crate) async fn patch(&self, patch: &[u8], kind: PatchType) -> Result<Outcome, Status> {
        let algorithm = match kind {
            PatchType::Json => Algorithm::Json,
            PatchType::Merge => Algorithm::Merge,
            PatchType::StrategicMerge => Algorithm::StrategicMerge,
            PatchType::Apply(encoding) => return self.apply(patch, encoding).await,
        };
        if let Some(paths) = super::scale_paths(self.target) {
            return self.patch_scale(patch, algorithm, paths).await;
        }
        let resource = &self.target.resource;
        let mut queued = None;
        for _ in 0..ATTEMPTS_MAX {
            let existing = self.existing().ok_or_else(|| self.not_found())?;
            work::ahead(resource.work(patch.len())).await;
            let old = self.load(&existing).await?;
            let current = resource.served(&old);
            let schema = (&*resource.schema, resource.ty);
            let mut draft = self.patched(&current, patch, algorithm, schema)?;
            // Upstream does not decode the result of a strategic merge patch again, so it ignores
            // the kind in it.
            if algorithm != Algorithm::StrategicMerge {
                let shown = || shown(algorithm, schema, &current, patch);
                self.check_patched(&draft.tree, shown)?;
            }
            resource.stamp(&mut draft.tree);
            self.set_namespace(&mut draft.tree)?;
            self.check_name(&draft.tree)?;
            let conditional =
                object::resource_version(&draft.tree) != object::resource_version(&current);
            drop(current);
            match self.replace(&existing, old, draft).await? {
                Attempt::Done(outcome) => return Ok(outcome),
                Attempt::Conflict if conditional => return Err(self.stale()),
                Attempt::Conflict | Attempt::CompanionConflict => {
                    queued = self.registry.queue_retry(self.target, queued).await?
                }
            }
        }
        Err(self.stale())
    }

    /// Returns the result of a patch, conformed to the schema as a decoded body is.
    pub(super) fn patched(
        &self,
        current: &Value,
        patch: &[u8],
        algorithm: Algorithm,
        (schema, ty): (&Schema, TypeId),
    ) -> Result<Draft, Status> {
        let apply = || pintle_apply::apply(algorithm, schema, ty, current, patch);
        let pintle_apply::Patched { value: mut tree, mut problems } =
            apply().map_err(|e| e.status())?;
        let refused = |why: &str| {
            let shown = shown(algorithm, (schema, ty), current, patch);
            refused(shown.unwrap_or_default(), why)
        };
        let of_fields = decode::conform(schema, ty, &mut tree).map_err(|error| {
            // Upstream converts the result of a strategic merge patch, and decodes that of others.
            let converted = match algorithm {
                Algorithm::StrategicMerge => decode::conversion_error(schema, ty, &tree),
                Algorithm::Json | Algorithm::Merge => None,
            };
            refused(&converted.unwrap_or_else(|| error.to_string()))
        })?;
        problems.extend(of_fields.iter().map(ToString::to_string));
        let strict = || refused(&format!("strict decoding error: {}", problems.join(", ")));
        self.report_field_problems(problems.iter().cloned(), strict)?;
        Ok(Draft { tree, tracked: false, is_body: false })
    }
}

/// Returns what the error of a refused patch shows: the patch's result, or a strategic merge patch
/// itself as Go prints it.
fn shown(
    algorithm: Algorithm,
    (schema, ty): (&Schema, TypeId),
    current: &Value,
    patch: &[u8],
) -> Option<String> {
    match algorithm {
        Algorithm::Json | Algorithm::Merge => {
            let mut json = Vec::new();
            pintle_schema::encode::write(schema, ty, current, &mut json);
            pintle_apply::shown(algorithm, &json, patch)
        }
        Algorithm::StrategicMerge => json::parse(patch).ok().map(|patch| plain(&patch)),
    }
}

/// Returns the Status of a patch whose result is not an object of the kind (STRAT-09). It names no
/// object.
pub(super) fn refused(shown: String, why: &str) -> Status {
    let error = field::Error::invalid(&Path::new("patch"), &Value::from(shown), why);
    Status::invalid(&GroupKind::default(), "", &[error])
}

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
                self.check_patched(&draft.tree)?;
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
        let result = || Some(shown(schema, ty, &apply().ok()?.value));
        let refused = |why: &str| refused(algorithm, patch, result, why);
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

/// Returns a patch's result as upstream prints it: the object's members sorted, nested members in
/// the order of their declaration.
fn shown(schema: &Schema, ty: TypeId, made: &Value) -> String {
    let Some(members) = made.as_object() else { return json::to_string(made) };
    let members = members.iter().map(|(key, value)| {
        let mut alone = Vec::new();
        let object = Value::from([(key.as_str(), value.clone())]);
        pintle_schema::encode::write(schema, ty, &object, &mut alone);
        let text = String::from_utf8_lossy(&alone).into_owned();
        text.trim_start_matches('{').strip_suffix('}').unwrap_or_default().to_owned()
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// Returns the Status of a patch whose result is not an object of the kind (STRAT-09). It shows the
/// result, or the strategic merge patch itself as Go prints it, and names no object.
fn refused(
    algorithm: Algorithm,
    patch: &[u8],
    result: impl Fn() -> Option<String>,
    why: &str,
) -> Status {
    let shown = match algorithm {
        Algorithm::Json | Algorithm::Merge => result(),
        Algorithm::StrategicMerge => json::parse(patch).ok().map(|patch| plain(&patch)),
    };
    let shown = Value::from(shown.unwrap_or_default());
    let error = field::Error::invalid(&Path::new("patch"), &shown, why);
    Status::invalid(&GroupKind::default(), "", &[error])
}

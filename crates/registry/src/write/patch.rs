//! PATCH: a change of what is there now, tried again while others write in between.
//!
//! Applying a configuration is in [`super::apply`].

use pintle_apply::PatchType as Algorithm;
use pintle_meta::{Status, field, object};
use pintle_value::{Path, Value};

use super::update::{ATTEMPTS_MAX, Attempt};
use super::{Draft, Write};
use crate::answer::Outcome;
use crate::request::{FieldValidation, PatchType};
use pintle_schema::{Schema, TypeId};

impl Write<'_> {
    /// PATCH of an object or of one of its parts.
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
        for _ in 0..ATTEMPTS_MAX {
            let existing = self.existing().ok_or_else(|| self.not_found())?;
            let mut current = resource.current(&existing).await?;
            resource.to_served(&mut current);
            let place = (&*resource.schema, resource.ty, resource.kind.as_str());
            let mut draft = self.patched(&current, patch, algorithm, place)?;
            resource.stamp(&mut draft.tree);
            self.place(&mut draft.tree)?;
            self.check_name(&draft.tree)?;
            let conditional =
                object::resource_version(&draft.tree) != object::resource_version(&current);
            match self.replace(&existing, draft).await? {
                Attempt::Done(outcome) => return Ok(outcome),
                Attempt::Raced if conditional => return Err(self.stale()),
                Attempt::Raced => {}
            }
        }
        Err(self.stale())
    }

    /// What a tree becomes under a patch, in the form that a decoded body has.
    pub(super) fn patched(
        &self,
        current: &Value,
        patch: &[u8],
        algorithm: Algorithm,
        (schema, ty, kind): (&Schema, TypeId, &str),
    ) -> Result<Draft, Status> {
        let pintle_apply::Patched { value: mut tree, mut problems } =
            pintle_apply::apply(algorithm, schema, ty, current, patch).map_err(|e| e.status())?;
        let of_fields = pintle_schema::decode::conform(schema, ty, &mut tree)
            .map_err(|e| self.refused(kind, patch, &e.to_string()))?;
        problems.extend(of_fields.iter().map(ToString::to_string));
        let warnings = match self.options.field_validation {
            FieldValidation::Ignore => Vec::new(),
            FieldValidation::Strict if !problems.is_empty() => {
                let why = format!("strict decoding error: {}", problems.join(", "));
                return Err(self.refused(kind, patch, &why));
            }
            FieldValidation::Warn | FieldValidation::Strict => problems,
        };
        Ok(Draft { tree, warnings, tracked: false })
    }

    /// The Status of a patch whose result is not an object of the kind (STRAT-09).
    fn refused(&self, kind: &str, patch: &[u8], why: &str) -> Status {
        let shown = Value::from(String::from_utf8_lossy(patch).into_owned());
        let error = field::Error::invalid(&Path::new("patch"), &shown, why);
        let group = &self.target.resource.resource.group;
        Status::invalid(
            &pintle_meta::GroupKind::new(group.clone(), kind),
            &self.target.name,
            &[error],
        )
    }
}

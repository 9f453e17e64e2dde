//! The scale subresource: an `autoscaling/v1` Scale is a view of a few members of an object.

use pintle_apply::PatchType as Algorithm;
use pintle_meta::{GroupKind, Status, field, labels, object};
use pintle_schema::TypeId;
use pintle_value::{Map, Path, Str, Value};

use super::update::Attempt;
use super::{Draft, Write};
use crate::answer::{Answer, Outcome};
use crate::definition::{ScalePaths, SubresourceBehaviour};
use crate::request::{Body, Target};

const TYPE_NAME: &str = "io.k8s.api.autoscaling.v1.Scale";
const API_VERSION: &str = "autoscaling/v1";
const ATTEMPTS_MAX: usize = 100;

/// The paths, where the target is a scale subresource.
pub(crate) fn scale_paths(target: &Target) -> Option<&ScalePaths> {
    match &target.resource.subresource(&target.subresource)?.behaviour {
        SubresourceBehaviour::Scale(paths) => Some(paths),
        _ => None,
    }
}

impl ScalePaths {
    /// The Scale of an object of the stored form.
    fn scale(&self, tree: &Value) -> Value {
        let mut metadata = Map::new();
        for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
            if let Some(value) = tree.at(&["metadata", field]) {
                metadata.insert(field, value.clone());
            }
        }
        let count = |path: &[Str]| Value::Int(tree.at(path).and_then(Value::as_int).unwrap_or(0));
        let mut status = Map::new();
        status.insert("replicas", count(&self.status_replicas));
        let selector = selector_text(self.selector.as_ref().and_then(|path| tree.at(path)));
        if !selector.is_empty() {
            status.insert("selector", selector);
        }
        let mut spec = Map::new();
        // A count of 0 is left out, as upstream's encoding does.
        if let Value::Int(n @ 1..) = count(&self.spec_replicas) {
            spec.insert("replicas", n);
        }
        Value::from([
            ("kind", Value::from("Scale")),
            ("apiVersion", Value::from(API_VERSION)),
            ("metadata", Value::from(metadata)),
            ("spec", Value::from(spec)),
            ("status", Value::from(status)),
        ])
    }

    /// The Scale of an object as an answer.
    pub(crate) fn answer(&self, tree: &Value) -> Answer {
        Answer::Value(self.scale(tree), TYPE_NAME.to_owned())
    }
}

/// A selector as text: kinds keep text, a map, or a LabelSelector.
fn selector_text(selector: Option<&Value>) -> String {
    let Some(selector) = selector else { return String::new() };
    let is_label_selector =
        selector.get("matchLabels").is_some() || selector.get("matchExpressions").is_some();
    match selector {
        Value::String(text) => text.to_string(),
        Value::Object(_) if is_label_selector => {
            labels::Selector::from_label_selector(Some(selector))
                .map(|s| s.to_string())
                .unwrap_or_default()
        }
        Value::Object(map) => labels::Selector::from_map(Some(map)).to_string(),
        _ => String::new(),
    }
}

impl Write<'_> {
    /// PUT of a Scale.
    pub(super) async fn update_scale(
        &self,
        body: &Body,
        paths: &ScalePaths,
    ) -> Result<Outcome, Status> {
        let schema = &self.target.resource.schema;
        let draft = self.decode_as(body, schema, self.scale_type()?, ("Scale", API_VERSION))?;
        for _ in 0..ATTEMPTS_MAX {
            let scale = Draft { tree: draft.tree.clone(), warnings: draft.warnings.clone() };
            match self.rescale(scale, paths).await? {
                Attempt::Done(outcome) => return Ok(outcome),
                Attempt::Raced if object::resource_version(&draft.tree).is_empty() => {}
                Attempt::Raced => return Err(self.stale()),
            }
        }
        Err(self.stale())
    }

    /// PATCH of a Scale.
    pub(super) async fn patch_scale(
        &self,
        patch: &[u8],
        algorithm: Algorithm,
        paths: &ScalePaths,
    ) -> Result<Outcome, Status> {
        let schema = &*self.target.resource.schema;
        let place = (schema, self.scale_type()?, "Scale");
        for _ in 0..ATTEMPTS_MAX {
            let existing = self.existing().ok_or_else(|| self.not_found())?;
            let current = paths.scale(&self.target.resource.current(&existing).await?);
            let draft = self.patched(&current, patch, algorithm, place)?;
            let conditional =
                object::resource_version(&draft.tree) != object::resource_version(&current);
            match self.rescale(draft, paths).await? {
                Attempt::Done(outcome) => return Ok(outcome),
                Attempt::Raced if conditional => return Err(self.stale()),
                Attempt::Raced => {}
            }
        }
        Err(self.stale())
    }

    /// Writes the wanted count of a Scale into its object, through the object's own write path.
    async fn rescale(&self, scale: Draft, paths: &ScalePaths) -> Result<Attempt, Status> {
        self.check_name(&scale.tree)?;
        let wanted = scale.tree.at(&["spec", "replicas"]).and_then(Value::as_int).unwrap_or(0);
        if wanted < 0 {
            let path = Path::new("spec").field("replicas");
            let why = "must be greater than or equal to 0";
            let error = field::Error::invalid(&path, &Value::Int(wanted), why);
            let kind = GroupKind::new("autoscaling", "Scale");
            return Err(Status::invalid(&kind, &self.target.name, &[error]));
        }
        let existing = self.existing().ok_or_else(|| self.not_found())?;
        let target = Target { subresource: "".into(), ..self.target.clone() };
        let whole = Write { target: &target, ..*self };
        let mut tree = target.resource.current(&existing).await?;
        target.resource.to_served(&mut tree);
        for field in ["resourceVersion", "uid"] {
            let said = object::text(&scale.tree, field).to_owned();
            if field == "resourceVersion" || !said.is_empty() {
                // Without a version, the one that was just read: the count is set whatever came
                // before it.
                let said = if said.is_empty() { existing.revision.to_string() } else { said };
                object::set_text(&mut tree, field, said);
            }
        }
        if let Some((last, parents)) = paths.spec_replicas.split_last() {
            let parent = parents.iter().fold(tree.make_object(), |map, key| map.entry_object(key));
            parent.insert(last.clone(), wanted);
        }
        let draft = Draft { tree, warnings: scale.warnings };
        let outcome = match whole.replace(&existing, draft).await? {
            Attempt::Done(outcome) => outcome,
            Attempt::Raced => return Ok(Attempt::Raced),
        };
        let answer = match &outcome.answer {
            Answer::Object(object) => paths.answer(&target.resource.current(object).await?),
            Answer::Value(tree, _) => paths.answer(tree),
            Answer::Status(_) => outcome.answer,
        };
        Ok(Attempt::Done(Outcome { answer, ..outcome }))
    }

    fn scale_type(&self) -> Result<TypeId, Status> {
        let found = self.target.resource.schema.find(TYPE_NAME);
        found.ok_or_else(|| Status::internal("the schema has no Scale"))
    }
}

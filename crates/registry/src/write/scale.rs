//! The scale subresource: a Scale is a view of a few members of an object.

use std::sync::Arc;

use pintle_apply::PatchType as Algorithm;
use pintle_apply::server_side::{
    Configuration, Filter, Ownership, ScaleOwnership, UniformVersions,
};
use pintle_meta::quote::quote;
use pintle_meta::{GroupKind, Status, field, labels, object};
use pintle_schema::TypeId;
use pintle_value::{Map, Path, Str, Value};

use super::contention::ATTEMPTS_MAX;
use super::update::Attempt;
use super::{Draft, Write};
use crate::definition::{ScalePaths, Subresource, SubresourceBehaviour};
use crate::request::{Body, Target};
use crate::results::{Outcome, ResponseBody};
use crate::{Object, Resource, work};

/// The subresource's name.
pub(super) const SCALE: &str = "scale";

/// Returns the paths of the Scale, if the target is a scale subresource.
pub(crate) fn scale_paths(target: &Target) -> Option<&ScalePaths> {
    target.resource.subresource(&target.subresource)?.scale()
}

impl Subresource {
    fn scale(&self) -> Option<&ScalePaths> {
        match &self.behaviour {
            SubresourceBehaviour::Scale(paths) => Some(paths),
            _ => None,
        }
    }
}

impl Resource {
    /// Returns the paths of the resource's Scale, if it has one.
    fn scale(&self) -> Option<&ScalePaths> {
        self.subresource(SCALE)?.scale()
    }
}

impl ScalePaths {
    /// Makes the Scale of an object of the stored form.
    pub(super) fn scale(&self, tree: &Value) -> Value {
        let mut metadata = Map::new();
        for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
            if let Some(value) = tree.at(&["metadata", field]) {
                metadata.insert(field, value.clone());
            }
        }
        let count = |path: &[Str]| Value::Int(tree.at(path).and_then(Value::as_int).unwrap_or(0));
        let mut status = Map::new();
        status.insert("replicas", count(&self.status_replicas));
        let selector = self.selector.as_ref().and_then(|path| tree.at(path));
        let text = selector_text(selector);
        if !text.is_empty() {
            if self.version.has_map {
                status.insert("targetSelector", text);
                selected_labels(selector).map(|labels| status.insert("selector", labels));
            } else {
                status.insert("selector", text);
            }
        }
        let mut spec = Map::new();
        // As in upstream's encoding, a count of 0 is omitted.
        if let Value::Int(n @ 1..) = count(&self.spec_replicas) {
            spec.insert("replicas", n);
        }
        Value::from([
            ("kind", Value::from("Scale")),
            ("apiVersion", Value::from(self.version.api_version.as_str())),
            ("metadata", Value::from(metadata)),
            ("spec", Value::from(spec)),
            ("status", Value::from(status)),
        ])
    }

    /// Refuses to read the Scale of an object without a replica count, as upstream does: an
    /// autoscaler takes a count of 0 for a request to leave the object alone.
    pub(crate) fn check_count(&self, tree: &Value) -> Result<(), Status> {
        if tree.at(&self.spec_replicas).is_some() {
            return Ok(());
        }
        let path: String = self.spec_replicas.iter().map(|step| format!(".{step}")).collect();
        let path = quote(&path);
        Err(Status::internal(format!("the spec replicas field {path} does not exist")))
    }

    /// Returns the replica count that a Scale requests.
    pub(super) fn replicas(&self, scale: &Value) -> i64 {
        scale.at(&["spec", "replicas"]).and_then(Value::as_int).unwrap_or(0)
    }

    /// Sets the replica count of an object.
    pub(super) fn set(&self, tree: &mut Value, wanted: i64) {
        if let Some((last, parents)) = self.spec_replicas.split_last() {
            let parent = parents.iter().fold(tree.make_object(), |map, key| map.entry_object(key));
            parent.insert(last.clone(), wanted);
        }
    }

    /// Returns the Scale of an object as the body of a response.
    pub(crate) fn response_body(&self, tree: &Value) -> ResponseBody {
        ResponseBody::Value(self.scale(tree), self.version.type_name.to_string())
    }
}

/// Returns a selector as text; kinds store text, a map, or a LabelSelector.
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

/// Returns the labels of a LabelSelector that has only labels (upstream: `ParseToLabelSelector`).
fn selected_labels(selector: Option<&Value>) -> Option<Map> {
    let selector = selector?.as_object()?;
    let is_empty = |list: &Value| list.as_array().is_none_or(<[Value]>::is_empty);
    if !selector.get("matchExpressions").is_none_or(is_empty) {
        return None;
    }
    let labels = selector.get("matchLabels")?.as_object()?;
    Some(labels.clone())
}

impl Write<'_> {
    /// Handles PUT of a Scale.
    pub(super) async fn update_scale(
        &self,
        body: &Body,
        paths: &ScalePaths,
    ) -> Result<Outcome, Status> {
        let schema = &self.target.resource.schema;
        let ty = self.scale_type(paths)?;
        let sent = self.decode_as(body, schema, ty, ("Scale", &paths.version.api_version))?;
        self.audit_object_as(&sent.tree, schema, ty);
        let conditional = !object::resource_version(&sent.tree).is_empty();
        self.change_scale(paths, |_, _| Ok((sent.clone(), conditional))).await
    }

    /// Handles PATCH of a Scale.
    pub(super) async fn patch_scale(
        &self,
        patch: &[u8],
        algorithm: Algorithm,
        paths: &ScalePaths,
    ) -> Result<Outcome, Status> {
        let schema = &*self.target.resource.schema;
        let schema = (schema, self.scale_type(paths)?);
        let patched = |current: &Value, _: &Ownership<'_>| {
            let draft = self.patched(current, patch, algorithm, schema)?;
            let version = object::resource_version;
            let conditional = version(&draft.tree) != version(current);
            Ok((draft, conditional))
        };
        self.change_scale(paths, patched).await
    }

    /// Handles server-side apply of a Scale.
    pub(super) async fn apply_scale(
        &self,
        configuration: &Configuration,
        paths: &ScalePaths,
    ) -> Result<Outcome, Status> {
        let (schema, ty) = (&*self.target.resource.schema, self.scale_type(paths)?);
        let conditional = !object::resource_version(&configuration.value).is_empty();
        let applied = |current: &Value, ownership: &Ownership<'_>| {
            let (manager, force) = (self.manager(), self.options.force);
            let (applied, now) = (&configuration.value, self.context.now.unix_micros);
            let current = Some(current.clone());
            let merged = ownership.apply(current, applied, &manager, force, now);
            let mut tree = merged.map_err(|error| error.status())?;
            // A merged value can still violate the type.
            pintle_schema::conform(schema, ty, &mut tree)
                .map_err(|e| Status::failure(pintle_meta::Reason::Unknown, e.to_string()))?;
            self.check_duplicates(configuration)?;
            Ok((Draft { tree, tracked: true, is_body: false }, conditional))
        };
        self.change_scale(paths, applied).await
    }

    /// Changes the Scale of the current object; retries after a conflict unless the change has a
    /// resource version as precondition.
    async fn change_scale(
        &self,
        paths: &ScalePaths,
        change: impl Fn(&Value, &Ownership<'_>) -> Result<(Draft, bool), Status>,
    ) -> Result<Outcome, Status> {
        let (schema, ty) = (&*self.target.resource.schema, self.scale_type(paths)?);
        let api_version = self.target.resource.api_version();
        let mut queued = None;
        let versions = self.registry.versions_of(&self.target.resource);
        for _ in 0..ATTEMPTS_MAX {
            let existing = self.existing().ok_or_else(|| self.not_found())?;
            work::ahead(existing.size()).await;
            let stored = self.target.resource.current(&existing).await?;
            let mut tree = stored.clone();
            self.target.resource.to_served(&mut tree);
            let replicas: Vec<_> = versions
                .iter()
                .map(|one| (one.api_version(), one.scale().map(|paths| &*paths.spec_replicas)))
                .collect();
            let owners = ScaleOwnership {
                api_version: &api_version,
                scale_version: &paths.version.api_version,
                replicas: &replicas,
            };
            let mut current = paths.scale(&stored);
            owners.to_scale(&tree, &mut current);
            let ownership = Ownership {
                versions: &UniformVersions(schema, ty),
                api_version: &paths.version.api_version,
                kind: "Scale",
                subresource: &self.target.subresource,
                filter: &Filter::ALL,
                created: None,
            };
            let (mut scale, conditional) = change(&current, &ownership)?;
            if !scale.tracked {
                let (manager, now) = (self.manager(), self.context.now.unix_micros);
                ownership.track_update(Some(&current), &mut scale.tree, &manager, now);
            }
            owners.to_object(&scale.tree, &mut tree);
            match self.write_scale(&existing, tree, scale, paths).await? {
                Attempt::Done(outcome) => return Ok(outcome),
                Attempt::Conflict if conditional => return Err(self.stale()),
                Attempt::Conflict | Attempt::CompanionConflict => {
                    queued = self.registry.queue_retry(self.target, queued).await?
                }
            }
        }
        Err(self.stale())
    }

    /// Writes the replica count of a Scale to its object, through the object's own write path.
    /// Ownership is tracked already.
    async fn write_scale(
        &self,
        existing: &Arc<Object>,
        mut tree: Value,
        scale: Draft,
        paths: &ScalePaths,
    ) -> Result<Attempt, Status> {
        self.check_name(&scale.tree)?;
        let wanted = paths.replicas(&scale.tree);
        // For a custom resource, validation reports the member of the object instead.
        if wanted < 0 && !self.target.resource.typed_items {
            let path = Path::new("spec").field("replicas");
            let why = "must be greater than or equal to 0";
            let error = field::Error::invalid(&path, &Value::Int(wanted), why);
            let kind = GroupKind::new("autoscaling", "Scale");
            return Err(Status::invalid(&kind, &self.target.name, &[error]));
        }
        let target = Target { subresource: "".into(), ..self.target.clone() };
        let whole = Write { target: &target, scale: Some(paths), ..*self };
        for field in ["resourceVersion", "uid"] {
            let text = object::text(&scale.tree, field).to_owned();
            if field == "resourceVersion" || !text.is_empty() {
                // Without a precondition, the version that was just read is used.
                let text = if text.is_empty() { existing.revision.to_string() } else { text };
                object::set_text(&mut tree, field, text);
            }
        }
        paths.set(&mut tree, wanted);
        let draft = Draft { tree, tracked: true, is_body: scale.is_body };
        let old = whole.load(existing).await?;
        let outcome = match whole.replace(existing, old, draft).await? {
            Attempt::Done(outcome) => outcome,
            conflict => return Ok(conflict),
        };
        let body = match &outcome.body {
            ResponseBody::Object(object) => {
                paths.response_body(&target.resource.current(object).await?)
            }
            ResponseBody::Value(tree, _) => paths.response_body(tree),
            ResponseBody::Status(_) => outcome.body,
        };
        Ok(Attempt::Done(Outcome { body, ..outcome }))
    }

    fn scale_type(&self, paths: &ScalePaths) -> Result<TypeId, Status> {
        let found = self.target.resource.schema.find(&paths.version.type_name);
        found.ok_or_else(|| Status::internal("the schema has no Scale"))
    }
}

//! The kinds of the comparison. Each has a row with a minimal and a complete object.

use anyhow::{Context as _, Result, anyhow};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::script::Row;
use crate::variables::fill;

/// A row of `kinds.yaml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    /// `apps/v1 Deployment`
    pub(super) kind: String,
    pub(super) plural: String,
    /// Whether the kind is cluster-scoped.
    #[serde(default)]
    cluster: bool,
    /// Additional abilities: `scale`; `settle`, if the server itself writes to the objects.
    #[serde(default)]
    pub(super) able: Vec<String>,
    small: Value,
    rich: Value,
    /// A merge patch that changes the complete object.
    change: Value,
    /// The expectation for an object that the server has completed.
    #[serde(default = "anything")]
    pub(super) settled: Value,
    /// The expectation for the object after its change.
    #[serde(default = "anything")]
    changed: Value,
    /// The expectation for a deleted object with a finalizer.
    #[serde(default = "anything")]
    held: Value,
}

/// The expectation of a row without one: any object.
fn anything() -> Value {
    json!({})
}

/// A kind in a run, with its variables replaced.
pub(super) struct Kind {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// The path of its collection, in the run's namespace.
    pub(super) collection: String,
    /// The path of the collection in all namespaces.
    everywhere: String,
    pub(super) name: String,
    /// The run's suffix, in names and addresses.
    pub(super) unique: String,
    pub(super) net: String,
    pub(super) small: Value,
    pub(super) rich: Value,
    pub(super) change: Value,
    /// The expectations for objects: created, changed, and being deleted.
    settled: [(&'static str, Value); 3],
}

impl Kind {
    pub(super) fn new(row: &Written, variables: &Row) -> Result<Self> {
        let (api_version, kind) =
            row.kind.split_once(' ').context("a kind is a version and a name")?;
        let text = |name: &str| variables.get(name).and_then(Value::as_str).unwrap_or_default();
        let base = match api_version.contains('/') {
            true => format!("/apis/{api_version}"),
            false => format!("/api/{api_version}"),
        };
        let everywhere = format!("{base}/{}", row.plural);
        let collection = match row.cluster {
            true => everywhere.clone(),
            false => format!("{base}/namespaces/{}/{}", text("ns"), row.plural),
        };
        let object = |members: &Value, name: &str| -> Result<Value> {
            let mut object = json!({"apiVersion": api_version, "kind": kind});
            let members = fill(members, variables)?;
            object
                .as_object_mut()
                .zip(members.as_object())
                .map(|(object, members)| object.extend(members.clone()))
                .ok_or_else(|| anyhow!("{kind}: an object has members"))?;
            if object["metadata"]["name"].is_null() {
                object["metadata"]["name"] = json!(format!("{name}-{}", text("unique")));
            }
            object["metadata"]["labels"]["run"] = json!(text("unique"));
            Ok(object)
        };
        let rich = object(&row.rich, "rich")?;
        Ok(Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            collection,
            everywhere,
            name: rich["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            unique: text("unique").to_owned(),
            net: text("net").to_owned(),
            small: object(&row.small, "small")?,
            rich,
            change: fill(&row.change, variables)?,
            settled: [
                ("settled", row.settled.clone()),
                ("changed", row.changed.clone()),
                ("held", row.held.clone()),
            ],
        })
    }

    /// The path of its collection in another version.
    pub(super) fn collection_in(&self, api_version: &str) -> String {
        let base = |version: &str| match version.contains('/') {
            true => format!("/apis/{version}/"),
            false => format!("/api/{version}/"),
        };
        self.collection.replacen(&base(&self.api_version), &base(api_version), 1)
    }

    /// The variables for scripts that run for each kind.
    pub(super) fn variables(&self) -> Row {
        let variables = [
            ("apiVersion", json!(self.api_version)),
            ("kind", json!(self.kind)),
            ("collection", json!(self.collection)),
            ("everywhere", json!(self.everywhere)),
            ("name", json!(self.name)),
            ("small", self.small.clone()),
            ("rich", self.rich.clone()),
            ("change", self.change.clone()),
        ];
        let variables = variables.into_iter().chain(self.settled.iter().cloned());
        variables.map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

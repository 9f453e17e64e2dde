//! The kinds of a server's OpenAPI documents, their types, and every field that can be made large.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value};

/// How deep fields are searched. A type is not searched within itself.
const DEPTH_MAX: usize = 16;

/// The types of one document, by name.
pub(crate) struct Schemas(Map<String, Value>);

/// A kind that can be posted.
pub(crate) struct Kind {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    /// The path to post to, with the namespace and the parent's name.
    pub(crate) collection: String,
    /// Whether its objects are stored, so that they can be updated.
    pub(crate) is_stored: bool,
    /// Whether it has a status subresource.
    pub(crate) has_status: bool,
    pub(crate) schema: Value,
}

/// A step from a value to a part of it.
#[derive(Clone)]
pub(crate) enum Step {
    Field(String),
    /// The first item of a list.
    Item,
    /// An entry of a map.
    Entry,
}

/// The ways in which a field can be made large.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    List,
    Map,
    Text,
    /// An object with several lists, for work that grows with the product of their lengths.
    Lists,
}

/// A part of a kind that can be made large.
pub(crate) struct LargeField {
    pub(crate) path: Vec<Step>,
    pub(crate) form: Form,
    pub(crate) schema: Value,
}

impl LargeField {
    /// Formats the path: `spec.containers[].env`.
    pub(crate) fn name(&self) -> String {
        let mut name = String::new();
        for step in &self.path {
            match step {
                Step::Field(field) if name.is_empty() => name.push_str(field),
                Step::Field(field) => name.push_str(&format!(".{field}")),
                Step::Item => name.push_str("[]"),
                Step::Entry => name.push_str("{}"),
            }
        }
        name
    }
}

impl Schemas {
    pub(crate) fn new(document: &mut Value) -> Self {
        let schemas = document["components"]["schemas"].take();
        Self(if let Value::Object(schemas) = schemas { schemas } else { Map::new() })
    }

    /// The schema that a reference resolves to, and the name of its type.
    pub(crate) fn resolved<'s>(&'s self, schema: &'s Value) -> (&'s Value, Option<&'s str>) {
        let reference = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
        let name = reference.and_then(|reference| reference.rsplit('/').next());
        let found = name.and_then(|name| Some((self.0.get(name)?, Some(name))));
        found.unwrap_or((schema, None))
    }

    /// The schema of a kind, such as `apps/v1` and `Deployment`.
    pub(crate) fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Value> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let is_it =
            |gvk: &Value| gvk["group"] == group && gvk["version"] == version && gvk["kind"] == kind;
        self.0.values().find(|schema| {
            let all = schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten();
            all.into_iter().any(is_it) && schema["properties"]["metadata"].is_object()
        })
    }

    /// The fields of a kind that can be made large, without those in `seen`; adds the others to it.
    pub(crate) fn large_fields(
        &self,
        kind: &Kind,
        mut seen: Option<&mut BTreeSet<String>>,
    ) -> Vec<LargeField> {
        let mut large_fields = Vec::new();
        self.walk(&kind.schema, &mut Vec::new(), &mut Vec::new(), &mut seen, &mut large_fields);
        large_fields
    }

    fn walk<'s>(
        &'s self,
        schema: &'s Value,
        path: &mut Vec<Step>,
        above: &mut Vec<&'s str>,
        seen: &mut Option<&mut BTreeSet<String>>,
        large_fields: &mut Vec<LargeField>,
    ) {
        let (schema, name) = self.resolved(schema);
        if path.len() > DEPTH_MAX || name.is_some_and(|name| above.contains(&name)) {
            return;
        }
        let depth = above.len();
        above.extend(name);
        let mut found = |form, path: &[Step]| {
            large_fields.push(LargeField { path: path.to_vec(), form, schema: schema.clone() });
        };
        match type_of(schema) {
            "array" => found(Form::List, path),
            "string" => found(Form::Text, path),
            "object" if !schema["properties"].is_object() => found(Form::Map, path),
            "object" if self.has_lists(schema) && is_new(seen, name, "lists") => {
                found(Form::Lists, path);
            }
            _ => {}
        }
        for (step, part) in parts(schema) {
            if let (Step::Field(field), Some(name)) = (&step, name)
                && !is_new(seen, Some(name), field)
            {
                continue;
            }
            if path.is_empty()
                && matches!(&step, Step::Field(f) if f == "kind" || f == "apiVersion")
            {
                continue;
            }
            path.push(step);
            self.walk(part, path, above, seen, large_fields);
            path.pop();
        }
        above.truncate(depth);
    }

    fn has_lists(&self, schema: &Value) -> bool {
        let lists = parts(schema).into_iter().filter(|(_, part)| {
            let (part, _) = self.resolved(part);
            type_of(part) == "array"
        });
        lists.count() > 1
    }
}

/// Whether this type and field were not seen before.
fn is_new(seen: &mut Option<&mut BTreeSet<String>>, name: Option<&str>, field: &str) -> bool {
    match (seen, name) {
        (Some(seen), Some(name)) => seen.insert(format!("{name} {field}")),
        _ => true,
    }
}

/// The type: `array`, `string` and so on. A schema without a type counts as a text if it has
/// alternatives, and otherwise as an object.
pub(crate) fn type_of(schema: &Value) -> &str {
    schema["type"].as_str().unwrap_or(if schema["oneOf"].is_array() { "string" } else { "object" })
}

/// The parts of a schema's values.
pub(crate) fn parts(schema: &Value) -> Vec<(Step, &Value)> {
    let fields = schema["properties"].as_object().into_iter().flatten();
    let mut parts: Vec<_> = fields.map(|(name, part)| (Step::Field(name.clone()), part)).collect();
    for (step, part) in [(Step::Item, "items"), (Step::Entry, "additionalProperties")] {
        if schema[part].is_object() {
            parts.push((step, &schema[part]));
        }
    }
    parts
}

/// The kinds that a document's paths can post, in this namespace; stored ones come first.
pub(crate) fn kinds(document: &Value, namespace: &str) -> Result<Vec<Kind>> {
    let paths = document["paths"].as_object().context("a document has paths")?;
    let mut kinds = Vec::new();
    for (path, item) in paths {
        let operation = &item["post"];
        let gvk = &operation["x-kubernetes-group-version-kind"];
        let schema = &operation["requestBody"]["content"]["*/*"]["schema"];
        if !gvk.is_object() || !schema.is_object() || path.contains("{path}") {
            continue;
        }
        let text = |member: &str| gvk[member].as_str().unwrap_or_default().to_owned();
        let (group, version) = (text("group"), text("version"));
        kinds.push(Kind {
            api_version: if group.is_empty() { version } else { format!("{group}/{version}") },
            kind: text("kind"),
            collection: path.replace("{namespace}", namespace).replace("{name}", "default"),
            is_stored: item["get"].is_object(),
            has_status: paths.contains_key(&format!("{path}/{{name}}/status")),
            schema: schema.clone(),
        });
    }
    kinds.sort_by_key(|kind| !kind.is_stored);
    Ok(kinds)
}

//! Adapts definitions of v1beta1 to the rules of v1, which requires structural schemas: types
//! everywhere, and only value validations under `allOf`, `anyOf`, `oneOf` and `not`. A part without
//! a structural equivalent stays as it is, and validation reports it.

use pintle_value::{Map, Value};

use crate::approval::{Approval, approval_state, is_protected};
use crate::definition::Crd;

/// The maximum depth to which schemas are adapted.
const DEPTH_MAX: usize = 100;

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// Adapts a definition that was converted to v1. If it preserves unknown fields, each schema of an
/// object without `additionalProperties`, and each schema whose type cannot be derived, gets
/// `x-kubernetes-preserve-unknown-fields`.
pub fn adapt_to_v1(definition: &mut Value) {
    approve(definition);
    let spec = definition.object_entry("spec");
    let keeps = spec.remove("preserveUnknownFields") == Some(Value::Bool(true));
    let versions = spec.get_mut("versions").and_then(Value::as_array_mut);
    for version in versions.into_iter().flatten() {
        let schema = version.object_entry("schema").entry_object("openAPIV3Schema");
        schema.entry_or("type", || Value::from("object"));
        let metadata = schema.get_mut("properties").and_then(Value::as_object_mut);
        let metadata = metadata.and_then(|properties| properties.remove("metadata"));
        Adapter { keeps }.structure(schema, 0);
        if let Some(metadata) = metadata {
            schema.entry_object("properties").insert("metadata", names_only(metadata));
        }
    }
}

/// Marks a definition of a protected group as unapproved, because v1beta1 needed no approval.
fn approve(definition: &mut Value) {
    let is_missing = matches!(approval_state(definition).0, Approval::Missing);
    if is_missing && is_protected(Crd(definition).group()) {
        let annotations = definition.object_entry("metadata").entry_object("annotations");
        let words = "unapproved, converted from apiextensions.k8s.io/v1beta1";
        annotations.insert("api-approved.kubernetes.io", words);
    }
}

/// The schema of metadata with the restrictions of names only, because v1 allows no others.
fn names_only(metadata: Value) -> Value {
    let mut names = Map::new();
    if let Value::Object(mut metadata) = metadata
        && let Some(Value::Object(properties)) = metadata.remove("properties")
    {
        let is_name = |name: &str| matches!(name, "name" | "generateName");
        names = properties.into_iter().filter(|(name, _)| is_name(name)).collect();
    }
    let mut schema = Map::new();
    schema.insert("type", "object");
    if !names.is_empty() {
        schema.insert("properties", names);
    }
    Value::Object(schema)
}

struct Adapter {
    /// Whether undeclared fields are kept.
    keeps: bool,
}

impl Adapter {
    /// Adapts a schema and all schemas in it.
    fn structure(&self, schema: &mut Map, depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        self.give_type(schema);
        match text(schema, "type") {
            "object" if self.keeps && !is_set(schema, "additionalProperties") => {
                schema.insert(PRESERVE, true);
            }
            "array" if self.keeps && !is_set(schema, "items") => {
                schema.insert("items", anything());
            }
            _ => {}
        }
        for key in ["allOf", "anyOf", "oneOf", "not"] {
            let Some(mut nested) = schema.remove(key) else { continue };
            match &mut nested {
                Value::Array(list) => {
                    list.iter_mut().for_each(|below| self.nested(below, schema, depth));
                }
                below => self.nested(below, schema, depth),
            }
            schema.insert(key, nested);
        }
        for key in ["items", "additionalProperties"] {
            if let Some(Value::Object(below)) = schema.get_mut(key) {
                self.structure(below, depth + 1);
            }
        }
        let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
        let properties = properties.into_iter().flat_map(Map::iter_mut);
        for below in properties.filter_map(|(_, below)| below.as_object_mut()) {
            self.structure(below, depth + 1);
        }
    }

    fn give_type(&self, schema: &mut Map) {
        if !text(schema, "type").is_empty() || is_set(schema, INT_OR_STRING) {
            return;
        }
        if is_int_or_string(schema) {
            schema.remove("anyOf");
            schema.remove("type");
            schema.insert(INT_OR_STRING, true);
        } else if is_set(schema, "properties") || is_set(schema, "additionalProperties") {
            schema.insert("type", "object");
        } else if is_set(schema, "items") {
            schema.insert("type", "array");
        } else if self.keeps {
            schema.insert(PRESERVE, true);
        }
    }

    /// Adapts a schema under `allOf`, `anyOf`, `oneOf` or `not` of a structure: removes its
    /// description, its title, and a type that the structure has, too; and, if undeclared fields
    /// are kept, declares the schema's properties in the structure.
    fn nested(&self, nested: &mut Value, structure: &mut Map, depth: usize) {
        let Some(nested) = nested.as_object_mut().filter(|_| depth <= DEPTH_MAX) else { return };
        if text(nested, "type") == text(structure, "type") {
            nested.remove("type");
        }
        nested.remove("description");
        nested.remove("title");
        for key in ["allOf", "anyOf", "oneOf", "not"] {
            match nested.get_mut(key) {
                Some(Value::Array(list)) => {
                    list.iter_mut().for_each(|below| self.nested(below, structure, depth + 1));
                }
                Some(below) => self.nested(below, structure, depth + 1),
                None => {}
            }
        }
        if let (Some(below), Some(Value::Object(items))) =
            (nested.get_mut("items"), structure.get_mut("items"))
        {
            self.nested(below, items, depth + 1);
        }
        let properties = nested.get_mut("properties").and_then(Value::as_object_mut);
        for (name, below) in properties.into_iter().flat_map(Map::iter_mut) {
            if self.keeps && !is_set(structure, "additionalProperties") {
                structure.entry_object("properties").entry_or(name, anything);
            }
            let declared = structure.get_mut("properties").and_then(|all| all.as_object_mut());
            if let Some(Value::Object(own)) = declared.and_then(|all| all.get_mut(name)) {
                self.give_type(own);
                self.nested(below, own, depth + 1);
            }
        }
    }
}

/// A schema that allows everything.
fn anything() -> Value {
    Value::from([(PRESERVE, Value::Bool(true))])
}

fn text<'s>(schema: &'s Map, key: &str) -> &'s str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn is_set(schema: &Map, key: &str) -> bool {
    schema.get(key).is_some_and(|value| !value.is_null())
}

/// Whether `anyOf` says that the value is an integer or a text, and nothing else.
fn is_int_or_string(schema: &Map) -> bool {
    let list = schema.get("anyOf").and_then(Value::as_array).unwrap_or_default();
    let only = |ty: &str| {
        list.iter()
            .filter_map(Value::as_object)
            .any(|one| one.len() == 1 && text(one, "type") == ty)
    };
    list.len() == 2 && only("integer") && only("string")
}

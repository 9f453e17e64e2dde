//! What OpenAPI says of custom resources: a version's schema as its author wrote it, with what every
//! object has (upstream: `pkg/controller/openapi/builder`).
//!
//! Must not know: documents, or which of them a definition goes into.

use pintle_schema::openapi::{Described, Descriptions, Dialect};
use pintle_value::{Map, Value};

use crate::definition::{Crd, Version};
use crate::resource::{Source, type_name};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// A built-in type whose members have the words that all objects' members have.
const LIKE_ALL: &str = "io.k8s.api.core.v1.Pod";

/// A version, described. It is written of the definition as it is when a document is asked for.
pub(crate) fn described(crd: Crd<'_>, version: Version<'_>, source: Source) -> Described {
    let names = crd.accepted_names();
    let [kind, list_kind, plural] =
        [names.kind(), names.list_kind(), names.plural()].map(str::to_owned);
    let (group, name) = (crd.group().to_owned(), version.name().to_owned());
    let [own_type, list_type] = [&kind, &list_kind].map(|kind| type_name(&group, &name, kind));
    let revision = ["uid", "generation"].map(|member| crd.0.at(&["metadata", member]).cloned());
    let definitions = {
        let (own_type, list_type) = (own_type.clone(), list_type.clone());
        move |dialect: Dialect, descriptions: &dyn Descriptions| {
            let crd = source();
            let Some(version) = Crd(&crd).version(&name) else { return Vec::new() };
            let kind_of = |kind: &str| gvk(&group, &name, kind);
            let writer = Writer { dialect, descriptions };
            let mut object = writer.object(version);
            let mut list = writer.list(&own_type, [&kind, &list_kind, &plural]);
            for (schema, kind) in [(&mut object, &kind), (&mut list, &list_kind)] {
                schema.insert("x-kubernetes-group-version-kind", kind_of(kind));
                if let Some(fields) = selectable(version) {
                    schema.insert("x-kubernetes-selectable-fields", fields);
                }
            }
            vec![(own_type.clone(), object.into()), (list_type.clone(), list.into())]
        }
    };
    Described {
        version: format!("{revision:?}"),
        type_name: own_type,
        list_type,
        definitions: std::sync::Arc::new(definitions),
    }
}

fn gvk(group: &str, version: &str, kind: &str) -> Vec<Value> {
    vec![Value::from([("group", group), ("version", version), ("kind", kind)])]
}

/// The fields by which lists of a version can be selected.
fn selectable(version: Version<'_>) -> Option<Vec<Value>> {
    let fields = version.list("selectableFields").iter().filter_map(|f| f.str_at(&["jsonPath"]));
    let fields = fields.map(|path| path.strip_prefix('.').unwrap_or(path));
    let fields: Vec<_> = fields.map(|path| Value::from([("fieldPath", path)])).collect();
    (!fields.is_empty()).then_some(fields)
}

/// Writes schemas in one dialect.
struct Writer<'a> {
    dialect: Dialect,
    descriptions: &'a dyn Descriptions,
}

impl Writer<'_> {
    /// The schema of a version's objects.
    fn object(&self, version: Version<'_>) -> Map {
        let bare = || Map::from_iter([("type".into(), "object".into())]);
        let Some(schema) = version.schema().and_then(Value::as_object) else { return bare() };
        // Clients of the old dialect would take what members it names for all there may be.
        if self.dialect == Dialect::V2 && flag(schema, "x-kubernetes-preserve-unknown-fields") {
            return bare();
        }
        let mut object = self.schema(schema, true);
        let properties = object.entry_object("properties");
        properties.insert("metadata", self.metadata("ObjectMeta", LIKE_ALL));
        self.type_members(properties);
        object
    }

    /// The schema of lists of it.
    fn list(&self, item: &str, [kind, list_kind, plural]: [&str; 3]) -> Map {
        let about =
            "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
        let items = Value::from([
            ("description", Value::from(format!("List of {plural}. More info: {about}"))),
            ("items", self.reference(item)),
            ("type", "array".into()),
        ]);
        let mut properties = Map::new();
        properties.insert("items", items);
        properties.insert("metadata", self.metadata("ListMeta", "io.k8s.api.core.v1.PodList"));
        self.type_members(&mut properties);
        Map::from_iter([
            ("description".into(), format!("{list_kind} is a list of {kind}").into()),
            ("properties".into(), properties.into()),
            ("required".into(), vec![Value::from("items")].into()),
            ("type".into(), "object".into()),
        ])
    }

    fn reference(&self, type_name: &str) -> Value {
        let place = match self.dialect {
            Dialect::V2 => "#/definitions/",
            Dialect::V3 => "#/components/schemas/",
        };
        Value::from([("$ref", format!("{place}{type_name}"))])
    }

    /// The schema of the member `metadata`, in the words of a type that has one.
    fn metadata(&self, type_name: &str, like: &str) -> Value {
        let reference = self.reference(&format!("{META}.{type_name}"));
        let mut schema = match self.dialect {
            Dialect::V2 => reference,
            // Beside a reference, OpenAPI 3.0 ignores everything.
            Dialect::V3 => Value::from([("allOf", vec![reference])]),
        };
        self.describe(&mut schema, like, "metadata");
        schema
    }

    fn type_members(&self, properties: &mut Map) {
        for member in ["apiVersion", "kind"] {
            let mut schema = Value::from([("type", "string")]);
            self.describe(&mut schema, LIKE_ALL, member);
            properties.insert(member, schema);
        }
    }

    fn describe(&self, schema: &mut Value, type_name: &str, member: &str) {
        if let Some(words) = self.descriptions.of_field(type_name, member) {
            schema.make_object().insert("description", words);
        }
    }

    /// A schema as the dialect has it.
    fn schema(&self, said: &Map, root: bool) -> Map {
        let mut schema: Map = said.clone();
        schema.retain(|key, value| says_something(key, value));
        unfold(&mut schema);
        if self.dialect == Dialect::V2 {
            reduce(&mut schema);
        }
        for key in ["properties", "items", "additionalProperties"] {
            let Some(Value::Object(below)) = schema.get_mut(key) else { continue };
            if key != "properties" {
                *below = self.schema(below, false);
                continue;
            }
            for (_, property) in below.iter_mut() {
                if let Value::Object(property_schema) = property {
                    *property = self.schema(property_schema, false).into();
                }
            }
        }
        if !root && flag(&schema, "x-kubernetes-embedded-resource") {
            self.embed(&mut schema);
        }
        schema
    }

    /// Gives an embedded resource what every object has.
    fn embed(&self, schema: &mut Map) {
        // As in [`Self::object`].
        if self.dialect == Dialect::V2 && flag(schema, "x-kubernetes-preserve-unknown-fields") {
            return;
        }
        let properties = schema.entry_object("properties");
        properties.insert("metadata", self.metadata("ObjectMeta", LIKE_ALL));
        self.type_members(properties);
        let required = schema.entry_or("required", || Vec::<Value>::new().into());
        if let Some(required) = required.as_array_mut() {
            for member in ["kind", "apiVersion"].map(Value::from) {
                if !required.contains(&member) {
                    required.push(member);
                }
            }
        }
    }
}

fn flag(schema: &Map, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool).unwrap_or(false)
}

/// Whether a member of a schema says anything: Go leaves out what does not.
fn says_something(key: &str, value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => {
            *truth || matches!(key, "default" | "example" | "additionalProperties")
        }
        Value::Array(items) => !items.is_empty() || matches!(key, "default" | "example"),
        Value::Object(members) if key == "properties" => !members.is_empty(),
        _ => true,
    }
}

/// Says in plain words what an integer or text is (upstream: `Structural.Unfold`).
fn unfold(schema: &mut Map) {
    if !flag(schema, "x-kubernetes-int-or-string") {
        return;
    }
    let either =
        || -> Value { ["integer", "string"].map(|ty| Value::from([("type", ty)])).to_vec().into() };
    let is_said = |schema: &Map| schema.get("anyOf") == Some(&either());
    let first = schema.get("allOf").and_then(|all| all.as_array()?.first()?.as_object());
    if is_said(schema) || first.is_some_and(is_said) {
        return;
    }
    if schema.get("anyOf").is_none() {
        schema.insert("anyOf", either());
        return;
    }
    let all = schema.entry_or("allOf", || Vec::<Value>::new().into());
    if let Some(all) = all.as_array_mut() {
        all.insert(0, Value::from([("anyOf", either())]));
    }
}

/// Takes out what the old dialect, or its clients, do not understand (upstream:
/// `ToStructuralOpenAPIV2`, and the pruning of defaults).
fn reduce(schema: &mut Map) {
    for key in ["allOf", "anyOf", "oneOf", "not", "default"] {
        schema.remove(key);
    }
    let untyped = |schema: &mut Map| _ = schema.remove("type");
    let unknown = flag(schema, "x-kubernetes-preserve-unknown-fields");
    let nullable = schema.remove("nullable").is_some();
    if nullable {
        untyped(schema);
    }
    if nullable || unknown {
        schema.remove("items");
        schema.remove("properties");
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("array") if schema.get("items").is_none() => untyped(schema),
        Some("object") if unknown => untyped(schema),
        _ => {}
    }
    let is_nullable =
        |schema: &Value| schema.get("nullable").and_then(Value::as_bool) == Some(true);
    if schema.get("additionalProperties").is_some_and(is_nullable) {
        schema.remove("required");
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let nullable: Vec<_> = properties
        .into_iter()
        .flat_map(Map::iter)
        .filter(|(_, property)| is_nullable(property))
        .map(|(name, _)| Value::String(name.clone()))
        .collect();
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !nullable.contains(name));
        if required.is_empty() {
            schema.remove("required");
        }
    }
}

#[cfg(test)]
mod tests;

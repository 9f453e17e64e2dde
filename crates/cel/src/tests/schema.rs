//! Declarations of the schemas in rows, as the API server makes them for custom resources.

use pintle_value::{Str, Value};

use crate::{Declaration, Merge, Object, SIZE_MAX};

/// The declaration of a whole resource, including the members that all resources have.
pub(super) fn declare_root(schema: &Value, name: &str) -> Option<Declaration> {
    declare(&with_meta(schema), name).map(|(declaration, _)| declaration)
}

/// A resource's schema with kind, version and name.
fn with_meta(schema: &Value) -> Value {
    let text = || Value::from([("type", "string")]);
    let names = Value::from([("name", text()), ("generateName", text())]);
    let meta = Value::from([("type", Value::from("object")), ("properties", names)]);
    let mut schema = schema.clone();
    let named = |name| schema.at(&["properties", "metadata", "properties", name]).is_some();
    let known = |name| schema.at(&["properties", name]).is_some();
    if known("kind") && known("apiVersion") && named("name") && named("generateName") {
        return schema;
    }
    let properties = schema.object_entry("properties");
    properties.insert("kind", text());
    properties.insert("apiVersion", text());
    properties.insert("metadata", meta);
    schema
}

/// A declaration and the minimum size of its JSON in bytes.
pub(super) fn declare(schema: &Value, name: &str) -> Option<(Declaration, u64)> {
    if schema.get("x-kubernetes-embedded-resource").and_then(Value::as_bool) == Some(true) {
        let mut schema = with_meta(schema);
        schema.as_object_mut()?.remove("x-kubernetes-embedded-resource");
        return declare(&schema, name);
    }
    let (declaration, min) = bare(schema, name)?;
    let nullable = schema.get("nullable").and_then(Value::as_bool) == Some(true);
    match nullable {
        true => Some((Declaration::Nullable(declaration.into()), min)),
        false => Some((declaration, min)),
    }
}

fn bare(schema: &Value, name: &str) -> Option<(Declaration, u64)> {
    let number = |key: &str| schema.get(key).and_then(Value::as_int).map(|n| n.max(0) as u64);
    let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or("");
    if schema.get("x-kubernetes-int-or-string").is_some() {
        let size_max = number("maxLength").map_or(SIZE_MAX, |n| n * 4);
        return Some((Declaration::IntOrString { size_max }, 1));
    }
    Some(match text("type") {
        "array" => {
            let (items, min) = declare(schema.get("items")?, &format!("{name}.@idx"))?;
            let size_max = number("maxItems").unwrap_or(SIZE_MAX / (min + 1));
            let merge = match text("x-kubernetes-list-type") {
                "set" => Merge::Set,
                "map" => Merge::Keys(keys(schema)),
                _ => Merge::Atomic,
            };
            (Declaration::list(items, merge, size_max), 2)
        }
        "object" => match schema.get("additionalProperties") {
            Some(values @ Value::Object(_)) => {
                let (values, min) = declare(values, &format!("{name}.@elem"))?;
                let size_max = number("maxProperties").unwrap_or(SIZE_MAX / (min + 6));
                (Declaration::map(values, size_max), 2)
            }
            _ => object(schema, name),
        },
        "string" => string(text("format"), number("maxLength"), schema),
        "boolean" => (Declaration::Bool, 4),
        "number" => (Declaration::Double, 1),
        "integer" => (Declaration::Int, 1),
        _ => return None,
    })
}

fn keys(schema: &Value) -> Box<[Str]> {
    let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
    keys.unwrap_or_default().iter().filter_map(|k| Some(k.as_str()?.into())).collect()
}

fn object(schema: &Value, name: &str) -> (Declaration, u64) {
    let required = schema.get("required").and_then(Value::as_array).unwrap_or_default();
    let is_required = |key: &str| required.iter().any(|r| r.as_str() == Some(key));
    let mut min = 2;
    let mut fields = Vec::new();
    for (key, property) in
        schema.get("properties").and_then(Value::as_object).unwrap_or(&EMPTY).iter()
    {
        let Some((declaration, size)) = declare(property, &format!("{name}.{key}")) else {
            continue;
        };
        if is_required(key) && property.get("default").is_none() {
            min += key.len() as u64 + size + 4;
        }
        fields.push((key.clone(), declaration));
    }
    (Declaration::Object(Object::new(name, fields)), min)
}

static EMPTY: pintle_value::Map = pintle_value::Map::new();

fn string(format: &str, length_max: Option<u64>, schema: &Value) -> (Declaration, u64) {
    match format {
        "byte" => (Declaration::Bytes { size_max: length_max.unwrap_or(SIZE_MAX) }, 2),
        "duration" => (Declaration::Duration, 3),
        "date" => (Declaration::Date, 12),
        "date-time" => (Declaration::DateTime, 21),
        _ => {
            let longest = schema.get("enum").and_then(Value::as_array).map(|values| {
                let lengths = values.iter().filter_map(Value::as_str).map(str::len);
                lengths.max().unwrap_or(0) as u64
            });
            let size_max = length_max.map(|n| n * 4).or(longest).unwrap_or(SIZE_MAX);
            (Declaration::String { size_max }, 2)
        }
    }
}

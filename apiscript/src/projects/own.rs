//! The server's built-in kinds, from its discovery and its OpenAPI document.

use serde_json::{Map, Value, json};

/// The resource of a kind in the discovery of a version: its plural, and whether it is namespaced.
pub(super) fn resource<'a>(list: &'a Value, kind: &str) -> Option<(&'a str, bool)> {
    let resources = list["resources"].as_array()?;
    let is = |resource: &&Value| resource["kind"] == kind && resource["singularName"] != "";
    let found = resources.iter().find(is)?;
    Some((found["name"].as_str()?, found["namespaced"] == true))
}

/// Whether a resource has a status subresource.
pub(super) fn has_status(list: &Value, plural: &str) -> bool {
    let name = format!("{plural}/status");
    list["resources"].as_array().is_some_and(|all| all.iter().any(|one| one["name"] == name))
}

/// The schema of a kind. References are followed only where the object has a value, because the
/// schema may be recursive.
pub(super) fn schema(document: &Value, version: &str, kind: &str, object: &Value) -> Option<Value> {
    let components = document.pointer("/components/schemas")?.as_object()?;
    let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
    let wanted = json!({"group": group, "version": version, "kind": kind});
    let is = |schema: &&Value| {
        let kinds = schema["x-kubernetes-group-version-kind"].as_array();
        kinds.is_some_and(|kinds| kinds.contains(&wanted))
    };
    let schema = components.values().find(is)?;
    Some(along(components, schema, object))
}

fn along(components: &Map<String, Value>, schema: &Value, value: &Value) -> Value {
    let mut schema = follow(components, schema);
    match value {
        Value::Object(members) => {
            let additional = schema.get("additionalProperties").cloned();
            for (name, value) in members {
                if let Some(known) = schema["properties"].get_mut(name) {
                    *known = along(components, known, value);
                } else if let Some(additional) = additional.as_ref().filter(|a| a.is_object()) {
                    schema["additionalProperties"] = along(components, additional, value);
                }
            }
        }
        Value::Array(items) => {
            // Each item leads to other parts of the schema.
            let known = items.iter().map(|item| along(components, &schema["items"], item));
            if let Some(known) = known.reduce(merge) {
                schema["items"] = known;
            }
        }
        _ => {}
    }
    schema
}

/// The target of a reference, with the default beside the reference, and with a mark if the type
/// accepts numbers and texts.
fn follow(components: &Map<String, Value>, schema: &Value) -> Value {
    let reference = schema.pointer("/allOf/0/$ref").or_else(|| schema.get("$ref"));
    let Some(name) = reference.and_then(Value::as_str).and_then(|r| r.rsplit('/').next()) else {
        return schema.clone();
    };
    let mut found = components.get(name).cloned().unwrap_or_default();
    if let Some(default) = schema.get("default") {
        found["default"] = default.clone();
    }
    if name.ends_with(".IntOrString") || name.ends_with(".Quantity") {
        found["x-kubernetes-int-or-string"] = json!(true);
    }
    found
}

fn merge(mut one: Value, other: Value) -> Value {
    if let (Some(members), Value::Object(others)) = (one.as_object_mut(), other) {
        for (name, value) in others {
            match members.remove(&name) {
                Some(known) if known.is_object() => members.insert(name, merge(known, value)),
                Some(known) => members.insert(name, known),
                None => members.insert(name, value),
            };
        }
    }
    one
}

/// Whether a refusal names the error, by one of the last two members of its path. Upstream does not
/// always name the last one: for a value with a wrong type in a map it names the map, and it names
/// a strategy as a whole. For a quantity it only describes the format.
pub(super) fn is_named(what: &str, answer: &Value) -> bool {
    let (problem, at) = what.rsplit_once(" at ").unwrap_or((what, ""));
    let answer = answer.to_string();
    let is_mentioned = |name: &str| !name.is_empty() && answer.contains(&name.replace("~1", "/"));
    match problem.strip_prefix("no ") {
        Some(missing) => is_mentioned(missing),
        None if problem == "an unknown field" => is_mentioned("noSuchField"),
        None => {
            let names = at.rsplit('/').filter(|name| name.parse::<usize>().is_err());
            names.take(2).any(is_mentioned) || answer.contains("quantities must match")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_followed_to_the_depth_of_the_object() {
        let document = json!({"components": {"schemas": {
            "a.Tree": {
                "x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "Tree"}],
                "properties": {
                    "size": {"default": 0, "allOf": [{"$ref": "#/components/schemas/a.Quantity"}]},
                    "trees": {"items": {"allOf": [{"$ref": "#/components/schemas/a.Tree"}]}},
                },
            },
            "a.Quantity": {"type": "string"},
        }}});
        let object = json!({"trees": [{"size": 1}, {"trees": []}]});
        let schema = schema(&document, "g/v1", "Tree", &object).unwrap();
        let item = &schema["properties"]["trees"]["items"]["properties"];
        for (word, expected) in [
            ("type", json!("string")),
            ("default", json!(0)),
            ("x-kubernetes-int-or-string", json!(true)),
        ] {
            assert_eq!(item["size"][word], expected, "{word}");
        }
        let leaf = &item["trees"]["items"]["allOf"];
        assert!(leaf.is_array(), "not followed without need: {leaf}");
    }

    #[test]
    fn a_refusal_names_its_cause() {
        let answer =
            json!({"message": "", "details": {"causes": [{"field": "spec.ports[0].port"}]}});
        for (what, expected) in [
            ("a wrong type at /spec/ports/0", true),
            ("a wrong type at /spec/ports/0/port", true),
            ("a wrong type at /spec/ports/key", true),
            ("no port at /spec/ports/0", true),
            ("no selector at /spec", false),
            ("an unknown field at /spec", false),
        ] {
            assert_eq!(is_named(what, &answer), expected, "{what}");
        }
    }
}

//! Converts an OpenAPI 2 document to OpenAPI 3, for extension API servers that only have the former
//! (upstream: `openapiconv`).
//!
//! Unlike upstream's conversion, this one keeps shared parameters, because references to them would
//! be dangling otherwise.

use pintle_value::{Map, Value, json};

const REFERENCE: &str = "$ref";
/// The locations of shared parts in both versions.
const PLACES: [(&str, &str); 3] = [
    ("#/definitions/", "#/components/schemas/"),
    ("#/parameters/", "#/components/parameters/"),
    ("#/responses/", "#/components/responses/"),
];
const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];

/// Returns the JSON of an OpenAPI 3 document with the content of an OpenAPI 2 document.
pub fn v3_from_v2(document: &Value) -> Vec<u8> {
    let mut converted = Map::new();
    converted.insert("openapi", "3.0.0");
    copy(document, &mut converted, &["info", "externalDocs"]);
    let paths = members(document.get("paths"), |path, item| {
        if is_extension(path) { item.clone() } else { path_item(item) }
    });
    converted.insert("paths", paths);
    let mut components = Map::new();
    let mut add = |from: &str, to: &str, convert: &dyn Fn(&Value) -> Value| {
        if let Some(parts) = document.get(from) {
            components.insert(to, members(Some(parts), |_, part| convert(part)));
        }
    };
    let produces = document.get("produces");
    add("definitions", "schemas", &schema);
    add("parameters", "parameters", &parameter);
    add("responses", "responses", &|part| response(part, produces));
    add("securityDefinitions", "securitySchemes", &security_scheme);
    converted.insert("components", components);
    json::to_string(&converted.into()).into_bytes()
}

fn is_extension(name: &str) -> bool {
    name.starts_with("x-")
}

/// Converts each member of an object.
fn members(object: Option<&Value>, convert: impl Fn(&str, &Value) -> Value) -> Map {
    let mut converted = Map::new();
    for (name, member) in object.and_then(Value::as_object).into_iter().flat_map(Map::iter) {
        converted.insert(name.clone(), convert(name, member));
    }
    converted
}

/// Copies members that are the same in both versions, and extensions.
fn copy(from: &Value, to: &mut Map, names: &[&str]) {
    for (name, member) in from.as_object().into_iter().flat_map(Map::iter) {
        if names.contains(&&**name) || is_extension(name) {
            to.insert(name.clone(), member.clone());
        }
    }
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).unwrap_or_default()
}

fn path_item(item: &Value) -> Value {
    let mut converted = Map::new();
    copy(item, &mut converted, &[REFERENCE]);
    for method in METHODS {
        if let Some(of_method) = item.get(method) {
            converted.insert(method, operation(of_method));
        }
    }
    let parameters: Vec<Value> = list(item.get("parameters")).iter().map(parameter).collect();
    if !parameters.is_empty() {
        converted.insert("parameters", parameters);
    }
    converted.into()
}

fn operation(operation: &Value) -> Value {
    const SAME: [&str; 6] =
        ["description", "externalDocs", "tags", "summary", "deprecated", "operationId"];
    let mut converted = Map::new();
    copy(operation, &mut converted, &SAME);
    let mut parameters = Vec::new();
    for given in list(operation.get("parameters")) {
        match given.get("schema").filter(|_| given.str_at(&["name"]) == Some("body")) {
            Some(of_body) => {
                let mut body = Map::new();
                insert_content(&mut body, of_body, operation.get("consumes"));
                converted.insert("requestBody", body);
            }
            None => parameters.push(parameter(given)),
        }
    }
    if !parameters.is_empty() {
        converted.insert("parameters", parameters);
    }
    let produces = operation.get("produces");
    let responses = members(operation.get("responses"), |code, given| {
        if is_extension(code) { given.clone() } else { response(given, produces) }
    });
    converted.insert("responses", responses);
    converted.into()
}

/// Inserts a body's schema, once for each media type.
fn insert_content(body: &mut Map, of_body: &Value, media_types: Option<&Value>) {
    let mut content = Map::new();
    for media_type in list(media_types).iter().filter_map(Value::as_str) {
        content.insert(media_type, Value::from([("schema", schema(of_body))]));
    }
    if !content.is_empty() {
        body.insert("content", content);
    }
}

fn response(response: &Value, produces: Option<&Value>) -> Value {
    let mut converted = Map::new();
    copy(response, &mut converted, &["description"]);
    insert_reference(&mut converted, response);
    if let Some(of_body) = response.get("schema") {
        insert_content(&mut converted, of_body, produces);
    }
    converted.into()
}

fn parameter(parameter: &Value) -> Value {
    let mut converted = Map::new();
    insert_reference(&mut converted, parameter);
    if !converted.is_empty() {
        return converted.into();
    }
    copy(parameter, &mut converted, &["name", "description", "in", "required", "allowEmptyValue"]);
    let of_value = match parameter.get("schema") {
        Some(of_value) => schema(of_value),
        None => {
            let mut simple = Map::new();
            copy_only(parameter, &mut simple, &["type", "format", "uniqueItems"]);
            simple.into()
        }
    };
    converted.insert("schema", of_value);
    converted.into()
}

fn copy_only(from: &Value, to: &mut Map, names: &[&str]) {
    for name in names {
        if let Some(member) = from.get(name) {
            to.insert(*name, member.clone());
        }
    }
}

fn insert_reference(to: &mut Map, from: &Value) {
    if let Some(pointer) = from.str_at(&[REFERENCE]) {
        to.insert(REFERENCE, reference(pointer));
    }
}

fn reference(pointer: &str) -> Value {
    let moved = PLACES
        .iter()
        .find_map(|(old, new)| pointer.strip_prefix(old).map(|name| format!("{new}{name}").into()));
    moved.unwrap_or_else(|| pointer.into())
}

/// Converts the references in a schema. A reference with sibling members becomes an `allOf`.
fn schema(of: &Value) -> Value {
    let Some(members_of) = of.as_object() else { return of.clone() };
    let mut converted = Map::new();
    for (name, member) in members_of.iter() {
        let member = match &**name {
            REFERENCE => reference(member.as_str().unwrap_or_default()),
            "properties" => members(Some(member), |_, property| schema(property)).into(),
            "items"
            | "additionalProperties"
            | "additionalItems"
            | "not"
            | "allOf"
            | "anyOf"
            | "oneOf" => match member.as_array() {
                Some(schemas) => schemas.iter().map(schema).collect::<Vec<Value>>().into(),
                None => schema(member),
            },
            _ => member.clone(),
        };
        converted.insert(name.clone(), member);
    }
    if converted.get(REFERENCE).is_some() && converted.as_slice().len() > 1 {
        let pointer = converted.remove(REFERENCE).unwrap_or_default();
        converted.insert("allOf", vec![Value::from([(REFERENCE, pointer)])]);
    }
    converted.into()
}

fn security_scheme(scheme: &Value) -> Value {
    let mut converted = Map::new();
    copy(scheme, &mut converted, &["description", "type", "name", "in"]);
    if let Some(flow) = scheme.str_at(&["flow"]) {
        let mut of_flow = Map::new();
        copy_only(scheme, &mut of_flow, &["authorizationUrl", "tokenUrl", "scopes"]);
        converted.insert("flows", Value::from([(flow, Value::from(of_flow))]));
    }
    converted.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of upstream's conversion, plus the shared parameters.
    #[test]
    fn conversion_matches_upstream() {
        let document = json::parse(include_bytes!("conversion/v2.json")).unwrap();
        let expected = json::parse(include_bytes!("conversion/v3.json")).unwrap();
        let converted = json::parse(&v3_from_v2(&document)).unwrap();
        assert_eq!(json::to_string(&converted), json::to_string(&expected));
        assert!(super::super::v3_message(&v3_from_v2(&document)).is_ok());
    }
}

//! Large values for a schema.

use serde_json::{Map, Value, json};

use crate::schemas::{Form, LargeField, Schemas, Step, parts, type_of};

/// How deep required members are made.
const DEPTH_MAX: usize = 8;

/// The content of the items of a list, the entries of a map, the characters of a text.
#[derive(Clone, Copy, Debug)]
pub(super) enum Filling {
    /// The smallest values that can be decoded, to have as many as possible.
    Bare,
    /// One valid value, repeated.
    Equal,
    /// Valid values, each with its own name, key or address.
    Distinct,
    /// This text, repeated.
    Repeated(&'static str),
}

/// Makes values of the types of a document.
pub(super) struct Filler<'s> {
    pub(super) schemas: &'s Schemas,
}

impl Filler<'_> {
    /// A value of about `bytes` bytes; the numbers of its items begin with `first`.
    pub(super) fn large(
        &self,
        field: &LargeField,
        filling: Filling,
        bytes: usize,
        first: usize,
    ) -> Value {
        self.of_schema(&field.schema, field.form, filling, bytes, first)
    }

    fn of_schema(
        &self,
        schema: &Value,
        form: Form,
        filling: Filling,
        bytes: usize,
        first: usize,
    ) -> Value {
        match (form, filling) {
            (Form::Text, Filling::Repeated(piece)) => piece.repeat(bytes / piece.len()).into(),
            (Form::Text, _) => self.made("", schema, first, 0),
            (Form::List, _) => {
                let items = &schema["items"];
                let item = |i| self.item(items, &list_keys(schema), filling, i);
                let length = item(first + 1000).to_string().len() + 1;
                (first..first + (bytes / length).max(1)).map(item).collect()
            }
            (Form::Map, _) => {
                let values = &schema["additionalProperties"];
                let value = |i| self.item(values, &[], filling, i);
                let length = value(first).to_string().len() + 11;
                let entries = first..first + (bytes / length).max(1);
                Value::Object(entries.map(|i| (format!("k{i}"), value(i))).collect())
            }
            (Form::Lists, _) => {
                let mut object = self.made("", schema, first, 0);
                let lists = parts(schema).into_iter().filter_map(|(step, part)| {
                    let (part, _) = self.schemas.resolved(part);
                    let Step::Field(field) = step else { return None };
                    (type_of(part) == "array").then_some((field, part))
                });
                let lists: Vec<_> = lists.collect();
                for (field, list) in &lists {
                    let share = bytes / lists.len();
                    object[field] = self.of_schema(list, Form::List, filling, share, first);
                }
                object
            }
        }
    }

    fn item(&self, schema: &Value, keys: &[&str], filling: Filling, number: usize) -> Value {
        let (resolved, _) = self.schemas.resolved(schema);
        match filling {
            Filling::Bare => match type_of(resolved) {
                "object" => json!({}),
                "array" => json!([]),
                "integer" | "number" => json!(0),
                "boolean" => json!(false),
                _ => json!(""),
            },
            Filling::Distinct => self.good(schema, keys, number),
            Filling::Equal | Filling::Repeated(_) => self.good(schema, keys, 0),
        }
    }

    /// An item with its required members and its keys; if there are none, with its first scalar.
    fn good(&self, schema: &Value, keys: &[&str], number: usize) -> Value {
        let mut value = self.made("", schema, number, 0);
        let (schema, _) = self.schemas.resolved(schema);
        if let Value::Object(members) = &mut value {
            let is_scalar = |part: &Value| {
                !matches!(type_of(self.schemas.resolved(part).0), "object" | "array")
            };
            let fields = parts(schema).into_iter().filter_map(|(step, part)| match step {
                Step::Field(field) => Some((field, part)),
                _ => None,
            });
            for (field, part) in fields {
                let first = members.is_empty() && is_scalar(part);
                if (first || keys.contains(&&*field)) && !members.contains_key(&field) {
                    let made = self.made(&field, part, number, 1);
                    members.insert(field, made);
                }
            }
        }
        value
    }

    /// The minimal value of a schema; `number` is part of its texts and numbers.
    pub(super) fn made(&self, field: &str, schema: &Value, number: usize, depth: usize) -> Value {
        let (schema, name) = self.schemas.resolved(schema);
        let name = name.and_then(|name| name.rsplit('.').next()).unwrap_or_default();
        match type_of(schema) {
            _ if name == "Quantity" => json!("1"),
            _ if name == "IntOrString" => json!(number % 65_535 + 1),
            "string" => json!(text(field, schema, number)),
            "integer" | "number" => json!(number % 65_535 + 1),
            "boolean" => json!(true),
            "array" => json!([]),
            _ if depth > DEPTH_MAX => json!({}),
            _ => {
                let required = schema["required"].as_array().into_iter().flatten();
                let required = required.filter_map(Value::as_str);
                let members = required.map(|field| {
                    let part = &schema["properties"][field];
                    let (resolved, _) = self.schemas.resolved(part);
                    let one = (type_of(resolved) == "array")
                        .then(|| json!([self.good(&resolved["items"], &[], number)]));
                    let made = one.unwrap_or_else(|| self.made(field, part, number, depth + 1));
                    (field.to_owned(), made)
                });
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }

    /// Sets a value in a tree, and creates missing parents.
    pub(super) fn put(&self, tree: &mut Value, schema: &Value, path: &[Step], value: Value) {
        let Some((step, rest)) = path.split_first() else {
            *tree = value;
            return;
        };
        let (schema, _) = self.schemas.resolved(schema);
        let (part, made) = match step {
            Step::Field(field) => {
                let part = &schema["properties"][field];
                (part, self.made(field, part, 0, 1))
            }
            Step::Item => (&schema["items"], self.good(&schema["items"], &list_keys(schema), 0)),
            Step::Entry => {
                let part = &schema["additionalProperties"];
                (part, self.made("", part, 0, 1))
            }
        };
        let next = match step {
            Step::Field(field) => {
                let members = object(tree);
                members.entry(field.clone()).or_insert(made)
            }
            Step::Entry => object(tree).entry("k0").or_insert(made),
            Step::Item => {
                if tree.as_array().is_none_or(Vec::is_empty) {
                    *tree = json!([made]);
                }
                &mut tree[0]
            }
        };
        self.put(next, part, rest, value);
    }
}

fn object(tree: &mut Value) -> &mut Map<String, Value> {
    if !tree.is_object() {
        *tree = json!({});
    }
    tree.as_object_mut().expect("it was made one")
}

/// The keys that identify a list's items.
fn list_keys(schema: &Value) -> Vec<&str> {
    let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
    let merge_key = schema["x-kubernetes-patch-merge-key"].as_str();
    keys.filter_map(Value::as_str).chain(merge_key).collect()
}

/// A valid text for a field of this name.
fn text(field: &str, schema: &Value, number: usize) -> String {
    if let Some(values) = schema["enum"].as_array().filter(|values| !values.is_empty()) {
        return values[number % values.len()].as_str().unwrap_or_default().to_owned();
    }
    match schema["format"].as_str() {
        Some("date-time") => return "2026-01-01T00:00:00Z".to_owned(),
        Some("byte") => return "YQ==".to_owned(),
        _ => {}
    }
    let [_, a, b, c] = u32::try_from(number).unwrap_or(0).to_be_bytes();
    let ends = |end: &str| field.to_ascii_lowercase().ends_with(end);
    match field {
        "apiVersion" => "v1".to_owned(),
        "operator" => "In".to_owned(),
        "status" => "True".to_owned(),
        "kind" => format!("K{number}"),
        "uid" => format!("00000000-0000-4000-8000-{number:012}"),
        _ if ends("ip") => format!("10.{a}.{b}.{c}"),
        _ if ends("cidr") => format!("10.{a}.{b}.{c}/32"),
        _ if ends("path") => format!("/p{number}"),
        _ => format!("n{number}"),
    }
}

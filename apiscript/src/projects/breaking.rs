//! Makes objects from an object and its schema that every server must refuse.

use serde_json::{Map, Value, json};

/// The most copies of one object.
const MOST: usize = 200;

/// Copies of an object with one error each, and the names of the errors.
pub(super) fn broken(schema: &Value, object: &Value, has_status: bool) -> Vec<(String, Value)> {
    let mut breaker = Breaker { object, found: Vec::new() };
    for (name, value) in object.as_object().into_iter().flatten() {
        let is_generic = ["apiVersion", "kind", "metadata"].contains(&name.as_str());
        if is_generic || (has_status && name == "status") {
            continue;
        }
        if let Some(schema) = schema["properties"].get(name) {
            breaker.visit(schema, value, &format!("/{}", escape(name)));
        }
    }
    breaker.required(schema, object, "");
    // The copies that remain are spread over the whole object.
    let step = breaker.found.len().div_ceil(MOST).max(1);
    breaker.found.into_iter().step_by(step).collect()
}

struct Breaker<'a> {
    object: &'a Value,
    found: Vec<(String, Value)>,
}

impl Breaker<'_> {
    fn visit(&mut self, schema: &Value, value: &Value, at: &str) {
        if value.is_null() {
            return;
        }
        self.mistype(schema, at);
        self.overstep(schema, at);
        self.required(schema, value, at);
        match value {
            Value::Object(members) => self.visit_members(schema, members, at),
            Value::Array(items) => {
                if let Some(item_schema) = schema.get("items") {
                    for (index, item) in items.iter().enumerate() {
                        self.visit(item_schema, item, &format!("{at}/{index}"));
                    }
                }
            }
            _ => {}
        }
    }

    fn visit_members(&mut self, schema: &Value, members: &Map<String, Value>, at: &str) {
        let additional = schema.get("additionalProperties").filter(|s| s.is_object());
        for (name, value) in members {
            let schema = schema["properties"].get(name).or(additional);
            if let Some(schema) = schema {
                self.visit(schema, value, &format!("{at}/{}", escape(name)));
            }
        }
        let is_open = additional.is_some()
            || schema["additionalProperties"] == true
            || schema["x-kubernetes-preserve-unknown-fields"] == true
            || schema["x-kubernetes-embedded-resource"] == true;
        if schema.get("properties").is_some() && !is_open {
            self.put(at, "an unknown field", |value| value["noSuchField"] = json!(1));
        }
    }

    fn mistype(&mut self, schema: &Value, at: &str) {
        let wrong = match schema["type"].as_str() {
            _ if schema["x-kubernetes-int-or-string"] == true => json!([]),
            Some("object" | "array" | "integer" | "number" | "boolean") => json!("wrong"),
            Some("string") => json!({}),
            _ => return,
        };
        self.put(at, "a wrong type", |value| *value = wrong);
    }

    /// Violates a bound of a number, an enum or a length.
    fn overstep(&mut self, schema: &Value, at: &str) {
        if schema["type"] == "string" && schema["enum"].is_array() {
            self.put(at, "a value beside the enum", |value| *value = json!("no-such-value"));
        }
        if schema["type"] == "integer" {
            if let Some(minimum) = schema["minimum"].as_i64() {
                self.put(at, "less than the minimum", |value| *value = json!(minimum - 1));
            }
            if let Some(maximum) = schema["maximum"].as_i64() {
                self.put(at, "more than the maximum", |value| *value = json!(maximum + 1));
            }
        }
        let at_least_one = |word: &str| schema[word].as_u64().is_some_and(|least| least > 0);
        let empty = match schema["type"].as_str() {
            Some("string") if at_least_one("minLength") => json!(""),
            Some("array") if at_least_one("minItems") => json!([]),
            Some("object") if at_least_one("minProperties") => json!({}),
            _ => Value::Null,
        };
        if !empty.is_null() {
            self.put(at, "nothing where something must be", |value| *value = empty);
        }
        if let (Some(most), Some("string")) =
            (schema["maxLength"].as_u64(), schema["type"].as_str())
        {
            let long = "x".repeat(usize::try_from(most).unwrap_or(usize::MAX).min(1 << 16) + 1);
            if most < 1 << 16 {
                self.put(at, "a text too long", |value| *value = json!(long));
            }
        }
    }

    /// Makes copies that each lack a required member without a default.
    fn required(&mut self, schema: &Value, value: &Value, at: &str) {
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let has_default = schema["properties"][name].get("default").is_some();
            if value.get(name).is_some() && !has_default && name != "metadata" {
                self.put(at, &format!("no {name}"), |value| {
                    if let Some(members) = value.as_object_mut() {
                        members.remove(name);
                    }
                });
            }
        }
    }

    fn put(&mut self, at: &str, what: &str, change: impl FnOnce(&mut Value)) {
        let mut object = self.object.clone();
        if let Some(value) = object.pointer_mut(at) {
            change(value);
            self.found.push((format!("{what} at {at}"), object));
        }
    }
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The path of the first sent value that is missing or different in the stored object. Built-in
/// kinds have types, so quantities have a canonical form and empty values are omitted; lists may
/// grow, as those of volumes and tolerations do.
pub(super) fn lost(sent: &Value, got: &Value, has_status: bool, is_own: bool) -> Option<String> {
    let members = sent.as_object()?;
    members.iter().find_map(|(name, value)| match name.as_str() {
        "status" if has_status => None,
        "stringData" if is_own => None, // the server stores it in `data`
        "metadata" => ["labels", "annotations"].iter().find_map(|part| {
            let at = format!("metadata.{part}");
            differs(&value[part], &got["metadata"][part], &at, is_own)
        }),
        _ => differs(value, &got[name.as_str()], name, is_own),
    })
}

fn differs(sent: &Value, got: &Value, at: &str, is_own: bool) -> Option<String> {
    match (sent, got) {
        (Value::Null, _) => None,
        (Value::Object(sent), Value::Object(got)) => sent.iter().find_map(|(name, value)| {
            differs(value, got.get(name).unwrap_or(&Value::Null), &format!("{at}.{name}"), is_own)
        }),
        (Value::Array(sent), Value::Array(got))
            if sent.len() == got.len() || (is_own && sent.len() < got.len()) =>
        {
            sent.iter()
                .zip(got)
                .enumerate()
                .find_map(|(i, (sent, got))| differs(sent, got, &format!("{at}[{i}]"), is_own))
        }
        (Value::Number(sent), Value::Number(got)) if sent.as_f64() == got.as_f64() => None,
        (sent, Value::Null) if is_own && is_empty(sent) => None,
        (sent, Value::String(got)) if is_own && amount(sent).is_some_and(|a| near(a, got)) => None,
        _ if sent == got => None,
        _ => Some(at.to_owned()),
    }
}

/// Whether a value is empty, at any depth.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.values().all(is_empty),
        Value::Bool(true) => false,
    }
}

fn near(amount: f64, got: &str) -> bool {
    let got = self::amount(&Value::from(got));
    got.is_some_and(|got| (got - amount).abs() <= amount.abs() * 1e-9)
}

/// The number that a quantity stands for.
fn amount(quantity: &Value) -> Option<f64> {
    const UNITS: [(&str, f64); 15] = [
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("Pi", 1_125_899_906_842_624.0),
        ("n", 1e-9),
        ("u", 1e-6),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
        ("E", 1e18),
        ("", 1.0),
    ];
    let text = match quantity {
        Value::Number(number) => return number.as_f64(),
        Value::String(text) => text.as_str(),
        _ => return None,
    };
    let (number, factor) =
        UNITS.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))?;
    Some(number.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the errors that a schema and an object lead to.
    fn check(schema: Value, object: Value, expected: &[&str]) {
        let found = broken(&schema, &object, true);
        assert_eq!(found.iter().map(|(what, _)| what.as_str()).collect::<Vec<_>>(), expected);
        assert!(found.iter().all(|(_, broken)| *broken != object));
    }

    #[test]
    fn each_copy_has_one_error() {
        let schema = json!({"required": ["spec"], "properties": {"status": {"type": "object"}, "spec": {
            "type": "object", "required": ["word", "given"], "properties": {
                "word": {"type": "string", "enum": ["a"], "minLength": 1, "maxLength": 3},
                "given": {"type": "integer", "minimum": 1, "maximum": 5, "default": 3},
                "list": {"type": "array", "minItems": 1, "items": {"x-kubernetes-int-or-string": true}},
                "open": {"type": "object", "additionalProperties": {"type": "boolean"}}}}}});
        let object = json!({"metadata": {}, "status": {}, "spec": {
            "word": "a", "given": 2, "list": [1], "open": {"a/b": true}}});
        check(
            schema,
            object,
            &[
                "a wrong type at /spec",
                "no word at /spec",
                "a wrong type at /spec/given",
                "less than the minimum at /spec/given",
                "more than the maximum at /spec/given",
                "a wrong type at /spec/list",
                "nothing where something must be at /spec/list",
                "a wrong type at /spec/list/0",
                "a wrong type at /spec/open",
                "a wrong type at /spec/open/a~1b",
                "a wrong type at /spec/word",
                "a value beside the enum at /spec/word",
                "nothing where something must be at /spec/word",
                "a text too long at /spec/word",
                "an unknown field at /spec",
                "no spec at ",
            ],
        );
    }

    #[test]
    fn lost_fields_are_found() {
        let sent = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"n": 1, "none": null, "l": [{"k": 2}]}});
        let mut got = sent.clone();
        got["spec"]["n"] = json!(1.0);
        assert_eq!(lost(&sent, &got, true, false), None);
        got["spec"]["l"][0] = json!({});
        assert_eq!(lost(&sent, &got, true, false).as_deref(), Some("spec.l[0].k"));
    }

    #[test]
    fn canonical_forms_of_typed_values_are_equal() {
        let sent = json!({"spec": {"cpu": 0.5, "memory": "1024Mi", "none": [], "l": [{"k": 1}]}});
        let got = json!({"spec": {"cpu": "500m", "memory": "1Gi", "l": [{"k": 1}, {"k": 2}]}});
        assert_eq!(lost(&sent, &got, true, true), None);
        assert_eq!(lost(&sent, &got, true, false).as_deref(), Some("spec.cpu"));
        let other = json!({"spec": {"cpu": "501m", "memory": "1Gi", "l": [{"k": 1}]}});
        assert_eq!(lost(&sent, &other, true, true).as_deref(), Some("spec.cpu"));
    }
}

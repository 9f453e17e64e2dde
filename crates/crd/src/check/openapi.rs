//! Validation of a version's schema beyond its structure (upstream:
//! ValidateCustomResourceDefinitionOpenAPISchema).

use std::cell::LazyCell;
use std::collections::BTreeSet;

use pintle_cel::Allowance;
use pintle_meta::field::{Error, Errors};
use pintle_value::{DEPTH_MAX, Map, Path, Str, Value, order::Ordered};

use super::strictness::{Strictness, TYPES};
use super::{defaults, structural};
use crate::structural::Structural;

/// The keywords allowed at the root of a schema with a status subresource: Go's name, and the
/// keyword.
const AT_ROOT: &[(&str, &str)] = &[
    ("Description", "description"),
    ("Type", "type"),
    ("Format", "format"),
    ("Title", "title"),
    ("Maximum", "maximum"),
    ("ExclusiveMaximum", "exclusiveMaximum"),
    ("Minimum", "minimum"),
    ("ExclusiveMinimum", "exclusiveMinimum"),
    ("MaxLength", "maxLength"),
    ("MinLength", "minLength"),
    ("Pattern", "pattern"),
    ("MaxItems", "maxItems"),
    ("MinItems", "minItems"),
    ("UniqueItems", "uniqueItems"),
    ("MultipleOf", "multipleOf"),
    ("Required", "required"),
    ("Items", "items"),
    ("Properties", "properties"),
    ("ExternalDocs", "externalDocs"),
    ("Example", "example"),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields"),
    ("XValidations", "x-kubernetes-validations"),
];

/// Validates a schema; `old` is the previous schema of the version. An unchanged schema is not
/// checked against the limits of a single rule's cost and of the patterns' memory. `rules` is what
/// is left for the rules of the definition.
pub(super) fn validate(
    schema: &Value,
    old: Option<&Value>,
    (has_status, strictness): (bool, Strictness),
    path: &Path,
    rules: &mut Allowance,
) -> Errors {
    let path = path.field("openAPIV3Schema");
    let mut errors = Errors::new();
    if has_status {
        check_root(schema, &path, &mut errors);
    }
    if schema.get("nullable").and_then(Value::as_bool) == Some(true) {
        errors
            .push(Error::forbidden(&path.field("nullable"), "nullable cannot be true at the root"));
    }
    let unchanged = old == Some(schema);
    // A schema that cannot be converted to a structural one is not checked as such.
    let unreadable = structural::unreadable(schema);
    let wrong = match unreadable {
        _ if !strictness.structural => {
            structural::patterns(schema, unchanged, &path).into_iter().collect()
        }
        Some(_) => Errors::new(),
        None => structural::validate(schema, unchanged, &path),
    };
    let is_structural = strictness.structural && unreadable.is_none() && wrong.is_empty();
    let structural = is_structural.then(|| Structural::read(schema));
    errors.extend(wrong);
    let wrong = structural.as_ref().map_or_else(Errors::new, |s| {
        if s.default.is_some() {
            let embedded = as_embedded(schema);
            defaults::validate((&Structural::read(&embedded), &embedded), &path)
        } else {
            defaults::validate((s, schema), &path)
        }
    });
    // Rules are compiled and defaults checked only if the schema is structural.
    let typed = structural.filter(|_| wrong.is_empty());
    errors.extend(wrong);
    let mut checker = Checker { errors: Errors::new(), depth: 0, types: strictness.types };
    let no_default = strictness.no_defaults.map(str::to_owned);
    checker.schema(schema, &path, &Context { is_root: true, no_default, in_meta: false });
    let typed = typed.filter(|_| !checker.errors.is_full());
    let wrong = typed.map_or_else(Errors::new, |structural| {
        crate::cel::validate(&structural, unchanged, &checker.errors, &path, rules)
    });
    errors.extend(checker.errors);
    errors.extend(wrong);
    if let Some(words) = unreadable.filter(|_| errors.is_empty() && strictness.structural) {
        errors.push(Error::invalid(&path, &"".into(), words));
    }
    errors
}

/// Keywords that upstream's type of schemas has and its validation forbids.
const UNSUPPORTED: &[&str] =
    &["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"];

/// Whether a schema has this keyword.
fn has_keyword(schema: &Value, key: &str) -> bool {
    schema.get(key).is_some_and(|given| match given {
        Value::Null => false,
        Value::String(text) => !text.is_empty() || key == "$ref",
        Value::Object(map) => matches!(key, "additionalItems" | "dependencies") || !map.is_empty(),
        _ => true,
    })
}

/// Whether `items` is a list of schemas.
fn lists_items(schema: &Value) -> bool {
    schema.get("items").and_then(Value::as_array).is_some_and(|items| !items.is_empty())
}

/// The schema as that of a whole object, which its default must match.
fn as_embedded(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Value::Object(members) = &mut schema {
        members.insert("x-kubernetes-embedded-resource", Value::Bool(true));
    }
    schema
}

fn check_root(schema: &Value, path: &Path, errors: &mut Errors) {
    let ty = schema.str_at(&["type"]).unwrap_or_default();
    if !ty.is_empty() && ty != "object" {
        let words = r#"only "object" is allowed as the type at the root of the schema if the status subresource is enabled"#;
        errors.push(Error::invalid(&path.field("type"), &ty.into(), words));
        return;
    }
    let members = schema.as_object().into_iter().flat_map(Map::keys);
    let mut others = members.filter(|key| !AT_ROOT.iter().any(|(_, known)| key == known));
    if others.next().is_some() {
        let names: Vec<_> = AT_ROOT.iter().map(|(name, _)| *name).collect();
        let words = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is \
             enabled",
            names.join(" ")
        );
        errors.push(Error::invalid(path, schema, words));
    }
}

/// The context of a nested schema.
#[derive(Clone, Default)]
struct Context {
    is_root: bool,
    /// Whether the schema is within that of an object's `metadata`, `kind` or `apiVersion`.
    in_meta: bool,
    /// Why defaults are forbidden here.
    no_default: Option<String>,
}

struct Checker {
    errors: Errors,
    depth: usize,
    /// Whether types must be known.
    types: bool,
}

impl Checker {
    fn forbid(&mut self, path: &Path, words: &str) {
        self.errors.push(Error::forbidden(path, words));
    }

    fn invalid(&mut self, path: &Path, value: &Value, words: &str) {
        self.errors.push(Error::invalid(path, value, words));
    }

    fn require(&mut self, path: &Path, words: &str) {
        self.errors.push(Error::required(path, words));
    }

    fn schema(&mut self, schema: &Value, path: &Path, context: &Context) {
        if schema.as_object().is_none() || self.depth > DEPTH_MAX {
            return;
        }
        self.depth += 1;
        self.unsupported(schema, path, context);
        if schema.get("uniqueItems").and_then(Value::as_bool) == Some(true) {
            let words = "uniqueItems cannot be set to true since the runtime complexity becomes \
                         quadratic";
            self.forbid(&path.field("uniqueItems"), words);
        }
        self.below(schema, path, context);
        self.extensions(schema, path);
        self.list_type(schema, path);
        self.map_keys(schema, path);
        self.rules(schema, path);
        self.depth -= 1;
    }

    fn unsupported(&mut self, schema: &Value, path: &Path, context: &Context) {
        let ty = schema.str_at(&["type"]).unwrap_or_default();
        if self.types && !ty.is_empty() && !TYPES.contains(&ty) {
            let error = Error::not_supported(&path.field("type"), &ty.into(), TYPES);
            self.errors.push(error);
        }
        if let (Some(reason), Some(_)) = (&context.no_default, schema.get("default")) {
            self.forbid(&path.field("default"), &format!("must not be set {reason}"));
        }
        for key in UNSUPPORTED.iter().filter(|key| has_keyword(schema, key)) {
            self.forbid(&path.field(key), &format!("{key} is not supported"));
        }
        if ty == "null" {
            let words = "type cannot be set to null, use nullable as an alternative";
            self.forbid(&path.field("type"), words);
        }
        if lists_items(schema) {
            let words = "items must be a schema object and not an array";
            self.forbid(&path.field("items"), words);
        }
        let embedded = "x-kubernetes-embedded-resource";
        if context.in_meta && schema.get(embedded).and_then(Value::as_bool) == Some(true) {
            self.forbid(&path.field(embedded), "must not be used inside of resource meta");
        }
    }

    fn below(&mut self, schema: &Value, path: &Path, context: &Context) {
        let inside = Context { is_root: false, ..context.clone() };
        let properties = schema.get("properties").and_then(Value::as_object);
        if let Some(additional) = schema.get("additionalProperties").filter(|a| !a.is_null()) {
            let at = path.field("additionalProperties");
            let is_true = additional.as_bool() == Some(true);
            if properties.is_some_and(|map| !map.is_empty()) && !is_true {
                let words = "additionalProperties and properties are mutual exclusive";
                self.forbid(&at, words);
            }
            let mut inside = inside.clone();
            if context.in_meta {
                let why = "inside additionalProperties applying to object metadata";
                inside.no_default = Some(why.to_owned());
            }
            self.schema(additional, &at, &inside);
        }
        let embedded = schema.get("x-kubernetes-embedded-resource").and_then(Value::as_bool);
        let is_object = context.is_root || embedded == Some(true);
        for (name, below) in properties.into_iter().flat_map(Map::iter) {
            let mut inside = inside.clone();
            if is_object && matches!(name.as_str(), "metadata" | "kind" | "apiVersion") {
                inside.in_meta = true;
                if context.is_root {
                    inside.no_default = Some(format!("in top-level {name}"));
                }
            }
            self.schema(below, &path.field("properties").key(name), &inside);
        }
        if let Some(not) = schema.get("not") {
            self.schema(not, &path.field("not"), &inside);
        }
        for key in ["allOf", "oneOf", "anyOf"] {
            let list = schema.get(key).and_then(Value::as_array).unwrap_or_default();
            for (i, below) in list.iter().enumerate() {
                self.schema(below, &path.field(key).index(i), &inside);
            }
        }
        if let Some(items) = schema.get("items") {
            self.schema(items, &path.field("items"), &inside);
        }
    }

    fn extensions(&mut self, schema: &Value, path: &Path) {
        let ty = schema.str_at(&["type"]).unwrap_or_default();
        let preserve = "x-kubernetes-preserve-unknown-fields";
        if let Some(Value::Bool(false)) = schema.get(preserve) {
            self.invalid(&path.field(preserve), &Value::Bool(false), "must be true or undefined");
        }
        for (key, wanted, allowed) in [
            ("x-kubernetes-map-type", "object", &["atomic", "granular"][..]),
            ("x-kubernetes-list-type", "array", &["atomic", "set", "map"]),
        ] {
            let Some(given) = schema.get(key).filter(|given| !given.is_null()) else { continue };
            if ty != wanted {
                let words = format!("must be {wanted} if {key} is specified");
                match ty {
                    "" => self.require(&path.field("type"), &words),
                    _ => self.invalid(&path.field("type"), &ty.into(), &words),
                }
            }
            if !given.as_str().is_some_and(|given| allowed.contains(&given)) {
                self.errors.push(Error::not_supported(&path.field(key), given, allowed));
            }
        }
    }

    fn list_type(&mut self, schema: &Value, path: &Path) {
        let list_type = schema.str_at(&["x-kubernetes-list-type"]);
        let items = schema.get("items").filter(|items| items.as_object().is_some());
        if !matches!(list_type, Some("set" | "map")) {
            return;
        }
        let given = list_type.unwrap_or_default();
        let Some(items) = items else { return };
        let at = path.field("items");
        let text = |key: &str| items.str_at(&[key]);
        if given == "set" && schema.str_at(&["type"]) == Some("array") {
            let words = "must be atomic as item of a list with x-kubernetes-list-type=set";
            let (key, is_wrong) = match text("type") {
                Some("array") => (
                    "x-kubernetes-list-type",
                    text("x-kubernetes-list-type").is_some_and(|t| t != "atomic"),
                ),
                Some("object") => {
                    ("x-kubernetes-map-type", text("x-kubernetes-map-type") != Some("atomic"))
                }
                _ => ("", false),
            };
            if is_wrong {
                let shown = items.get("x-kubernetes-list-type").unwrap_or(&Value::Null);
                self.invalid(&at.field(key), shown, words);
            }
        }
        if items.get("nullable").and_then(Value::as_bool) == Some(true) {
            let words = format!("cannot be nullable when x-kubernetes-list-type is {given}");
            self.forbid(&at.field("nullable"), &words);
        }
    }

    fn map_keys(&mut self, schema: &Value, path: &Path) {
        let list_type = schema.str_at(&["x-kubernetes-list-type"]);
        let keys_at = path.field("x-kubernetes-list-map-keys");
        let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
        let keys = keys.unwrap_or_default();
        if !keys.is_empty() && list_type != Some("map") {
            let words = "must be map if x-kubernetes-list-map-keys is non-empty";
            let at = path.field("x-kubernetes-list-type");
            match list_type {
                None => self.require(&at, words),
                Some(given) => self.invalid(&at, &given.into(), words),
            }
        }
        if list_type != Some("map") {
            return;
        }
        if keys.is_empty() {
            self.require(&keys_at, "must not be empty if x-kubernetes-list-type is map");
        }
        let at = path.field("items");
        let Some(items) = schema.get("items") else {
            return self.require(&at, "must have a schema if x-kubernetes-list-type is map");
        };
        if items.as_object().is_none() {
            let words = "must only have a single schema if x-kubernetes-list-type is map";
            // Upstream shows its internal form, in which `JSONSchemas` is null unless `items` is a
            // list.
            let listed = items.as_array().map_or("null", |_| "[]");
            let shown = format!(r#"{{"Schema":null,"JSONSchemas":{listed}}}"#);
            return self.errors.push(Error::invalid_shown(&at, shown, words));
        }
        if items.str_at(&["type"]) != Some("object") {
            let shown = items.get("type").cloned().unwrap_or_else(|| "".into());
            let words = "must be object if parent array's x-kubernetes-list-type is map";
            return self.invalid(&at.field("type"), &shown, words);
        }
        let shown = Value::Array(keys.to_vec());
        let required = items.get("required").and_then(Value::as_array).unwrap_or_default();
        let required: BTreeSet<Ordered<&Value>> = required.iter().map(Ordered).collect();
        let mut seen = BTreeSet::new();
        for key in keys {
            let name = key.as_str().unwrap_or_default();
            let at = at.field("properties").key(name);
            match items.at(&["properties", name]) {
                None => {
                    let words = "entries must all be names of item properties";
                    self.invalid(&keys_at, &shown, words);
                }
                Some(below) => self.map_key(below, required.contains(&Ordered(key)), &at),
            }
            if !seen.insert(Ordered(key)) {
                self.invalid(&keys_at, &shown, "must not contain duplicate entries");
            }
        }
    }

    fn map_key(&mut self, schema: &Value, is_required: bool, path: &Path) {
        if matches!(schema.str_at(&["type"]), Some("array" | "object")) {
            let words = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            // Upstream shows the type of the item.
            self.invalid(&path.field("type"), &"object".into(), words);
        }
        if !is_required && schema.get("default").is_none() {
            let words = "this property is in x-kubernetes-list-map-keys, so it must have a default \
                         or be a required property";
            self.require(&path.field("default"), words);
        }
        if schema.get("nullable").and_then(Value::as_bool) == Some(true) {
            let words = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            self.forbid(&path.field("nullable"), words);
        }
    }

    /// Validates the form of rules; their expressions are checked later, in parts of the schema
    /// without other errors.
    fn rules(&mut self, schema: &Value, path: &Path) {
        const REASONS: &[&str] = &[
            "FieldValueDuplicate",
            "FieldValueForbidden",
            "FieldValueInvalid",
            "FieldValueRequired",
        ];
        let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
        let structural = LazyCell::new(|| Structural::read(schema));
        for (i, rule) in rules.unwrap_or_default().iter().enumerate() {
            let at = path.field("x-kubernetes-validations").index(i);
            let text = |key: &str| Str::from(rule.str_at(&[key]).unwrap_or_default());
            let (given, message) = (text("rule"), text("message"));
            let breaks = |text: &str| text.contains(['\n', '\r']);
            if given.trim().is_empty() {
                self.require(&at.field("rule"), "rule is not specified");
            } else if !message.is_empty() && message.trim().is_empty() {
                let words = "must be non-empty if specified";
                self.invalid(&at.field("message"), &message.into(), words);
            } else if breaks(message.trim()) {
                let words = "must not contain line breaks";
                self.invalid(&at.field("message"), &message.into(), words);
            } else if breaks(given.trim()) && message.trim().is_empty() {
                let words = "message must be specified if rule contains line breaks";
                self.require(&at.field("message"), words);
            }
            let expression = text("messageExpression");
            if !expression.is_empty() && expression.trim().is_empty() {
                let words = "messageExpression must be non-empty if specified";
                self.require(&at.field("messageExpression"), words);
            }
            let reason = rule.get("reason").filter(|reason| !reason.is_null());
            if let Some(reason) =
                reason.filter(|r| !r.as_str().is_some_and(|r| REASONS.contains(&r)))
            {
                self.errors.push(Error::not_supported(&at.field("reason"), reason, REASONS));
            }
            self.field_path(&structural, &text("fieldPath"), &at.field("fieldPath"));
        }
    }

    fn field_path(
        &mut self,
        schema: &LazyCell<Structural, impl FnOnce() -> Structural>,
        given: &str,
        path: &Path,
    ) {
        if given.is_empty() {
            return;
        }
        let shown = Value::from(given);
        if given.trim().is_empty() {
            self.invalid(path, &shown, "must be non-empty if specified");
        }
        if given.contains(['\n', '\r']) {
            self.invalid(path, &shown, "must not contain line breaks");
        }
        if crate::cel::field_path(schema, given).is_none() {
            self.invalid(path, &shown, "must be a valid path");
        }
    }
}

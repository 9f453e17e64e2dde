//! Validation that a schema is structural (upstream:
//! `pkg/apiserver/schema/{validation,complete}.go`): types everywhere, only value validations under
//! `allOf`, `anyOf`, `oneOf` and `not`, and no value validation of undeclared fields.

use std::collections::HashMap;

use pintle_cel::{EvalError, Pattern};
use pintle_meta::field::{Error, Errors};
use pintle_value::{DEPTH_MAX, Path, Value};

/// The memory limit for the states of all patterns of a schema. Upstream has no such limit; real
/// schemas stay far below it.
const PATTERNS_BYTES_MAX: usize = 16 << 20;

/// The position of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// The error for patterns beyond the memory limit.
const PATTERNS_TOO_LARGE: &str = "the patterns of the schema are too large, taken together";

/// Whether a schema is structural, apart from the memory limit for patterns.
pub(crate) fn is_structural(schema: &Value) -> bool {
    unreadable(schema).is_none() && validate(schema, true, &Path::root()).is_empty()
}

/// Validates the rule that holds for schemas that are not structural, too: the memory limit for
/// patterns.
pub(super) fn patterns(schema: &Value, unchanged: bool, path: &Path) -> Option<Error> {
    validate(schema, unchanged, path).into_iter().find(|error| error.detail == PATTERNS_TOO_LARGE)
}

/// Validates that a schema is structural. Errors are sorted by text. The patterns of an `unchanged`
/// schema may have any size.
pub(crate) fn validate(schema: &Value, unchanged: bool, path: &Path) -> Errors {
    let patterns_bytes_max = if unchanged { usize::MAX } else { PATTERNS_BYTES_MAX };
    let mut checker = Checker { patterns_bytes_max, ..Checker::default() };
    checker.structure(schema, Level::Root, path);
    checker.completeness(schema, Some(schema), path, path);
    let mut errors = checker.errors;
    errors.sort_by_key(ToString::to_string);
    errors
}

/// Upstream's error if a schema cannot be parsed as a structural one (`NewStructural`).
pub(crate) fn unreadable(schema: &Value) -> Option<&'static str> {
    const UNSUPPORTED: [(&str, &str); 7] = [
        ("id", "OpenAPIV3Schema 'id' is not supported"),
        ("$schema", "OpenAPIV3Schema 'schema' is not supported"),
        ("$ref", "OpenAPIV3Schema '$ref' is not supported"),
        ("patternProperties", "OpenAPIV3Schema 'patternProperties' is not supported"),
        ("dependencies", "OpenAPIV3Schema 'dependencies' is not supported"),
        ("additionalItems", "OpenAPIV3Schema 'additionalItems' is not supported"),
        ("definitions", "OpenAPIV3Schema 'definitions' is not supported"),
    ];
    let mut found = None;
    super::walk(schema, &mut |schema| {
        let is_present = |key: &str| match schema.get(key) {
            None | Some(Value::Null) => false,
            Some(Value::String(text)) => !text.is_empty(),
            Some(Value::Object(map)) => key == "additionalItems" || !map.is_empty(),
            Some(_) => true,
        };
        let given = UNSUPPORTED.iter().find(|(key, _)| is_present(key)).map(|(_, words)| *words);
        let is_list = schema.get("items").is_some_and(|items| items.as_array().is_some());
        let listed = is_list.then_some("OpenAPIV3Schema 'items' must be a schema, but is an array");
        found = found.or(given).or(listed);
    });
    found
}

#[derive(Default)]
struct Checker<'s> {
    errors: Errors,
    depth: usize,
    /// The patterns seen so far, with their errors.
    patterns: HashMap<&'s str, Option<EvalError>>,
    /// The memory that they use, and its limit.
    patterns_bytes: usize,
    patterns_bytes_max: usize,
}

fn text<'s>(schema: &'s Value, key: &str) -> &'s str {
    schema.str_at(&[key]).unwrap_or_default()
}

fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn list<'s>(schema: &'s Value, key: &str) -> &'s [Value] {
    schema.get(key).and_then(Value::as_array).unwrap_or_default()
}

fn properties(schema: &Value) -> impl Iterator<Item = (&pintle_value::Str, &Value)> {
    let map = schema.get("properties").and_then(Value::as_object);
    map.into_iter().flat_map(pintle_value::Map::iter)
}

/// The schema under a keyword, if there is one.
fn schema_at<'s>(schema: &'s Value, key: &str) -> Option<&'s Value> {
    schema.get(key).filter(|below| below.as_object().is_some())
}

const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";

impl<'s> Checker<'s> {
    fn forbid(&mut self, path: &Path, words: &str) {
        self.errors.push(Error::forbidden(path, words));
    }

    fn require(&mut self, path: &Path, words: impl Into<String>) {
        self.errors.push(Error::required(path, words));
    }

    fn structure(&mut self, schema: &'s Value, level: Level, path: &Path) {
        if self.depth > DEPTH_MAX {
            return;
        }
        self.depth += 1;
        let ty = text(schema, "type");
        match schema_at(schema, "items") {
            Some(items) => self.structure(items, Level::Item, &path.field("items")),
            None if ty == "array" => self.require(&path.field("items"), "must be specified"),
            None => {}
        }
        for (name, below) in properties(schema) {
            self.structure(below, Level::Field, &path.field("properties").key(name));
        }
        if schema.get("additionalProperties").is_some() {
            let at = path.field("additionalProperties");
            if level == Level::Root {
                self.forbid(&at, "must not be used at the root");
            }
            if let Some(below) = schema_at(schema, "additionalProperties") {
                self.structure(below, Level::Field, &at);
            }
        }
        self.extensions(schema, path);
        let any_of = is_int_or_string(list(schema, "anyOf"));
        let all_of =
            list(schema, "allOf").first().is_some_and(|f| is_int_or_string(list(f, "anyOf")));
        self.logical_operators(schema, (any_of, all_of), level, path);
        self.own_type(schema, ty, level, path);
        self.object_members(schema, level, path);
        self.depth -= 1;
    }

    fn extensions(&mut self, schema: &Value, path: &Path) {
        if flag(schema, INT_OR_STRING) {
            let words = "must be false if x-kubernetes-int-or-string is true";
            for key in [PRESERVE, EMBEDDED] {
                if flag(schema, key) {
                    let error = Error::invalid(&path.field(key), &Value::Bool(true), words);
                    self.errors.push(error);
                }
            }
        }
    }

    fn own_type(&mut self, schema: &Value, ty: &str, level: Level, path: &Path) {
        let at = path.field("type");
        let shown = Value::from(ty);
        if flag(schema, EMBEDDED) && ty != "object" {
            let words = "must be object if x-kubernetes-embedded-resource is true";
            self.errors.push(match ty {
                "" => Error::required(&at, words),
                _ => Error::invalid(&at, &shown, words),
            });
        } else if ty.is_empty() && !flag(schema, INT_OR_STRING) && !flag(schema, PRESERVE) {
            self.require(
                &at,
                match level {
                    Level::Root => "must not be empty at the root",
                    Level::Item => "must not be empty for specified array items",
                    Level::Field => "must not be empty for specified object fields",
                },
            );
        }
        if flag(schema, EMBEDDED) && schema.get("additionalProperties").is_some() {
            let words = "must not be used if x-kubernetes-embedded-resource is set";
            self.forbid(&path.field("additionalProperties"), words);
        }
        if level == Level::Root && !ty.is_empty() && ty != "object" {
            self.errors.push(Error::invalid(&at, &shown, "must be object at the root"));
        }
    }

    /// Validates the members that every object has.
    fn object_members(&mut self, schema: &Value, level: Level, path: &Path) {
        let is_object = level == Level::Root || flag(schema, EMBEDDED);
        let at = |name: &str| path.field("properties").key(name);
        for name in ["kind", "apiVersion"] {
            let below = schema.at(&["properties", name]).filter(|_| is_object);
            let ty = below.map(|below| text(below, "type"));
            if let Some(ty) = ty.filter(|ty| *ty != "string") {
                let error = Error::invalid(&at(name).field("type"), &ty.into(), "must be string");
                self.errors.push(error);
            }
        }
        if let Some(metadata) = schema.at(&["properties", "metadata"]) {
            let ty = text(metadata, "type");
            if is_object && ty != "object" {
                let path = at("metadata").field("type");
                self.errors.push(Error::invalid(&path, &ty.into(), "must be object"));
            }
            if level == Level::Root && !restricts_names_only(metadata) {
                let words = "must not specify anything other than name and generateName, but \
                             metadata is implicitly specified";
                self.forbid(&at("metadata"), words);
            }
        }
        let has_members = properties(schema).next().is_some();
        if flag(schema, EMBEDDED) && !flag(schema, PRESERVE) && !has_members {
            let words = "must not be empty if x-kubernetes-embedded-resource is true without \
                         x-kubernetes-preserve-unknown-fields";
            self.require(&path.field("properties"), words);
        }
    }

    /// `skip` says whether `anyOf`, or that of the first `allOf`, is the pattern of old schemas for
    /// integer-or-string values.
    fn logical_operators(
        &mut self,
        schema: &'s Value,
        skip: (bool, bool),
        level: Level,
        path: &Path,
    ) {
        for (key, skipped) in [("anyOf", skip.0), ("allOf", false), ("oneOf", false)] {
            for (i, below) in list(schema, key).iter().enumerate().filter(|_| !skipped) {
                let skip_any_of = key == "allOf" && i == 0 && skip.1;
                self.nested(below, (skip_any_of, false), level, &path.field(key).index(i));
            }
        }
        if let Some(not) = schema_at(schema, "not") {
            self.nested(not, (false, false), level, &path.field("not"));
        }
        self.pattern(text(schema, "pattern"), &path.field("pattern"));
    }

    /// Validates a pattern. Schemas repeat few patterns in many fields, so each is checked once.
    fn pattern(&mut self, pattern: &'s str, path: &Path) {
        if pattern.is_empty() || self.patterns_bytes > self.patterns_bytes_max {
            return;
        }
        let wrong = self.patterns.entry(pattern).or_insert_with(|| match Pattern::check(pattern) {
            Ok(bytes) => {
                self.patterns_bytes += bytes;
                None
            }
            Err(why) => Some(why),
        });
        if let Some(why) = wrong {
            let words = format!("must be a valid regular expression, but isn't: {why}");
            self.errors.push(Error::invalid(path, &pattern.into(), words));
        }
        if self.patterns_bytes > self.patterns_bytes_max {
            self.forbid(path, PATTERNS_TOO_LARGE);
        }
    }

    fn nested(&mut self, schema: &'s Value, skip: (bool, bool), level: Level, path: &Path) {
        if self.depth > DEPTH_MAX {
            return;
        }
        self.depth += 1;
        self.logical_operators(schema, skip, level, path);
        if let Some(items) = schema_at(schema, "items") {
            self.nested(items, (false, false), level, &path.field("items"));
        }
        for (name, below) in properties(schema) {
            let path = path.field("properties").key(name);
            self.nested(below, (false, false), Level::Field, &path);
        }
        for (key, state) in [
            ("type", "empty"),
            ("additionalProperties", "undefined"),
            ("default", "undefined"),
            ("title", "empty"),
            ("description", "empty"),
            ("nullable", "false"),
            (PRESERVE, "false"),
            (EMBEDDED, "false"),
            (INT_OR_STRING, "false"),
            ("x-kubernetes-list-map-keys", "empty"),
            ("x-kubernetes-list-type", "undefined"),
            ("x-kubernetes-map-type", "undefined"),
            ("x-kubernetes-validations", "empty"),
        ] {
            let is_set = match schema.get(key) {
                None | Some(Value::Null) => false,
                Some(Value::Bool(given)) => *given,
                Some(Value::String(given)) => !given.is_empty(),
                Some(Value::Array(given)) => !given.is_empty(),
                Some(_) => true,
            };
            if is_set {
                self.forbid(&path.field(key), &format!("must be {state} to be structural"));
            }
        }
        if schema.at(&["properties", "metadata"]).is_some() {
            let path = path.field("properties").key("metadata");
            self.forbid(&path, "must not be specified in a nested context");
        }
        self.depth -= 1;
    }

    /// Checks that every value validation refers to a part of the structure.
    fn completeness(
        &mut self,
        validation: &Value,
        structure: Option<&Value>,
        at: &Path,
        from: &Path,
    ) {
        if let Some(not) = schema_at(validation, "not") {
            self.nested_completeness(not, structure, at, &from.field("not"));
        }
        for key in ["allOf", "anyOf", "oneOf"] {
            for (i, below) in list(validation, key).iter().enumerate() {
                self.nested_completeness(below, structure, at, &from.field(key).index(i));
            }
        }
    }

    fn nested_completeness(
        &mut self,
        validation: &Value,
        structure: Option<&Value>,
        at: &Path,
        from: &Path,
    ) {
        if self.depth > DEPTH_MAX {
            return;
        }
        let because = |from: &Path| format!("because it is defined in {from}");
        let Some(structure) = structure else { return self.require(at, because(from)) };
        self.depth += 1;
        self.completeness(validation, Some(structure), at, from);
        if let Some(items) = schema_at(validation, "items") {
            let below = schema_at(structure, "items");
            self.nested_completeness(items, below, &at.field("items"), &from.field("items"));
        }
        for (name, below) in properties(validation) {
            let (at, from) = (at.field("properties").key(name), from.field("properties").key(name));
            match structure.at(&["properties", name.as_str()]) {
                Some(own) => self.nested_completeness(below, Some(own), &at, &from),
                None => self.require(&at, because(&from)),
            }
        }
        self.depth -= 1;
    }
}

/// Whether this is exactly `anyOf: [{type: integer}, {type: string}]`.
fn is_int_or_string(any_of: &[Value]) -> bool {
    let only = |schema: &Value, ty: &str| {
        schema.as_object().is_some_and(|map| map.len() == 1) && text(schema, "type") == ty
    };
    matches!(any_of, [a, b] if only(a, "integer") && only(b, "string"))
}

/// Whether a schema of metadata only restricts names.
fn restricts_names_only(metadata: &Value) -> bool {
    let allowed = |key: &str| matches!(key, "type" | "properties" | "default");
    let members = metadata.as_object();
    let only = members.is_none_or(|map| map.iter().all(|(key, _)| allowed(key) || is_rule(key)));
    only && properties(metadata).all(|(name, _)| matches!(name.as_str(), "name" | "generateName"))
        && !members.is_some_and(|map| map.iter().any(|(key, _)| is_rule(key)))
}

/// Whether a keyword is a value validation.
fn is_rule(key: &str) -> bool {
    matches!(
        key,
        "required"
            | "minProperties"
            | "maxProperties"
            | "allOf"
            | "anyOf"
            | "oneOf"
            | "not"
            | "enum"
    )
}

#[cfg(test)]
mod tests;

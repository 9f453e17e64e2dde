//! Validation of values against a structural schema, with the messages and rules of upstream's
//! validator (`k8s.io/kube-openapi/pkg/validation/validate`) and with ratcheting: errors in parts
//! of an object that an update does not change are ignored.
//!
//! Submodules try the schemas of `anyOf` and its like ([`alternatives`]), and check the uniqueness
//! of list items ([`lists`]) and the metadata of embedded objects ([`embedded`]).

mod alternatives;
pub(crate) mod embedded;
pub(crate) mod format;
pub(crate) mod lists;
mod scalar;
#[cfg(test)]
mod tests;

use pintle_meta::field::{Error, Errors};
use pintle_meta::quote::quote;
use pintle_value::{Path, Value};

use crate::shown::step;
use crate::structural::{Additional, Rules, Structural, Type};
use alternatives::Attempts;

/// Validates a value. `prefix` is the path of the value in its object, which messages omit; `old`
/// is the value that an update replaces.
pub(crate) fn validate(
    schema: &Structural,
    value: &Value,
    old: Option<&Value>,
    prefix: &str,
) -> Errors {
    let (findings, attempts) = (Findings::default(), Attempts::default());
    let mut validator = Validator { prefix, path: String::new(), findings, attempts };
    if old.is_none_or(|old| !lists::is_same(schema, value, old)) {
        validator.value(schema, value, old);
    }
    validator
        .attempts
        .check(&validator.field_path())
        .map_or(validator.findings.errors, Errors::from)
}

/// The error for a value that is not of the named type.
pub(crate) fn wrong_type(field_path: &Path, wanted: &str, value: &Value) -> Error {
    type_error(field_path, "", wanted, type_of(value))
}

fn type_error(field_path: &Path, path: &str, wanted: &str, found: &str) -> Error {
    let words = format!("{path} in body must be of type {wanted}: {}", quote(found));
    Error::type_invalid(field_path, &found.into(), words)
}

/// The result of validating a value.
#[derive(Default)]
struct Findings {
    errors: Errors,
    /// The number of checks made. If all schemas of an `anyOf` or `oneOf` fail, the errors of the
    /// schema with the most checks are reported.
    checks: usize,
}

impl Findings {
    fn add(&mut self, other: Self) {
        self.errors.extend(other.errors);
        self.checks += other.checks;
    }
}

struct Validator<'a> {
    prefix: &'a str,
    /// The path of the value in upstream's messages: `spec.items[0].name`.
    path: String,
    findings: Findings,
    attempts: Attempts,
}

impl Validator<'_> {
    fn value(&mut self, schema: &Structural, value: &Value, old: Option<&Value>) {
        if self.findings.errors.is_full() || !self.attempts.visit(value) {
            return;
        }
        let rules = schema.rules.as_deref();
        self.check_type(schema, value);
        if value.is_null() {
            self.check_enum(rules, value);
            return;
        }
        if let Some(rules) = rules {
            self.logical_operators(rules, value, old);
        }
        match value {
            Value::String(text) => self.text(schema, rules, text),
            Value::Int(_) | Value::Float(_) => self.number(schema, rules, value),
            Value::Array(items) => self.items(schema, rules, items, old),
            _ => {}
        }
        self.check_enum(rules, value);
        if let Value::Object(members) = value {
            self.members(schema, rules, members, old);
        }
        self.findings.checks += 1;
    }

    /// Validates a value at an extended path, unless it is unchanged.
    fn below(
        &mut self,
        step: impl FnOnce(&mut String),
        schema: &Structural,
        value: &Value,
        old: Option<&Value>,
    ) {
        let is_full = self.findings.errors.is_full();
        if is_full || old.is_some_and(|old| lists::is_same(schema, value, old)) {
            return;
        }
        let back = self.path.len();
        step(&mut self.path);
        self.value(schema, value, old);
        self.path.truncate(back);
    }

    fn check_type(&mut self, schema: &Structural, value: &Value) {
        self.findings.checks += 1;
        let format = format::name(schema);
        let wanted: &[Type] = match (&schema.ty, schema.int_or_string) {
            (_, true) => &[Type::Integer, Type::String],
            (Some(ty), _) => std::slice::from_ref(ty),
            (None, _) if format.is_empty() => return,
            (None, _) => &[],
        };
        let found = type_of(value);
        let is_number = wanted.iter().any(|ty| matches!(ty, Type::Integer | Type::Number));
        let fits = match value {
            Value::Null => schema.nullable || wanted.is_empty(),
            // As in upstream, a text with a format is only checked by the format.
            Value::String(_) | Value::Array(_) if !format.is_empty() && !is_number => true,
            Value::Int(_) => is_number,
            _ => wanted.iter().any(|ty| ty.name() == found),
        };
        if fits {
            return;
        }
        match value {
            // As in upstream, the error for any other value names the formats.
            Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Object(_) | Value::Raw(_)
                if !format.is_empty() =>
            {
                self.wrong_type(format, format::of_value(value));
            }
            _ => {
                let names: Vec<_> = wanted.iter().map(|ty| ty.name()).collect();
                self.wrong_type(&names.join(","), found);
            }
        }
    }

    /// `found` is the type or format of the value, or its text.
    fn wrong_type(&mut self, wanted: &str, found: &str) {
        let error = type_error(&self.field_path(), &self.path, wanted, found);
        self.findings.errors.push(error);
    }

    fn check_enum(&mut self, rules: Option<&Rules>, value: &Value) {
        self.findings.checks += 1;
        let choices = rules.map(|rules| &rules.enumeration).filter(|all| !all.is_empty());
        let Some(choices) = choices else { return };
        if self.findings.errors.is_full() || choices.allow(value) {
            return;
        }
        let texts: Vec<String> = choices
            .iter()
            .map(|allowed| match allowed {
                Value::String(text) => text.to_string(),
                other => pintle_value::json::to_string(other),
            })
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let error = Error::not_supported(&self.field_path(), value, &texts);
        self.findings.errors.push(error);
    }

    fn items(
        &mut self,
        schema: &Structural,
        rules: Option<&Rules>,
        items: &[Value],
        old: Option<&Value>,
    ) {
        if let Some(below) = &schema.items {
            let old = lists::Correlated::new(schema, old);
            for (i, item) in items.iter().enumerate() {
                let step = |path: &mut String| path.push_str(&format!("[{i}]"));
                self.below(step, below, item, old.item(item));
            }
        }
        if let Some(rules) = rules {
            let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
            if let Some(least) = rules.min_items.filter(|least| count < *least) {
                self.invalid(&Value::Int(count), format!("should have at least {least} items"));
            }
            if let Some(most) = rules.max_items.filter(|most| count > *most) {
                let most = usize::try_from(most).unwrap_or(0);
                let error = Error::too_many(&self.field_path(), items.len(), most);
                self.findings.errors.push(error);
            }
        }
        self.findings.checks += 2;
    }

    fn members(
        &mut self,
        schema: &Structural,
        rules: Option<&Rules>,
        members: &pintle_value::Map,
        old: Option<&Value>,
    ) {
        if let Some(rules) = rules {
            let count = i64::try_from(members.len()).unwrap_or(i64::MAX);
            if let Some(least) = rules.min_properties.filter(|least| count < *least) {
                let words = format!("should have at least {least} properties");
                self.invalid(&Value::Int(count), words);
            }
            if let Some(most) = rules.max_properties.filter(|most| count > *most) {
                let most = usize::try_from(most).unwrap_or(0);
                let error = Error::too_many(&self.field_path(), members.len(), most);
                self.findings.errors.push(error);
            }
        }
        for (name, member) in members.iter() {
            if self.findings.errors.is_full() {
                return;
            }
            let is_own = schema.property(name).is_some();
            if !is_own && matches!(schema.additional.as_deref(), Some(Additional::Any(false))) {
                let shown = step(0, name);
                let words = format!("{}.{shown} in body is a forbidden property", self.path);
                let error = Error::invalid(&self.field_path(), &Value::from(name.clone()), words);
                self.findings.errors.push(error);
                continue;
            }
            let Some(below) = schema.member(name) else { continue };
            // The `apiVersion` and `kind` of the whole object are validated even if they are
            // unchanged.
            let is_type = self.prefix.is_empty()
                && self.path.is_empty()
                && matches!(name.as_str(), "apiVersion" | "kind");
            let old = old.filter(|_| !is_type).and_then(|old| old.get(name));
            let extend = |path: &mut String| {
                if !path.is_empty() || !is_own {
                    path.push('.');
                }
                path.push_str(step(path.len(), name));
            };
            self.below(extend, below, member, old);
        }
        for name in rules.map_or(&[][..], |rules| &rules.required) {
            if !members.contains_key(name) && !self.findings.errors.is_full() {
                let back = self.path.len();
                self.path.push('.');
                self.path.push_str(step(back, name));
                let error = Error::required(&self.field_path(), "");
                self.path.truncate(back);
                self.findings.errors.push(error);
            }
        }
        self.findings.checks += 1;
    }

    /// Adds an error without a field, as upstream does.
    fn composite(&mut self, words: &str) {
        let field_path = Path::new(if self.prefix.is_empty() { "<nil>" } else { self.prefix });
        let words = format!("{} {words}", quote(&self.path));
        self.findings.errors.push(Error::invalid(&field_path, &"".into(), words));
    }

    /// Adds an error whose message begins with the path.
    fn invalid(&mut self, value: &Value, words: impl std::fmt::Display) {
        let words = format!("{} in body {words}", self.path);
        let error = Error::invalid(&self.field_path(), value, words);
        self.findings.errors.push(error);
    }

    /// The field of an error.
    fn field_path(&self) -> Path {
        match (self.prefix, self.path.strip_prefix('.').unwrap_or(&self.path)) {
            ("", "") => Path::new("<nil>"),
            ("", path) => Path::new(path),
            (prefix, "") => Path::new(prefix),
            (prefix, path) => Path::new(&format!("{prefix}.{path}")),
        }
    }
}

/// The JSON type of a value.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Int(_) => "integer",
        Value::Float(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) | Value::Raw(_) => "object",
    }
}

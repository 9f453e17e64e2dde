//! Rules, evaluated over an object and what it was.

use pintle_cel::{Bindings, Budget, COST_MAX};
use pintle_meta::field::Error;
use pintle_value::{Path, Value};

use super::compile::Rules;
use super::{Compiled, Expression, field_path};
use crate::structural::{Structural, Type};
use crate::value::lists::Correlated;

/// What the rules of one object may cost together.
const BUDGET: u64 = 10_000_000;
/// The longest text of a message expression that is told.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;
const SPENT: &str = "validation failed due to running out of cost budget, no further validation rules \
                     will be run";

/// What the rules of a schema say of a value; `old` is what an update replaces.
pub(crate) fn evaluate(
    rules: &Rules,
    schema: &Structural,
    value: &Value,
    old: Option<&Value>,
) -> Vec<Error> {
    let mut evaluator = Evaluator { errors: Vec::new(), budget: Budget::new(BUDGET), ended: false };
    evaluator.value(rules, schema, value, old, &mut Path::root());
    evaluator.errors
}

struct Evaluator {
    errors: Vec<Error>,
    budget: Budget,
    ended: bool,
}

impl Evaluator {
    fn value(
        &mut self,
        rules: &Rules,
        schema: &Structural,
        value: &Value,
        old: Option<&Value>,
        path: &mut Path,
    ) {
        if value.is_null() || self.ended {
            return;
        }
        let old = old.filter(|old| !old.is_null());
        for compiled in &rules.own {
            self.rule(compiled, schema, value, old, path);
            if self.ended {
                return;
            }
        }
        let back = path.len();
        match value {
            Value::Array(items) => {
                let Some((rules, below)) = rules.items.as_deref().zip(schema.items.as_deref())
                else {
                    return;
                };
                let old = Correlated::new(schema, old);
                for (i, item) in items.iter().enumerate() {
                    path.push_index(i);
                    self.value(rules, below, item, old.item(item), path);
                    path.truncate(back);
                }
            }
            Value::Object(members) => {
                for (name, rules) in &rules.properties {
                    let Some((member, below)) = members.get(name).zip(schema.property(name)) else {
                        continue;
                    };
                    path.push_field(name);
                    self.value(rules, below, member, old.and_then(|old| old.get(name)), path);
                    path.truncate(back);
                }
                let Some((rules, below)) = rules.additional.as_deref().zip(schema.additional())
                else {
                    return;
                };
                for (name, member) in members.iter().filter(|(n, _)| schema.property(n).is_none()) {
                    path.push_key(name);
                    self.value(rules, below, member, old.and_then(|old| old.get(name)), path);
                    path.truncate(back);
                }
            }
            _ => {}
        }
    }

    fn rule(
        &mut self,
        compiled: &Compiled,
        schema: &Structural,
        value: &Value,
        old: Option<&Value>,
        path: &Path,
    ) {
        let expression = &schema.expressions[compiled.index];
        // A transition needs something to come from, unless it says that it does not.
        if compiled.uses_old_self && old.is_none() && expression.optional_old_self != Some(true) {
            return;
        }
        let at = shown_path(path);
        let ty = Value::from(schema.ty.map_or("", Type::name));
        let program = match &compiled.program {
            Ok(program) => program,
            Err(why) => {
                let words = format!("rule compile error: {why}");
                return self.errors.push(Error::invalid(&at, &ty, words));
            }
        };
        if self.budget.left() == 0 {
            return self.end(Error::invalid(&at, &ty, SPENT));
        }
        let bindings = Bindings::new().with(value).with(old);
        let by_budget = self.budget.left() < COST_MAX;
        let result = program.evaluate(&bindings, &mut self.budget);
        let words = expression.words();
        match result {
            Ok(Value::Bool(true)) => {}
            Ok(_) => {
                // What an update leaves as it was is no error, unless the rule is of the change.
                if compiled.uses_old_self || old != Some(value) {
                    let error = self.failure(compiled, expression, schema, value, &bindings, path);
                    self.errors.push(error);
                }
            }
            Err(error) if error.is_cancelled() && by_budget => {
                self.end(Error::invalid(&at, &ty, SPENT));
            }
            Err(error) if error.is_cancelled() => {
                let words = format!(
                    "'{error}': no further validation rules will be run due to call cost exceeds \
                     limit for rule: {words}"
                );
                self.end(Error::invalid(&at, &ty, words));
            }
            Err(error) if error.message().starts_with("no such overload") => {
                let words = format!(
                    "'{error}': call arguments did not match a supported operator, function or \
                     macro signature for rule: {words}"
                );
                self.errors.push(Error::invalid(&at, &ty, words));
            }
            Err(error) => {
                let words = format!("{error} evaluating rule: {words}");
                self.errors.push(Error::invalid(&at, &ty, words));
            }
        }
    }

    /// Nothing more is looked at.
    fn end(&mut self, error: Error) {
        self.errors.push(error);
        self.ended = true;
    }

    fn failure(
        &mut self,
        compiled: &Compiled,
        expression: &Expression,
        schema: &Structural,
        value: &Value,
        bindings: &Bindings<'_>,
        path: &Path,
    ) -> Error {
        let said = compiled.message.as_ref().and_then(|message| {
            let text = message.evaluate(bindings, &mut self.budget).ok()?;
            let text = text.as_str()?.trim().to_owned();
            let fits =
                !text.is_empty() && !text.contains(['\n', '\r']) && text.len() <= MESSAGE_BYTES_MAX;
            fits.then_some(text)
        });
        let words = said.unwrap_or_else(|| match expression.message.as_str() {
            "" => format!("failed rule: {}", expression.words()),
            _ => expression.words().to_owned(),
        });
        let below = field_path(schema, &expression.field_path).unwrap_or_default();
        let at = match (path.is_empty(), below.as_str()) {
            (_, "") => shown_path(path),
            (true, below) => Path::new(below),
            (false, below) if below.starts_with('[') => Path::new(&format!("{path}{below}")),
            (false, below) => path.field(below),
        };
        match expression.reason.as_str() {
            "FieldValueForbidden" => Error::forbidden(&at, words),
            "FieldValueRequired" => Error::required(&at, words),
            "FieldValueDuplicate" => Error { detail: words, ..Error::duplicate(&at, value) },
            _ if matches!(schema.ty, Some(Type::Object | Type::Array)) => {
                Error { value: None, ..Error::invalid(&at, value, words) }
            }
            _ => Error::invalid(&at, value, words),
        }
    }
}

/// Upstream has no path for the object itself.
fn shown_path(path: &Path) -> Path {
    if path.is_empty() { Path::new("<nil>") } else { path.clone() }
}

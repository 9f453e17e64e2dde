//! Evaluates rules for an object and its old state.

use pintle_cel::{Bindings, Budget, COST_MAX};
use pintle_meta::field::{Error, Errors};
use pintle_meta::quote::quote;
use pintle_value::{Path, Value};

use super::compile::Rules;
use super::ratchet::Ratchet;
use super::{Compiled, Message, field_path};
use crate::shown::step;
use crate::structural::{Expression, Structural, Type};
use crate::value::lists::Correlated;

/// The cost limit of all rules for one object.
const BUDGET: u64 = 10_000_000;
/// The maximum length of a text from a message expression.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;
const SPENT: &str = "validation failed due to running out of cost budget, no further validation rules \
                     will be run";

/// The result of the rules for a value.
#[derive(Default)]
pub(crate) struct RuleResults {
    /// Errors.
    pub(crate) errors: Errors,
    /// Errors in parts that an update does not change; they become warnings.
    pub(crate) warnings: Errors,
}

/// Evaluates the rules of a schema for a value; `old` is the value that an update replaces.
pub(crate) fn evaluate(
    rules: &Rules,
    schema: &Structural,
    value: &Value,
    old: Option<&Value>,
) -> RuleResults {
    let verdict = RuleResults::default();
    let mut evaluator = Evaluator { verdict, budget: Budget::new(BUDGET), ended: false };
    let ratchet = old.map(|old| Ratchet::new(schema, value, old));
    evaluator.value(RuleInput { rules, schema, value, old, ratchet }, &mut Path::root());
    evaluator.verdict
}

struct Evaluator {
    verdict: RuleResults,
    budget: Budget,
    ended: bool,
}

/// A value with its rules.
struct RuleInput<'v> {
    rules: &'v Rules,
    schema: &'v Structural,
    value: &'v Value,
    /// The value of `oldSelf`.
    old: Option<&'v Value>,
    ratchet: Option<Ratchet<'v>>,
}

impl Evaluator {
    fn value(&mut self, mut input: RuleInput<'_>, path: &mut Path) {
        if input.value.is_null() || self.ended {
            return;
        }
        input.old = input.old.filter(|old| !old.is_null());
        let RuleInput { rules, schema, value, old, ref ratchet } = input;
        let ratchet = ratchet.as_ref();
        for compiled in &rules.own {
            self.rule(compiled, &input, path);
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
                let correlated = Correlated::new(schema, old);
                for (i, value) in items.iter().enumerate() {
                    path.push_index(i);
                    let old = correlated.item(value);
                    let ratchet = ratchet.map(|ratchet| ratchet.below(below, value, old));
                    self.value(RuleInput { rules, schema: below, value, old, ratchet }, path);
                    path.truncate(back);
                }
            }
            Value::Object(members) => {
                for (name, rules) in &rules.properties {
                    let Some((value, below)) = members.get(name).zip(schema.property(name)) else {
                        continue;
                    };
                    let old = old.and_then(|old| old.get(name));
                    // These two cannot change in an update, so with a ratchet all failures of their
                    // rules would be warnings.
                    let changes =
                        !(path.is_empty() && matches!(name.as_str(), "apiVersion" | "kind"));
                    let ratchet = ratchet.filter(|_| changes);
                    let ratchet = ratchet.map(|ratchet| ratchet.below(below, value, old));
                    path.push_field(step(back, name));
                    self.value(RuleInput { rules, schema: below, value, old, ratchet }, path);
                    path.truncate(back);
                }
                let Some((rules, below)) = rules.additional.as_deref().zip(schema.additional())
                else {
                    return;
                };
                for (name, value) in members.iter().filter(|(n, _)| schema.property(n).is_none()) {
                    path.push_key(step(back, name));
                    let old = old.and_then(|old| old.get(name));
                    let ratchet = ratchet.map(|ratchet| ratchet.below(below, value, old));
                    self.value(RuleInput { rules, schema: below, value, old, ratchet }, path);
                    path.truncate(back);
                }
            }
            _ => {}
        }
    }

    fn rule(&mut self, compiled: &Compiled, input: &RuleInput<'_>, path: &Path) {
        // The object is refused, and no further error would be kept.
        self.ended |= self.verdict.errors.is_full();
        if self.ended {
            return;
        }
        let &RuleInput { schema, value, old, .. } = input;
        let expression = &schema.expressions[compiled.index];
        // A transition rule needs an old value, unless `optionalOldSelf` is set.
        if compiled.uses_old_self && old.is_none() && expression.optional_old_self != Some(true) {
            return;
        }
        // Only errors need the path.
        let invalid = |words: String| {
            let ty = Value::from(schema.ty.map_or("", Type::name));
            Error::invalid(&shown_path(path), &ty, words)
        };
        let program = match &compiled.program {
            Ok(program) => program,
            Err(why) => {
                let words = format!("rule compile error: {why}");
                return self.verdict.errors.push(invalid(words));
            }
        };
        if self.budget.left() == 0 {
            return self.end(invalid(SPENT.to_owned()));
        }
        let bindings = Bindings::new().with(value).with(old);
        let by_budget = self.budget.left() < COST_MAX;
        let result = program.evaluate(&bindings, &mut self.budget);
        let words = expression.words();
        match result {
            Ok(Value::Bool(true)) => {}
            Ok(_) => self.failure(compiled, input, &bindings, path),
            Err(error) if error.is_cancelled() && by_budget => {
                self.end(invalid(SPENT.to_owned()));
            }
            Err(error) if error.is_cancelled() => {
                let words = format!(
                    "'{error}': no further validation rules will be run due to call cost exceeds \
                     limit for rule: {words}"
                );
                self.end(invalid(words));
            }
            Err(error) if error.message().starts_with("no such overload") => {
                let words = format!(
                    "'{error}': call arguments did not match a supported operator, function or \
                     macro signature for rule: {words}"
                );
                self.verdict.errors.push(invalid(words));
            }
            Err(error) => {
                let words = format!("{error} evaluating rule: {words}");
                self.verdict.errors.push(invalid(words));
            }
        }
    }

    /// Ends the evaluation with an error.
    fn end(&mut self, error: Error) {
        self.verdict.errors.push(error);
        self.ended = true;
    }

    fn failure(
        &mut self,
        compiled: &Compiled,
        input: &RuleInput<'_>,
        bindings: &Bindings<'_>,
        path: &Path,
    ) {
        // A failure in an unchanged value is not an error, unless the rule is a transition rule.
        let is_warning =
            !compiled.uses_old_self && input.ratchet.as_ref().is_some_and(Ratchet::is_same);
        if is_warning && self.verdict.warnings.is_full() {
            return;
        }
        let &RuleInput { schema, value, .. } = input;
        let expression = &schema.expressions[compiled.index];
        let below = field_path(schema, &expression.field_path).unwrap_or_default();
        let at = match (path.is_empty(), below.as_str()) {
            (_, "") => shown_path(path),
            (true, below) => Path::new(below),
            (false, below) if below.starts_with('[') => Path::new(&format!("{path}{below}")),
            (false, below) => path.field(below),
        };
        let error = match self.message(compiled, input, bindings) {
            Err(why) => {
                self.ended = true;
                Error::invalid(&at, &schema.ty.map_or("", Type::name).into(), why)
            }
            Ok(text) => {
                let words = text.unwrap_or_else(|| match expression.message.as_str() {
                    "" => format!("failed rule: {}", expression.words()),
                    _ => expression.words().to_owned(),
                });
                failed(expression, schema, value, &at, words)
            }
        };
        let results =
            if is_warning { &mut self.verdict.warnings } else { &mut self.verdict.errors };
        results.push(error);
    }

    /// The text of the message expression, if it is usable. An error ends the evaluation.
    fn message(
        &mut self,
        compiled: &Compiled,
        input: &RuleInput<'_>,
        bindings: &Bindings<'_>,
    ) -> Result<Option<String>, String> {
        let Some(Ok(Message { program: Some(message), .. })) = &compiled.message else {
            return Ok(None);
        };
        let expression = &input.schema.expressions[compiled.index];
        if input.old.is_none() && message.uses("oldSelf") {
            return Ok(None);
        }
        let by_budget = self.budget.left() < COST_MAX;
        let text = match message.evaluate(bindings, &mut self.budget) {
            Ok(Value::String(text)) => text,
            Err(error) if error.is_cancelled() && by_budget => {
                return Err(
                    "messageExpression evaluation failed due to running out of cost budget, \
                            no further validation rules will be run"
                        .to_owned(),
                );
            }
            Err(error) if error.is_cancelled() => {
                let source = quote(&expression.message_expression);
                return Err(format!(
                    "no further validation rules will be run due to call cost exceeds limit for \
                     messageExpression: {source}"
                ));
            }
            _ => return Ok(None),
        };
        let text = text.trim();
        let fits = !text.is_empty() && !text.contains('\n') && text.len() <= MESSAGE_BYTES_MAX;
        Ok(fits.then(|| text.to_owned()))
    }
}

/// The error for a failed rule.
fn failed(
    expression: &Expression,
    schema: &Structural,
    value: &Value,
    at: &Path,
    words: String,
) -> Error {
    match expression.reason.as_str() {
        "FieldValueForbidden" => Error::forbidden(at, words),
        "FieldValueRequired" => Error::required(at, words),
        "FieldValueDuplicate" => Error { detail: words, ..Error::duplicate(at, value) },
        _ if matches!(schema.ty, Some(Type::Object | Type::Array)) => {
            Error { value: None, ..Error::invalid(at, value, words) }
        }
        _ => Error::invalid(at, value, words),
    }
}

/// Upstream has no path for the object itself.
fn shown_path(path: &Path) -> Path {
    if path.is_empty() { Path::new("<nil>") } else { path.clone() }
}

//! Rules, evaluated over an object and what it was.

use pintle_cel::{Bindings, Budget, COST_MAX};
use pintle_meta::field::{Error, Errors};
use pintle_meta::quote::quote;
use pintle_value::{Path, Value};

use super::compile::Rules;
use super::ratchet::Ratchet;
use super::{Compiled, Expression, Message, field_path};
use crate::structural::{Structural, Type};
use crate::value::lists::Correlated;

/// What the rules of one object may cost together.
const BUDGET: u64 = 10_000_000;
/// The longest text of a message expression that is told.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;
const SPENT: &str = "validation failed due to running out of cost budget, no further validation rules \
                     will be run";

/// What rules say of a value.
#[derive(Default)]
pub(crate) struct Verdict {
    /// What is wrong.
    pub(crate) errors: Errors,
    /// What is wrong with what an update leaves as it was: clients are warned of it.
    pub(crate) borne: Errors,
}

/// What the rules of a schema say of a value; `old` is what an update replaces.
pub(crate) fn evaluate(
    rules: &Rules,
    schema: &Structural,
    value: &Value,
    old: Option<&Value>,
) -> Verdict {
    let verdict = Verdict::default();
    let mut evaluator = Evaluator { verdict, budget: Budget::new(BUDGET), ended: false };
    let ratchet = old.map(|old| Ratchet { own: true, schema, value, old });
    evaluator.value(&Judged { rules, schema, value, old, ratchet }, &mut Path::root());
    evaluator.verdict
}

struct Evaluator {
    verdict: Verdict,
    budget: Budget,
    ended: bool,
}

/// A value with the rules about it.
struct Judged<'v> {
    rules: &'v Rules,
    schema: &'v Structural,
    value: &'v Value,
    /// The value that rules know as `oldSelf`.
    old: Option<&'v Value>,
    ratchet: Option<Ratchet<'v>>,
}

impl Evaluator {
    fn value(&mut self, judged: &Judged<'_>, path: &mut Path) {
        if judged.value.is_null() || self.ended {
            return;
        }
        let &Judged { rules, schema, value, ratchet, .. } = judged;
        let old = judged.old.filter(|old| !old.is_null());
        let judged = Judged { old, ..*judged };
        for compiled in &rules.own {
            self.rule(compiled, &judged, path);
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
                    self.value(&Judged { rules, schema: below, value, old, ratchet }, path);
                    path.truncate(back);
                }
            }
            Value::Object(members) => {
                for (name, rules) in &rules.properties {
                    let Some((value, below)) = members.get(name).zip(schema.property(name)) else {
                        continue;
                    };
                    let old = old.and_then(|old| old.get(name));
                    // These two are the same before and after, whatever they were.
                    let changes =
                        !(path.is_empty() && matches!(name.as_str(), "apiVersion" | "kind"));
                    let ratchet = ratchet.filter(|_| changes);
                    let ratchet = ratchet.map(|ratchet| ratchet.below(below, value, old));
                    path.push_field(name);
                    self.value(&Judged { rules, schema: below, value, old, ratchet }, path);
                    path.truncate(back);
                }
                let Some((rules, below)) = rules.additional.as_deref().zip(schema.additional())
                else {
                    return;
                };
                for (name, value) in members.iter().filter(|(n, _)| schema.property(n).is_none()) {
                    path.push_key(name);
                    let old = old.and_then(|old| old.get(name));
                    let ratchet = ratchet.map(|ratchet| ratchet.below(below, value, old));
                    self.value(&Judged { rules, schema: below, value, old, ratchet }, path);
                    path.truncate(back);
                }
            }
            _ => {}
        }
    }

    fn rule(&mut self, compiled: &Compiled, judged: &Judged<'_>, path: &Path) {
        let &Judged { schema, value, old, .. } = judged;
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
                return self.verdict.errors.push(Error::invalid(&at, &ty, words));
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
            Ok(_) => self.failure(compiled, judged, &bindings, path),
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
                self.verdict.errors.push(Error::invalid(&at, &ty, words));
            }
            Err(error) => {
                let words = format!("{error} evaluating rule: {words}");
                self.verdict.errors.push(Error::invalid(&at, &ty, words));
            }
        }
    }

    /// Nothing more is looked at.
    fn end(&mut self, error: Error) {
        self.verdict.errors.push(error);
        self.ended = true;
    }

    fn failure(
        &mut self,
        compiled: &Compiled,
        judged: &Judged<'_>,
        bindings: &Bindings<'_>,
        path: &Path,
    ) {
        let &Judged { schema, value, .. } = judged;
        let expression = &schema.expressions[compiled.index];
        let below = field_path(schema, &expression.field_path).unwrap_or_default();
        let at = match (path.is_empty(), below.as_str()) {
            (_, "") => shown_path(path),
            (true, below) => Path::new(below),
            (false, below) if below.starts_with('[') => Path::new(&format!("{path}{below}")),
            (false, below) => path.field(below),
        };
        let error = match self.message(compiled, judged, bindings) {
            Err(why) => {
                self.ended = true;
                Error::invalid(&at, &schema.ty.map_or("", Type::name).into(), why)
            }
            Ok(said) => {
                let words = said.unwrap_or_else(|| match expression.message.as_str() {
                    "" => format!("failed rule: {}", expression.words()),
                    _ => expression.words().to_owned(),
                });
                failed(expression, schema, value, &at, words)
            }
        };
        // What an update leaves as it was is no error, unless the rule is of the change.
        let is_borne = !compiled.uses_old_self && judged.ratchet.is_some_and(Ratchet::is_same);
        let told = if is_borne { &mut self.verdict.borne } else { &mut self.verdict.errors };
        told.push(error);
    }

    /// What the message expression says, if it says anything that can be told. An error ends it all.
    fn message(
        &mut self,
        compiled: &Compiled,
        judged: &Judged<'_>,
        bindings: &Bindings<'_>,
    ) -> Result<Option<String>, String> {
        let Some(Ok(Message { program: Some(message), .. })) = &compiled.message else {
            return Ok(None);
        };
        let expression = &judged.schema.expressions[compiled.index];
        if judged.old.is_none() && message.uses("oldSelf") {
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

/// The error for a rule that failed.
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

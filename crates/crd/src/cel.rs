//! Rules in the Common Expression Language (`x-kubernetes-validations`): compiled when a definition is
//! written, within a budget of estimated cost, and evaluated when objects are, within one of real cost
//! (upstream: `pkg/apiserver/schema/cel`).

mod compile;
mod declare;
mod evaluate;
mod field_path;
mod ratchet;
#[cfg(test)]
mod tests;

use pintle_cel::Program;
use pintle_value::{Str, Value};

pub(crate) use compile::{Rules, validate};
pub(crate) use evaluate::evaluate;
pub(crate) use field_path::field_path;

/// One rule, as a schema says it.
#[derive(Debug)]
pub(crate) struct Expression {
    rule: Str,
    message: Str,
    message_expression: Str,
    reason: Str,
    field_path: Str,
    optional_old_self: Option<bool>,
}

impl Expression {
    /// Reads `x-kubernetes-validations`.
    pub(crate) fn read(schema: &Value) -> Box<[Self]> {
        let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
        let rules = rules.unwrap_or_default().iter().map(|rule| {
            let text = |key: &str| Str::from(rule.str_at(&[key]).unwrap_or_default());
            Self {
                rule: text("rule"),
                message: text("message"),
                message_expression: text("messageExpression"),
                reason: text("reason"),
                field_path: text("fieldPath"),
                optional_old_self: rule.get("optionalOldSelf").and_then(Value::as_bool),
            }
        });
        rules.collect()
    }

    /// The words for the rule in errors: its message, or itself.
    fn words(&self) -> &str {
        if self.message.is_empty() { self.rule.trim() } else { self.message.trim() }
    }

    /// The rule as messages show it: upstream's struct.
    fn shown(&self) -> String {
        let quoted = |text: &str| pintle_value::json::to_string(&text.into());
        let reason = if self.reason.is_empty() { "null".to_owned() } else { quoted(&self.reason) };
        let optional = self.optional_old_self.map_or("null".to_owned(), |said| said.to_string());
        format!(
            r#"{{"Rule":{},"Message":{},"MessageExpression":{},"Reason":{reason},"FieldPath":{},"OptionalOldSelf":{optional}}}"#,
            quoted(&self.rule),
            quoted(&self.message),
            quoted(&self.message_expression),
            quoted(&self.field_path),
        )
    }
}

/// A rule that is ready to be evaluated.
struct Compiled {
    /// Its index among the rules of its schema.
    index: usize,
    /// The rule, or why it is none.
    program: Result<Program, String>,
    /// What makes the words for its failure, or why it does not.
    message: Option<Result<Message, String>>,
    uses_old_self: bool,
}

/// A message expression that is one.
struct Message {
    /// What it may cost, as estimated.
    cost_max: u64,
    /// `None` where it takes the old value for an optional one: upstream checks it as the rule, but
    /// gives it the value itself, and so it always fails.
    program: Option<Program>,
}

//! The validation rules of a schema, as written (`x-kubernetes-validations`).

use pintle_value::{Str, Value};

/// A rule of a schema.
#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) rule: Str,
    pub(crate) message: Str,
    pub(crate) message_expression: Str,
    pub(crate) reason: Str,
    pub(crate) field_path: Str,
    pub(crate) optional_old_self: Option<bool>,
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

    /// The rule's text in errors: its message, or the rule itself.
    pub(crate) fn words(&self) -> &str {
        if self.message.is_empty() { self.rule.trim() } else { self.message.trim() }
    }

    /// The rule as messages show it: upstream's struct.
    pub(crate) fn shown(&self) -> String {
        let quoted = |text: &str| pintle_value::json::to_string(&text.into());
        let reason = if self.reason.is_empty() { "null".to_owned() } else { quoted(&self.reason) };
        let optional = self.optional_old_self.map_or("null".to_owned(), |given| given.to_string());
        format!(
            r#"{{"Rule":{},"Message":{},"MessageExpression":{},"Reason":{reason},"FieldPath":{},"OptionalOldSelf":{optional}}}"#,
            quoted(&self.rule),
            quoted(&self.message),
            quoted(&self.message_expression),
            quoted(&self.field_path),
        )
    }
}

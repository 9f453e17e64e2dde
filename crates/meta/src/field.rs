//! Errors about one field of an object, and lists of them: upstream's `field.Error` and `ErrorList`.

use std::fmt;

use pintle_value::{Path, Value};

use crate::quote::{plain, quote};

#[cfg(test)]
mod tests;

/// What is wrong with a field. The words are those of `k8s.io/apimachinery/pkg/util/validation/field`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorType {
    /// The referenced thing does not exist.
    NotFound,
    /// A value is needed and missing or empty.
    Required,
    /// The same value stands twice where each may stand once.
    Duplicate,
    /// The value breaks a rule.
    Invalid,
    /// The value is none of the allowed ones.
    NotSupported,
    /// The field may not be set, or not like this.
    Forbidden,
    /// The text is too long.
    TooLong,
    /// The text is too short.
    TooShort,
    /// There are too many items.
    TooMany,
    /// There are too few items.
    TooFew,
    /// Something else went wrong while looking at the field.
    Internal,
    /// The value is of the wrong type.
    TypeInvalid,
}

impl ErrorType {
    /// The machine-readable word: `details.causes[].reason`.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooShort => "FieldValueTooShort",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
            Self::Internal => "InternalError",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooShort => "Too short",
            Self::TooMany => "Too many",
            Self::TooFew => "Too few",
            Self::Internal => "Internal error",
        }
    }
}

/// One thing wrong with one field.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// What is wrong.
    pub error_type: ErrorType,
    /// Where: `spec.containers[0].image`.
    pub field: String,
    /// The value there, already written as upstream writes it in messages (see [`shown`]);
    /// `None` where the message shows no value.
    pub value: Option<String>,
    /// What to do about it.
    pub detail: String,
}

impl Error {
    fn new(error_type: ErrorType, path: &Path, value: Option<String>, detail: String) -> Self {
        Self { error_type, field: path.as_str().to_owned(), value, detail }
    }

    /// A value is needed.
    pub fn required(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Required, path, None, detail.into())
    }

    /// The value breaks a rule.
    pub fn invalid(path: &Path, value: &Value, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Invalid, path, Some(shown(value)), detail.into())
    }

    /// The value breaks a rule; `shown` is how messages show it where a [`Value`] would not show
    /// upstream's order of members.
    pub fn invalid_shown(path: &Path, shown: String, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Invalid, path, Some(shown), detail.into())
    }

    /// The value stands twice.
    pub fn duplicate(path: &Path, value: &Value) -> Self {
        Self::new(ErrorType::Duplicate, path, Some(shown(value)), String::new())
    }

    /// The referenced thing is not there.
    pub fn not_found(path: &Path, value: &Value) -> Self {
        Self::new(ErrorType::NotFound, path, Some(shown(value)), String::new())
    }

    /// The field may not be set, or not like this.
    pub fn forbidden(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Forbidden, path, None, detail.into())
    }

    /// The value is none of `supported`.
    pub fn not_supported(path: &Path, value: &Value, supported: &[&str]) -> Self {
        let quoted: Vec<_> = supported.iter().map(|s| quote(s)).collect();
        let detail = if quoted.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", quoted.join(", "))
        };
        Self::new(ErrorType::NotSupported, path, Some(shown(value)), detail)
    }

    /// The text is longer than `bytes_max` bytes.
    pub fn too_long(path: &Path, bytes_max: usize) -> Self {
        let unit = if bytes_max == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {bytes_max} {unit}");
        Self::new(ErrorType::TooLong, path, None, detail)
    }

    /// The text is longer than `characters_max` characters.
    pub fn too_long_characters(path: &Path, characters_max: usize) -> Self {
        let unit = if characters_max == 1 { "character" } else { "characters" };
        let detail = format!("may not be more than {characters_max} {unit}");
        Self::new(ErrorType::TooLong, path, None, detail)
    }

    /// The text is shorter than `characters_min` characters.
    pub fn too_short(path: &Path, characters_min: usize) -> Self {
        let unit = if characters_min == 1 { "character" } else { "characters" };
        let detail = format!("must be at least {characters_min} {unit}");
        Self::new(ErrorType::TooShort, path, None, detail)
    }

    /// There are `count` items and at most `items_max` may be.
    pub fn too_many(path: &Path, count: usize, items_max: usize) -> Self {
        let unit = if items_max == 1 { "item" } else { "items" };
        let detail = format!("must have at most {items_max} {unit}");
        Self::new(ErrorType::TooMany, path, Some(count.to_string()), detail)
    }

    /// There are `count` items and at least `items_min` must be.
    pub fn too_few(path: &Path, count: usize, items_min: usize) -> Self {
        let unit = if items_min == 1 { "item" } else { "items" };
        let detail = format!("must have at least {items_min} {unit}");
        Self::new(ErrorType::TooFew, path, Some(count.to_string()), detail)
    }

    /// The value is not of the field's type.
    pub fn type_invalid(path: &Path, value: &Value, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::TypeInvalid, path, Some(shown(value)), detail.into())
    }

    /// Something went wrong that is not the value's fault.
    pub fn internal(path: &Path, why: impl Into<String>) -> Self {
        Self::new(ErrorType::Internal, path, None, why.into())
    }

    /// The message without the field: a cause's `message`.
    pub fn body(&self) -> String {
        let mut text = self.error_type.words().to_owned();
        if let Some(value) = &self.value {
            text.push_str(": ");
            text.push_str(value);
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

/// The whole message: `spec.replicas: Invalid value: -1: must be greater than or equal to 0`.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// Errors as one text: each message once, in brackets if there are several (upstream's
/// `ErrorList.ToAggregate().Error()`).
pub fn aggregate(errors: &[Error]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for error in errors {
        let text = error.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

/// Writes a value the way upstream's field errors do: strings quoted as Go does, numbers and
/// booleans bare, objects and lists as JSON.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Int(n) => n.to_string(),
        Value::Float(_) => plain(value),
        Value::String(s) => quote(s),
        Value::Array(_) | Value::Object(_) | Value::Unread(_) => {
            pintle_value::json::to_string(value)
        }
    }
}

//! Field errors and lists of them: upstream's `field.Error` and `ErrorList`.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::ops::{Deref, DerefMut};

use pintle_value::{Path, Value, json};

use crate::quote::{plain, quote};

#[cfg(test)]
mod tests;

/// The maximum number of errors that are collected and reported. Upstream reports all errors, but a
/// request of 3 MiB could cause a million errors and a response of hundreds of megabytes.
pub const ERRORS_MAX: usize = 1000;
/// The maximum size of a value, and of a path, in an error. A large value may be the subject of a
/// thousand errors. Upstream shows the whole value.
pub const SHOWN_BYTES_MAX: usize = 4096;
/// The maximum size of an error's detail. The largest details are diffs of whole pods.
const DETAIL_BYTES_MAX: usize = 64 * 1024;

/// The type of a field error, as in `k8s.io/apimachinery/pkg/util/validation/field`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorType {
    /// The referenced object does not exist.
    NotFound,
    /// A required value is missing or empty.
    Required,
    /// A value occurs twice where it must be unique.
    Duplicate,
    /// The value violates a rule.
    Invalid,
    /// The value is not one of the allowed values.
    NotSupported,
    /// The field must not be set, or not to this value.
    Forbidden,
    /// The text is too long.
    TooLong,
    /// The text is too short.
    TooShort,
    /// There are too many items.
    TooMany,
    /// There are too few items.
    TooFew,
    /// An internal error occurred while the field was validated.
    Internal,
    /// The value has the wrong type.
    TypeInvalid,
}

impl ErrorType {
    /// The machine-readable reason: `details.causes[].reason`.
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

/// An error about a field.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// The type of the error.
    pub error_type: ErrorType,
    /// The path of the field, such as `spec.containers[0].image`.
    pub field: String,
    /// The value, formatted as in upstream's messages (see [`shown`]); `None` where the message has
    /// no value.
    pub value: Option<String>,
    /// The explanation.
    pub detail: String,
}

impl Error {
    fn new(error_type: ErrorType, path: &Path, value: Option<String>, detail: String) -> Self {
        let field = cut(path.as_str(), SHOWN_BYTES_MAX).into_owned();
        let detail = match cut(&detail, DETAIL_BYTES_MAX) {
            Cow::Borrowed(_) => detail,
            Cow::Owned(cut) => cut,
        };
        Self { error_type, field, value, detail }
    }

    /// A required value is missing.
    pub fn required(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Required, path, None, detail.into())
    }

    /// The value violates a rule.
    pub fn invalid(path: &Path, value: &Value, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Invalid, path, Some(shown(value)), detail.into())
    }

    /// The value violates a rule. `shown` is the formatted value, for cases where upstream's order
    /// of members differs from a [`Value`]'s.
    pub fn invalid_shown(path: &Path, shown: String, detail: impl Into<String>) -> Self {
        let shown = truncated(&shown).into_owned();
        Self::new(ErrorType::Invalid, path, Some(shown), detail.into())
    }

    /// The value is a duplicate.
    pub fn duplicate(path: &Path, value: &Value) -> Self {
        Self::new(ErrorType::Duplicate, path, Some(shown(value)), String::new())
    }

    /// The referenced object does not exist.
    pub fn not_found(path: &Path, value: &Value) -> Self {
        Self::new(ErrorType::NotFound, path, Some(shown(value)), String::new())
    }

    /// The field must not be set, or not to this value.
    pub fn forbidden(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Forbidden, path, None, detail.into())
    }

    /// The value is not one of `supported`.
    pub fn not_supported(path: &Path, value: &Value, supported: &[&str]) -> Self {
        let listed = listed(supported.iter().map(|text| quote(&cut(text, SHOWN_BYTES_MAX))));
        let detail = match supported {
            [] => listed,
            _ => format!("supported values: {listed}"),
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

    /// There are `count` items, more than `items_max`.
    pub fn too_many(path: &Path, count: usize, items_max: usize) -> Self {
        let unit = if items_max == 1 { "item" } else { "items" };
        let detail = format!("must have at most {items_max} {unit}");
        Self::new(ErrorType::TooMany, path, Some(count.to_string()), detail)
    }

    /// There are `count` items, fewer than `items_min`.
    pub fn too_few(path: &Path, count: usize, items_min: usize) -> Self {
        let unit = if items_min == 1 { "item" } else { "items" };
        let detail = format!("must have at least {items_min} {unit}");
        Self::new(ErrorType::TooFew, path, Some(count.to_string()), detail)
    }

    /// The value has the wrong type.
    pub fn type_invalid(path: &Path, value: &Value, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::TypeInvalid, path, Some(shown(value)), detail.into())
    }

    /// An internal error occurred.
    pub fn internal(path: &Path, why: impl Into<String>) -> Self {
        Self::new(ErrorType::Internal, path, None, why.into())
    }

    /// The message without the field: the `message` of a cause.
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

/// Displays the whole message: `spec.replicas: Invalid value: -1: must be greater than or equal to
/// 0`.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// Collects errors: the first [`ERRORS_MAX`], and one more if there are more.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Errors(Vec<Error>);

impl Errors {
    /// An empty list.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds an error unless the list is full.
    pub fn push(&mut self, error: Error) {
        self.insert(self.0.len(), error);
    }

    /// Inserts an error before the one at `at`, unless the list is full.
    pub fn insert(&mut self, at: usize, error: Error) {
        // One error beyond the limit marks that there are more.
        if !self.is_full() {
            self.0.insert(at.min(self.0.len()), error);
        }
    }

    /// Whether the list is full, so that further errors are dropped.
    pub const fn is_full(&self) -> bool {
        self.0.len() > ERRORS_MAX
    }

    /// Keeps the errors for which the predicate holds.
    pub fn retain(&mut self, is_right: impl FnMut(&Error) -> bool) {
        self.0.retain(is_right);
    }
}

impl Deref for Errors {
    type Target = [Error];

    fn deref(&self) -> &[Error] {
        &self.0
    }
}

impl DerefMut for Errors {
    fn deref_mut(&mut self) -> &mut [Error] {
        &mut self.0
    }
}

impl Extend<Error> for Errors {
    fn extend<I: IntoIterator<Item = Error>>(&mut self, errors: I) {
        let room = (ERRORS_MAX + 1).saturating_sub(self.0.len());
        self.0.extend(errors.into_iter().take(room));
    }
}

impl FromIterator<Error> for Errors {
    fn from_iter<I: IntoIterator<Item = Error>>(errors: I) -> Self {
        let mut collected = Self::new();
        collected.extend(errors);
        collected
    }
}

impl<const N: usize> From<[Error; N]> for Errors {
    fn from(errors: [Error; N]) -> Self {
        errors.into_iter().collect()
    }
}

impl From<Error> for Errors {
    fn from(error: Error) -> Self {
        [error].into()
    }
}

impl IntoIterator for Errors {
    type Item = Error;
    type IntoIter = std::vec::IntoIter<Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Errors {
    type Item = &'a Error;
    type IntoIter = std::slice::Iter<'a, Error>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// Formats errors as one text: each distinct message once, in brackets if there are several
/// (upstream's `ErrorList.ToAggregate().Error()`). The last message says if errors were dropped.
pub fn aggregate(errors: &[Error]) -> String {
    let mut texts: Vec<String> = errors.iter().take(ERRORS_MAX).map(Error::to_string).collect();
    let mut seen = HashSet::new();
    let is_new: Vec<bool> = texts.iter().map(|text| seen.insert(text.as_str())).collect();
    let mut is_new = is_new.into_iter();
    texts.retain(|_| is_new.next().unwrap_or(true));
    if errors.len() > ERRORS_MAX {
        texts.push(MORE.to_owned());
    }
    match texts.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

/// The message in place of the errors beyond [`ERRORS_MAX`].
const MORE: &str = "and more errors";

/// Formats a value as upstream's field errors do: strings in Go's quotes, numbers and booleans
/// bare, objects and lists as JSON. Large values are truncated.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Int(n) => n.to_string(),
        Value::Float(_) => plain(value),
        Value::String(s) => quote(&cut(s, SHOWN_BYTES_MAX)),
        Value::Array(_) | Value::Object(_) | Value::Raw(_) => {
            let mut out = Vec::new();
            json::write_bounded(value, SHOWN_BYTES_MAX, &mut out);
            String::from_utf8_lossy(&out).into_owned()
        }
    }
}

/// Joins names with commas. Cuts each name at the size limit, and the list after the name with
/// which it exceeds the limit.
pub fn listed<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    let mut text = String::new();
    for name in names {
        if !text.is_empty() {
            text.push_str(", ");
        }
        if text.len() > SHOWN_BYTES_MAX {
            text.push_str("...");
            break;
        }
        text.push_str(&cut(name.as_ref(), SHOWN_BYTES_MAX));
    }
    text
}

/// Truncates a text to the size of a value in messages.
pub fn truncated(text: &str) -> Cow<'_, str> {
    cut(text, SHOWN_BYTES_MAX)
}

/// Truncates a text that is longer than `bytes_max` bytes, and appends `...`.
fn cut(text: &str, bytes_max: usize) -> Cow<'_, str> {
    match text.len() > bytes_max {
        true => format!("{}...", &text[..text.floor_char_boundary(bytes_max)]).into(),
        false => text.into(),
    }
}

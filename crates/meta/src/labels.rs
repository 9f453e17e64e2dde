//! Label selectors such as `app in (a,b),!legacy`: parsed, formatted and matched as in
//! `k8s.io/apimachinery/pkg/labels` (LIST-05, SEL-02).

mod parse;
#[cfg(test)]
mod tests;

use std::fmt;

use pintle_value::{Map, Path, Str, Value};

use crate::{Error, field, names, quote::quote};

/// The operator of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `key=value`
    Equals,
    /// `key==value`
    DoubleEquals,
    /// `key!=value`
    NotEquals,
    /// `key in (a,b)`
    In,
    /// `key notin (a,b)`
    NotIn,
    /// `key`
    Exists,
    /// `!key`
    DoesNotExist,
    /// `key>1`
    GreaterThan,
    /// `key<1`
    LessThan,
}

/// A requirement on one label. Its key and values are valid, except in a selector from
/// [`Selector::from_map`], which does not validate them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    key: Str,
    operator: Operator,
    values: Vec<Str>,
}

/// A label selector. An object matches if it meets every requirement; the selector for nothing
/// matches no object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// Sorted by key; `None` matches nothing.
    requirements: Option<Vec<Requirement>>,
}

impl Selector {
    /// The maximum length of a text that is parsed; a URL's query is shorter anyway.
    pub const LENGTH_MAX: usize = 64 * 1024;

    /// The selector that matches every object.
    pub const fn everything() -> Self {
        Self { requirements: Some(Vec::new()) }
    }

    /// The selector that matches no object.
    pub const fn nothing() -> Self {
        Self { requirements: None }
    }

    /// Parses a `labelSelector`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        parse::requirements(text).map(Self::new).map_err(Error::LabelSelector)
    }

    /// Converts a `metav1.LabelSelector`. A missing one matches nothing, an empty one everything.
    pub fn from_label_selector(selector: Option<&Value>) -> Result<Self, Error> {
        let Some(selector) = selector.filter(|s| !s.is_null()) else { return Ok(Self::nothing()) };
        let mut requirements = Vec::new();
        for (key, value) in
            selector.get("matchLabels").and_then(Value::as_object).iter().flat_map(|m| m.iter())
        {
            let values = vec![Str::from(value.as_str().unwrap_or_default())];
            requirements.push(checked(key.clone(), Operator::Equals, values)?);
        }
        for expression in
            selector.get("matchExpressions").and_then(Value::as_array).unwrap_or_default()
        {
            requirements.push(from_expression(expression)?);
        }
        Ok(Self::new(requirements))
    }

    /// Converts a map of labels to required values, such as a Service's selector. A missing or
    /// empty one matches everything.
    pub fn from_map(labels: Option<&Map>) -> Self {
        let pairs = labels.into_iter().flat_map(Map::iter);
        Self::new(
            pairs
                .map(|(key, value)| Requirement {
                    key: key.clone(),
                    operator: Operator::Equals,
                    values: vec![value.as_str().unwrap_or_default().into()],
                })
                .collect(),
        )
    }

    fn new(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self { requirements: Some(requirements) }
    }

    /// Whether an object with these labels matches. `label` looks up a label.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        match &self.requirements {
            None => false,
            Some(requirements) => requirements.iter().all(|r| r.matches(label(&r.key))),
        }
    }

    /// Whether an object with these `metadata.labels` matches.
    pub fn matches_map(&self, labels: Option<&Map>) -> bool {
        self.matches(|key| labels?.get(key)?.as_str())
    }

    /// Whether every object matches.
    pub fn is_everything(&self) -> bool {
        self.requirements.as_ref().is_some_and(Vec::is_empty)
    }

    /// Whether this is the selector that matches no object.
    pub const fn is_nothing(&self) -> bool {
        self.requirements.is_none()
    }

    /// The requirements, sorted by key; empty if nothing matches.
    pub fn requirements(&self) -> &[Requirement] {
        self.requirements.as_deref().unwrap_or_default()
    }

    /// The value that the label `key` must have, if the first requirement on the key allows exactly
    /// one.
    pub fn exact_match(&self, key: &str) -> Option<&str> {
        let requirement = self.requirements().iter().find(|r| r.key == key)?;
        match (requirement.operator, requirement.values.as_slice()) {
            (Operator::Equals | Operator::DoubleEquals | Operator::In, [value]) => Some(value),
            _ => None,
        }
    }
}

/// Formats a `metav1.LabelSelector` for tables: `<none>` if it is empty or missing, `<error>` if it
/// is invalid.
pub fn format_label_selector(selector: Option<&Value>) -> String {
    match Selector::from_label_selector(selector) {
        Err(_) => "<error>".to_owned(),
        Ok(selector) if selector.requirements().is_empty() => "<none>".to_owned(),
        Ok(selector) => selector.to_string(),
    }
}

fn from_expression(expression: &Value) -> Result<Requirement, Error> {
    let operator = match expression.str_at(&["operator"]).unwrap_or_default() {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        other => {
            let message = format!("{} is not a valid label selector operator", quote(other));
            return Err(Error::LabelSelector(message));
        }
    };
    let key = expression.str_at(&["key"]).unwrap_or_default();
    let values = expression.get("values").and_then(Value::as_array).unwrap_or_default();
    let values = values.iter().map(|v| v.as_str().unwrap_or_default().into()).collect();
    checked(key.into(), operator, values)
}

fn checked(key: Str, operator: Operator, values: Vec<Str>) -> Result<Requirement, Error> {
    Requirement::new(key, operator, values)
        .map_err(|errors| Error::LabelSelector(field::aggregate(&errors)))
}

impl Requirement {
    /// Creates a requirement after validating its key and values.
    pub fn new(key: Str, operator: Operator, values: Vec<Str>) -> Result<Self, field::Errors> {
        let mut errors = field::Errors::new();
        let wrong = names::qualified_name(&key);
        if !wrong.is_empty() {
            let value = Value::String(key.clone());
            errors.push(field::Error::invalid(&Path::new("key"), &value, wrong.join("; ")));
        }
        let path = Path::new("values");
        if let Some(detail) = wrong_count(operator, values.len()) {
            // Upstream's empty list is nil, and is displayed as such.
            let shown = if values.is_empty() { Value::Null } else { values.clone().into() };
            errors.push(field::Error::invalid(&path, &shown, detail));
        }
        for (i, value) in values.iter().enumerate() {
            let path = path.index(i);
            let shown = Value::String(value.clone());
            let is_order = matches!(operator, Operator::GreaterThan | Operator::LessThan);
            if is_order && integer(value).is_none() {
                const DETAIL: &str = "for 'Gt', 'Lt' operators, the value must be an integer";
                errors.push(field::Error::invalid(&path, &shown, DETAIL));
            }
        }
        for (i, value) in values.iter().enumerate() {
            let wrong = names::label_value(value);
            if !wrong.is_empty() {
                let shown = Value::String(value.clone());
                let path = path.index(i).key(&key);
                errors.push(field::Error::invalid(&path, &shown, wrong.join("; ")));
            }
        }
        if errors.is_empty() { Ok(Self { key, operator, values }) } else { Err(errors) }
    }

    /// The label's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The operator.
    pub const fn operator(&self) -> Operator {
        self.operator
    }

    /// The values.
    pub fn values(&self) -> &[Str] {
        &self.values
    }

    fn matches(&self, label: Option<&str>) -> bool {
        let has = |label: &str| self.values.iter().any(|value| value == label);
        match self.operator {
            Operator::Equals | Operator::DoubleEquals | Operator::In => label.is_some_and(has),
            Operator::NotEquals | Operator::NotIn => !label.is_some_and(has),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => self.compared(label).is_some_and(|(is, than)| is > than),
            Operator::LessThan => self.compared(label).is_some_and(|(is, than)| is < than),
        }
    }

    fn compared(&self, label: Option<&str>) -> Option<(i64, i64)> {
        Some((integer(label?)?, integer(self.values.first()?)?))
    }
}

/// The error if the operator does not allow `count` values.
fn wrong_count(operator: Operator, count: usize) -> Option<&'static str> {
    match operator {
        Operator::In | Operator::NotIn if count == 0 => {
            Some("for 'in', 'notin' operators, values set can't be empty")
        }
        Operator::Equals | Operator::DoubleEquals | Operator::NotEquals if count != 1 => {
            Some("exact-match compatibility requires one single value")
        }
        Operator::Exists | Operator::DoesNotExist if count != 0 => {
            Some("values set must be empty for exists and does not exist")
        }
        Operator::GreaterThan | Operator::LessThan if count != 1 => {
            Some("for 'Gt', 'Lt' operators, exactly one value is required")
        }
        _ => None,
    }
}

/// Parses a decimal integer with an optional sign, as Go's `strconv.ParseInt` does.
fn integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// Displays the requirements ordered by key, values sorted.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.requirements().iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let mut values: Vec<&str> = self.values.iter().map(Str::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        match self.operator {
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

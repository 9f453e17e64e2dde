//! Field selectors such as `spec.nodeName=a,status.phase!=Failed`: parsed, formatted and matched as
//! in `k8s.io/apimachinery/pkg/fields` (LIST-06, SEL-01).

use std::fmt;

use pintle_value::Str;

use crate::Error;

#[cfg(test)]
mod tests;

/// A requirement on one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The field's label: `spec.nodeName`.
    pub field: Str,
    /// Whether the field must equal the value, or must not.
    pub equal: bool,
    /// The value.
    pub value: Str,
}

/// A field selector. An object matches if it meets every requirement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

impl Selector {
    /// The maximum length of a text that is parsed; a URL's query is shorter anyway.
    pub const LENGTH_MAX: usize = 64 * 1024;

    /// The selector that matches every object.
    pub const fn everything() -> Self {
        Self { requirements: Vec::new() }
    }

    /// The selector with these requirements.
    pub const fn new(requirements: Vec<Requirement>) -> Self {
        Self { requirements }
    }

    /// Parses a `fieldSelector`. Its terms are sorted as texts.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.len() > Self::LENGTH_MAX {
            let message = format!("must be no more than {} bytes", Self::LENGTH_MAX);
            return Err(Error::FieldSelector(message));
        }
        let mut terms = split_terms(text);
        terms.sort_unstable();
        let terms = terms.into_iter().filter(|term| !term.is_empty());
        let requirements = terms.map(|term| requirement(text, term)).collect::<Result<Vec<_>, _>>();
        let mut requirements = requirements.map_err(Error::FieldSelector)?;
        // Upstream drops an operator without field and value.
        requirements.retain(|r| !(r.field.is_empty() && r.value.is_empty()));
        Ok(Self::new(requirements))
    }

    /// Whether an object with these fields matches. `field` looks up a field's text, `""` if the
    /// object lacks it.
    pub fn matches<T: AsRef<str>>(&self, field: impl Fn(&str) -> T) -> bool {
        self.requirements.iter().all(|r| (field(&r.field).as_ref() == r.value) == r.equal)
    }

    /// Whether every object matches.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The requirements.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// The value that the field must have, if a requirement says so.
    pub fn exact_match(&self, field: &str) -> Option<&str> {
        let requirement = self.requirements.iter().find(|r| r.equal && r.field == field)?;
        Some(&requirement.value)
    }
}

/// Splits at the commas that are not escaped by a backslash.
fn split_terms(text: &str) -> Vec<&str> {
    let mut escaped = false;
    text.split(|c| {
        let splits = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        splits
    })
    .collect()
}

fn requirement(selector: &str, term: &str) -> Result<Requirement, String> {
    let Some(at) = (0..term.len()).find(|&i| operator(&term.as_bytes()[i..]).is_some()) else {
        return Err(format!("invalid selector: '{selector}'; can't understand '{term}'"));
    };
    let (length, equal) = operator(&term.as_bytes()[at..]).expect("found above");
    let value = unescape(&term[at + length..])?;
    Ok(Requirement { field: term[..at].into(), equal, value })
}

/// The length of the operator at the beginning of `text`, and whether it requires equality.
fn operator(text: &[u8]) -> Option<(usize, bool)> {
    match text {
        [b'!', b'=', ..] => Some((2, false)),
        [b'=', b'=', ..] => Some((2, true)),
        [b'=', ..] => Some((1, true)),
        _ => None,
    }
}

fn unescape(text: &str) -> Result<Str, String> {
    let invalid = |sequence: &str| {
        Err(format!("invalid field selector: invalid escape sequence: {sequence}"))
    };
    let mut value = Str::default();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => value.push(c),
                Some(c) => return invalid(&format!("\\{c}")),
                None => return invalid("\\"),
            },
            // Upstream prints the character's code.
            ',' | '=' => {
                let code = u32::from(c);
                return Err(format!(
                    "invalid field selector: unescaped character in value: {code}"
                ));
            }
            c => value.push(c),
        }
    }
    Ok(value)
}

/// Displays the requirements with escaped values, so that parsing yields the same selector.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.requirements.iter().enumerate() {
            let separator = if i > 0 { "," } else { "" };
            let operator = if requirement.equal { "=" } else { "!=" };
            write!(f, "{separator}{}{operator}", requirement.field)?;
            for c in requirement.value.chars() {
                if matches!(c, '\\' | ',' | '=') {
                    f.write_str("\\")?;
                }
                write!(f, "{c}")?;
            }
        }
        Ok(())
    }
}

//! What is odd about a body that is accepted all the same.

use std::fmt;

use pintle_meta::quote::quote;

/// A field that was dropped, or that came twice: refused, warned of or ignored as the client's
/// `fieldValidation` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The type has no such field.
    Unknown(String),
    /// The field came more than once; the last one counts.
    Duplicate(String),
    /// A key came more than once in YAML; as go-yaml says it, which is by line.
    Repeated(String),
}

impl Problem {
    /// Where the field is; of a key in YAML, which line says it.
    pub fn path(&self) -> &str {
        let (Self::Unknown(path) | Self::Duplicate(path) | Self::Repeated(path)) = self;
        path
    }

    /// All problems in one text, as a strict decoder tells them.
    pub fn strict(problems: &[Self]) -> String {
        let (repeated, others): (Vec<&Self>, Vec<&Self>) =
            problems.iter().partition(|problem| matches!(problem, Self::Repeated(_)));
        let texts = |of: Vec<&Self>| of.iter().map(ToString::to_string).collect::<Vec<_>>();
        let repeated = texts(repeated).join("\n  ");
        let yaml = (!repeated.is_empty()).then(|| format!("yaml: unmarshal errors:\n  {repeated}"));
        let all: Vec<String> = yaml.into_iter().chain(texts(others)).collect();
        format!("strict decoding error: {}", all.join(", "))
    }
}

/// So many are told at most, as upstream does.
pub const PROBLEMS_MAX: usize = 100;

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(path) => write!(f, "unknown field {}", quote(path)),
            Self::Duplicate(path) => write!(f, "duplicate field {}", quote(path)),
            Self::Repeated(text) => f.write_str(text),
        }
    }
}

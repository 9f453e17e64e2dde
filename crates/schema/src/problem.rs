//! Problems of a body that do not prevent its decoding.

use std::fmt;

use pintle_meta::quote::quote;

/// An unknown or duplicate field. The request's `fieldValidation` decides whether it is an error, a
/// warning, or ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The type does not declare the field. It was dropped.
    Unknown(String),
    /// The field occurs more than once; the last one counts.
    Duplicate(String),
    /// A key occurs more than once in YAML. The text is go-yaml's, which names the line.
    Repeated(String),
}

impl Problem {
    /// The path of the field; for a key in YAML, the text with the line.
    pub fn path(&self) -> &str {
        let (Self::Unknown(path) | Self::Duplicate(path) | Self::Repeated(path)) = self;
        path
    }

    /// Formats all problems as one text, as a strict decoder's error.
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

/// The maximum number of problems that are reported, as in upstream.
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

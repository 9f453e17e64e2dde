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
}

/// So many are told at most, as upstream does.
pub const PROBLEMS_MAX: usize = 100;

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(path) => write!(f, "unknown field {}", quote(path)),
            Self::Duplicate(path) => write!(f, "duplicate field {}", quote(path)),
        }
    }
}

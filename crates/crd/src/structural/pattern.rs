//! The patterns of a schema: Go's regular expressions, compiled on first use.
//!
//! Schemas repeat few patterns, so equal patterns share one compiled form.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use pintle_cel::EvalError;

/// A regular expression in Go's syntax.
pub(crate) struct Pattern {
    text: Box<str>,
    compiled: OnceLock<Result<pintle_cel::Pattern, EvalError>>,
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl Pattern {
    /// The expression as written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether a text contains a match, or the error of the expression.
    pub(crate) fn matches(&self, text: &str) -> Result<bool, &EvalError> {
        let compiled = self.compiled.get_or_init(|| pintle_cel::Pattern::compile(&self.text));
        compiled.as_ref().map(|pattern| pattern.is_match(text))
    }
}

/// The patterns of one schema, by text.
#[derive(Default)]
pub(super) struct Patterns(HashMap<Box<str>, Arc<Pattern>>);

impl Patterns {
    /// Returns the pattern without parsing it yet.
    pub(super) fn get(&mut self, text: &str) -> Arc<Pattern> {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let new = Arc::new(Pattern { text: text.into(), compiled: OnceLock::new() });
        self.0.insert(text.into(), new.clone());
        new
    }
}

//! Errors: of compiling an expression, and of evaluating it.

use std::fmt;

use crate::source::Issues;

/// Why an expression can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// It doesn't parse or its types don't fit.
    #[error(transparent)]
    Issues(#[from] Issues),
    /// What is constant in it can't be evaluated.
    #[error("{0}")]
    Constant(EvalError),
}

/// Why an evaluation has no value, in upstream's words.
#[derive(Clone, PartialEq, Eq)]
pub struct EvalError(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    message: String,
    cancelled: bool,
    misplaced: bool,
}

impl EvalError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(Box::new(Inner { message: message.into(), cancelled: false, misplaced: false }))
    }

    /// A value was made whose parts are not where their types belong.
    pub(crate) fn misplaced(message: String) -> Self {
        Self(Box::new(Inner { message, cancelled: false, misplaced: true }))
    }

    /// The cost or the size of values went over the limit: nothing absorbs this error.
    pub(crate) fn cost() -> Self {
        let message = "operation cancelled: actual cost limit exceeded".to_owned();
        Self(Box::new(Inner { message, cancelled: true, misplaced: false }))
    }

    pub(crate) fn no_such_overload() -> Self {
        Self::new("no such overload")
    }

    /// Whether the evaluation was cancelled because it cost too much.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled
    }

    /// Whether the evaluation went well, but parts of what it made are not where their types belong.
    pub fn is_misplaced(&self) -> bool {
        self.0.misplaced
    }

    /// What went wrong.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Debug for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EvalError").field(&self.0.message).finish()
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for EvalError {}

//! Errors of compilation and of evaluation.

use std::fmt;

use crate::source::Issues;
use crate::types::Type;

/// Why an expression does not compile.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CompileError {
    /// It has syntax or type errors.
    #[error(transparent)]
    Issues(#[from] Issues),
    /// It is correct and has a value of this type, but a constant part of it cannot be evaluated.
    #[error("{0}")]
    Constant(EvalError, Type),
    /// The expressions before it have used up the allowance that it shares with them.
    #[error("the expressions of the object are too large together")]
    Spent,
}

/// Why an evaluation failed, with upstream's message.
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

    /// The evaluation constructed an object whose parts have types of another position.
    pub(crate) fn misplaced(message: String) -> Self {
        Self(Box::new(Inner { message, cancelled: false, misplaced: true }))
    }

    /// The cost or the size of values exceeded the limit. No operator absorbs this error.
    pub(crate) fn cost() -> Self {
        let message = "operation cancelled: actual cost limit exceeded".to_owned();
        Self(Box::new(Inner { message, cancelled: true, misplaced: false }))
    }

    pub(crate) fn no_such_overload() -> Self {
        Self::new("no such overload")
    }

    /// Whether the evaluation was cancelled because it exceeded its limit.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled
    }

    /// Whether the evaluation succeeded, but parts of the constructed object have types of another
    /// position.
    pub fn is_misplaced(&self) -> bool {
        self.0.misplaced
    }

    /// The error message.
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

//! Validation rules in the Common Expression Language (`x-kubernetes-validations`): compiled within
//! a budget of estimated cost when a definition is written, and evaluated within a budget of actual
//! cost when objects are written (upstream: `pkg/apiserver/schema/cel`).

mod compile;
mod declare;
mod evaluate;
mod field_path;
mod ratchet;
#[cfg(test)]
mod tests;

use pintle_cel::Program;

pub(crate) use compile::{Rules, allowance, validate};
pub(crate) use evaluate::evaluate;
pub(crate) use field_path::field_path;

/// A compiled rule.
struct Compiled {
    /// Its index among the rules of its schema.
    index: usize,
    /// The program, or the compilation error.
    program: Result<Program, String>,
    /// The compiled message expression, or its compilation error.
    message: Option<Result<Message, String>>,
    uses_old_self: bool,
}

/// A compiled message expression.
struct Message {
    /// The estimated cost.
    cost_max: u64,
    /// `None` if the expression needs an optional `oldSelf`. Upstream compiles the expression with
    /// an optional `oldSelf` but passes a plain value, so the evaluation always fails.
    program: Option<Program>,
}

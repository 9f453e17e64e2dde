//! The Common Expression Language as Kubernetes v1.36 has it: expressions are parsed, checked against
//! declared types, their cost is estimated, and they are evaluated over borrowed trees within a budget.
//!
//! Must not know: definitions of resources, requests, storage. Nothing here does I/O or looks at the
//! clock. Schemas are not known either: callers make [`Declaration`]s of them.
//!
//! Invariants:
//! - What is accepted, what it costs, and what errors say is upstream's (cel-go v0.26 with Kubernetes'
//!   libraries); the rows in `tests/` are upstream's outcomes.
//! - No expression and no data can make an evaluation panic, recurse without bound, or use more than
//!   its budget of time and memory.

mod address;
mod ast;
mod authorizer;
mod checker;
mod composition;
mod context;
mod cost;
mod declaration;
mod environment;
mod error;
mod escape;
mod functions;
mod library;
mod number;
mod parser;
mod pattern;
mod plan;
mod program;
mod source;
#[cfg(test)]
mod tests;
mod time;
mod types;
mod url;
mod value;

pub use authorizer::{Authorizer, Decision, Question, ResourceCheck, Subject};
pub use composition::{Composed, Composition};
pub use context::{Budget, COST_MAX};
pub use cost::Estimate;
pub use declaration::{Declaration, Field, List, Map, Merge, Object, SIZE_MAX};
pub use environment::Environment;
pub use error::{CompileError, EvalError};
pub use escape::{escape, is_reserved, unescape};
pub use pattern::Pattern;
pub use program::{Bindings, Program};
pub use source::{Issue, Issues};
pub use types::Type;

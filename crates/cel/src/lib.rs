//! The Common Expression Language as Kubernetes v1.36 has it: expressions are parsed, checked against
//! declared types, their cost is estimated, and they are evaluated over borrowed trees within a budget.
//!
//! The rooms, each of which knows only those before it:
//!
//! | room | what it is |
//! |---|---|
//! | `source`, `error`, `ast`, `escape` | texts, errors, the syntax tree |
//! | `types` | types, and the declarations of values that callers give |
//! | `number`, `time`, `url`, `address`, `semver`, `format`, `pattern` | scalars of Kubernetes' types, without values |
//! | `context`, `authorizer` | the budget of an evaluation; who decides what users may do |
//! | `value`, `bindings` | values, and those of variables |
//! | `functions`, `library` | what a function is; the tables of all functions |
//! | `scope`, `parser`, `checker`, `cost` | names, text to tree, tree to types, types to cost |
//! | `plan` | what evaluation runs |
//! | `program`, `composition`, `environment`, `selects` | what callers use |
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
mod bindings;
mod checker;
mod composition;
mod context;
mod cost;
mod environment;
mod error;
mod escape;
mod format;
mod functions;
mod library;
mod number;
mod parser;
mod pattern;
mod plan;
mod program;
mod scope;
mod selects;
mod semver;
mod source;
#[cfg(test)]
mod tests;
mod time;
mod types;
mod url;
mod value;

pub use authorizer::{Authorizer, Decision, Question, ResourceCheck, Subject};
pub use bindings::Bindings;
pub use composition::{Composed, Composition};
pub use context::{Budget, COST_MAX};
pub use cost::Estimate;
pub use environment::Environment;
pub use error::{CompileError, EvalError};
pub use escape::{escape, is_reserved, unescape};
pub use pattern::Pattern;
pub use program::Program;
pub use selects::selects;
pub use source::{Issue, Issues};
pub use types::Type;
pub use types::declaration::{Declaration, Field, List, Map, Merge, Object, SIZE_MAX};
pub use url::Url;

//! The Common Expression Language as Kubernetes v1.36 uses it. Expressions are parsed, type-checked
//! against declarations, and their cost is estimated; they are evaluated over borrowed trees within
//! a budget.
//!
//! The modules in layers; each depends only on those in rows before it:
//!
//! | module | content |
//! |---|---|
//! | `source`, `error`, `ast`, `escape` | texts, errors, the syntax tree |
//! | `types` | types, and the declarations of values by callers |
//! | `number`, `time`, `url`, `address`, `semver`, `format`, `pattern` | scalars of Kubernetes' types, independent of values |
//! | `context`, `allowance`, `authorizer` | the budget of an evaluation; the limit of compilations; the interface for authorization checks |
//! | `value`, `bindings` | values, and the values of variables |
//! | `functions`, `library` | the definition of a function; the tables of all functions |
//! | `scope`, `parser`, `checker`, `cost` | names, text to tree, tree to types, types to cost |
//! | `plan` | the executable form of an expression |
//! | `program`, `composition`, `environment`, `selects` | the public interface |
//!
//! Must not know: definitions of resources, requests, storage. Nothing here does I/O or reads the
//! clock. Schemas are not known either: callers convert them to [`Declaration`]s.
//!
//! Invariants:
//! - The accepted expressions, their cost and the error messages are upstream's (cel-go v0.26 with
//!   Kubernetes' libraries); the rows in `tests/` are upstream's results.
//! - No expression and no data can make an evaluation panic, recurse without bound, or exceed its
//!   budget of time and memory.

mod address;
mod allowance;
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

pub use allowance::Allowance;
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

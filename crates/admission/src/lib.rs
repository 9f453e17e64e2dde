//! The admission chain's built-in plugins: who may still refuse a write that is authorized and well
//! formed.
//!
//! Each plugin is a decision without side effects, tested as such, and an adapter that asks the
//! registry for what the decision depends on.
//!
//! Must not know: HTTP, users' permissions, how writes are made.

pub mod namespace;

pub use namespace::NamespaceLifecycle;

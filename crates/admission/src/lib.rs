//! The admission chain's built-in plugins: who may still refuse a write that is authorized and well
//! formed.
//!
//! Webhooks are the one plugin that asks elsewhere, and may change what is written. Each other plugin is a decision without side effects, tested as such, and an adapter that asks the
//! registry for what the decision depends on.
//!
//! Must not know: HTTP, users' permissions, how writes are made.

pub mod namespace;
pub mod webhooks;

pub use namespace::NamespaceLifecycle;
pub use webhooks::Webhooks;

//! Custom resources: a CustomResourceDefinition becomes resource definitions.
//!
//! Purpose: everything that a definition says, made into what the engine knows: types, defaults and
//! validation out of structural schemas, tables, selectable fields, subresources, versions and their
//! conversion; and the rules for definitions themselves: which are valid, which names they are given,
//! how they go.
//!
//! Must not know: storage, HTTP, the clock, other kinds. Webhooks are reached through a [`Caller`].
//!
//! Invariant: nothing here panics on any definition or object, however odd.

mod built_in;
mod cel;
mod check;
mod columns;
mod definition;
mod json_path;
pub mod life;
mod openapi;
mod resource;
mod storage;
mod strategy;
mod structural;
mod v1beta1;
mod value;
mod webhook;

pub use built_in::{BuiltIn, BuiltInResource};
pub use check::{validate, warnings};
pub use definition::{Crd, Names, Version, stored_schema};
pub use resource::{Source, resources, storage_resource, type_name};
pub use v1beta1::{V1BETA1, structured, to_v1beta1};

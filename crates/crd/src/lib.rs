//! Custom resources: converts a CustomResourceDefinition to resource definitions of the engine.
//!
//! This covers types, defaults and validation from structural schemas, tables, selectable fields,
//! subresources, versions and their conversion; and the rules for definitions themselves:
//! validation, accepted names, and deletion.
//!
//! Must not know: storage, HTTP, the clock, other kinds. Webhooks are called through a `Caller`.
//!
//! Invariant: no definition and no object can make this crate panic.

mod adapt;
mod approval;
mod built_in;
mod cel;
mod check;
mod columns;
mod definition;
mod json_path;
pub mod lifecycle;
mod openapi;
mod resource;
mod schemas;
mod shown;
mod storage;
mod strategy;
mod structural;
mod v1beta1;
mod value;
mod webhook;

pub use adapt::adapt_to_v1;
pub use built_in::{BuiltIn, BuiltInResource};
pub use check::{check_webhook_url, validate, validate_status, validate_v1beta1, warnings};
pub use definition::{Crd, Names, Version, stored_schema};
pub use json_path::is_json_path;
pub use resource::{resources, storage_resource};
pub use schemas::{Source, type_name};
pub use v1beta1::{UNEXPRESSED, V1BETA1, to_v1, to_v1beta1};

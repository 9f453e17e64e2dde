//! Types of Kubernetes objects: a table that describes the objects of built-in and custom kinds.
//!
//! The same representation serves both: the built-in table is a `static`, a
//! CustomResourceDefinition's schema is compiled into it at run time, and code that walks a
//! [`Schema`] does not distinguish them. Decoding, defaulting, declarative validation, strategic
//! merge, server-side apply, Protobuf and OpenAPI all read this table.
//!
//! Must not know: storage, HTTP, strategies, or the origin of a schema.

mod builtin;
pub mod decode;
pub mod default;
pub mod encode;
mod error;
mod go_names;
mod members;
mod omitempty;
pub mod openapi;
mod problem;
mod props_or;
pub mod protobuf;
mod removed;
mod table;
pub mod validate;
mod zero;

pub use zero::zero;

pub use builtin::{builtin, builtin_kind, is_builtin};
pub use decode::{Decoded, Format, conform, decode};
pub use error::Error;
pub use omitempty::{drop_empty, without_empty_distinct};
pub(crate) use problem::Problems;
pub use problem::{PROBLEMS_MAX, Problem};
pub use removed::{any_kind, with_removed};
pub use table::{
    Default, Field, ListType, MapType, Patch, Presence, Rule, Scalar, Schema, Shape, Type, TypeId,
    Types, Unknown,
};

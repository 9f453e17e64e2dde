//! Types: what a built-in table or a structural schema says about the objects of a kind.
//!
//! One form serves both: the built-in table is a `static`, a CustomResourceDefinition's schema is
//! compiled into the same form at run time, and nothing that walks a [`Schema`] asks which it is.
//! Decoding, defaults, the generic validation, strategic merge, server-side apply, Protobuf and
//! OpenAPI all read this table.
//!
//! Must not know: storage, HTTP, strategies, or where a schema came from.

mod alternative;
mod builtin;
pub mod decode;
pub mod default;
pub mod encode;
mod error;
mod generated;
mod go_names;
mod index;
mod members;
mod omitempty;
pub mod openapi;
mod problem;
pub mod protobuf;
mod removed;
mod table;
pub mod validate;
mod zero;

pub use zero::zero;

pub use builtin::{builtin, builtin_kind};
pub use decode::{Decoded, Format, conform, decode};
pub use error::Error;
pub use omitempty::{forget_empty, without_distinct};
pub use problem::{PROBLEMS_MAX, Problem};
pub use removed::{any_kind, with_removed};
pub use table::{
    Default, Field, ListType, MapType, Patch, Presence, Rule, Scalar, Schema, Shape, Type, TypeId,
    Types, Unknown,
};

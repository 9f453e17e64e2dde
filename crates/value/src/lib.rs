//! The object tree and its codecs.
//!
//! Purpose: what every API object is between the wire and the store: a [`Value`], and how it is
//! read from and written to JSON, YAML and CBOR.
//!
//! Must not know: Kubernetes. No group, kind, schema, or metadata rule is at home here, and nothing
//! here does I/O, takes a lock or looks at the clock.
//!
//! Invariants:
//! - A [`Map`]'s entries are sorted by key and unique, so equal objects are equal trees.
//! - An integer that fits `i64` is [`Value::Int`], be it written `1`, `1.0` or `1e0`; everything else
//!   numeric is [`Value::Float`], and is finite.
//! - No input can recurse deeper than [`DEPTH_MAX`].

pub mod cbor;
mod error;
pub mod json;
mod map;
pub mod order;
pub mod path;
pub mod token;
mod value;
pub mod yaml;

pub use error::Error;
pub use map::Map;
pub use path::Path;
pub use value::Value;

/// A short string: field names, names, label values. Up to 24 bytes live inline.
pub type Str = compact_str::CompactString;

/// The deepest nesting of lists and maps that is read.
///
/// The bound of upstream's JSON decoder (10,000) is far beyond any real object; ours keeps recursive
/// walks of the tree well within a thread's stack.
pub const DEPTH_MAX: usize = 512;

/// The deepest nesting of an object that is kept, its managed fields included.
///
/// It is less than [`DEPTH_MAX`], so that every document that has a kept object in it can be read by the
/// same readers: a list (2 levels), a Table (3), a review of a webhook (3), a tagged item of CBOR (1).
pub const OBJECT_DEPTH_MAX: usize = DEPTH_MAX - 12;

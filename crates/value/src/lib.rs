//! The object tree and its codecs: a [`Value`], and its encodings in JSON, YAML and CBOR.
//!
//! Must not know: Kubernetes. Groups, kinds, schemas and rules for metadata belong to crates above.
//! Nothing here does I/O, takes a lock or reads the clock.
//!
//! Invariants:
//! - A [`Map`]'s entries are sorted by key and unique, so equal objects are equal trees.
//! - An integer that fits `i64` is [`Value::Int`], whether it is written `1`, `1.0` or `1e0`; every
//!   other number is a [`Value::Float`], and is finite.
//! - No input can recurse deeper than [`DEPTH_MAX`].

pub mod cbor;
mod error;
pub mod json;
pub mod number;
pub mod order;
pub mod path;
pub mod token;
mod tree;
mod value;
pub mod yaml;

pub use error::Error;
pub use path::Path;
pub use tree::TreeReader;
pub use value::{Map, Value};

/// A short string: field names, names, label values. Up to 24 bytes live inline.
pub type Str = compact_str::CompactString;

/// The maximum nesting of lists and maps that a reader accepts.
///
/// Upstream's JSON decoder accepts 10,000 levels, far more than any real object has. Our limit
/// keeps recursive walks of the tree well within a thread's stack.
pub const DEPTH_MAX: usize = 512;

/// The maximum nesting of a stored object, its managed fields included.
///
/// It is less than [`DEPTH_MAX`], so that every document that contains a stored object can be read
/// by the same readers: a list (2 levels), a Table (3), a webhook's review (3), a tagged item of
/// CBOR (1).
pub const OBJECT_DEPTH_MAX: usize = DEPTH_MAX - 12;

//! Types that a definition describes itself: those of custom resources.
//!
//! The table of such a type tells how objects are decoded and owned; its author's words, examples and
//! rules are in the definition only, and OpenAPI shows them. They are long: one is written at a time.

use std::fmt;
use std::sync::Arc;

use super::{Descriptions, Dialect};

/// What a resource says of its types.
#[derive(Clone)]
pub struct Described {
    /// Another text whenever `write` would write another: hashes are made of it, so that nothing needs
    /// to be written for them.
    pub version: String,
    /// The name of the type of its objects: to know it, no table needs to be made.
    pub type_name: String,
    /// The name of the type of its lists.
    pub list_type: String,
    /// The built-in types that the two refer to.
    pub references: &'static [&'static str],
    /// Writes the definition of one of the two as JSON, when it is asked for.
    pub write: Arc<Write>,
}

/// Writes the schema of a type, given by its name.
pub type Write = dyn Fn(&str, Dialect, &dyn Descriptions, &mut Vec<u8>) + Send + Sync;

impl fmt::Debug for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Described");
        debug.field("version", &self.version).field("type_name", &self.type_name);
        debug.field("list_type", &self.list_type);
        debug.finish_non_exhaustive()
    }
}

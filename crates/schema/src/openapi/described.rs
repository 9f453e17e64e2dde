//! The types of custom resources, which their definitions describe.
//!
//! The table of such a type says how objects are decoded and owned. Descriptions, examples and
//! rules are only in the definition, and OpenAPI shows them. Definitions can be large, so they are
//! written one at a time.

use std::fmt;
use std::sync::Arc;

use super::{Descriptions, Dialect};

/// A custom resource's own description of its types.
#[derive(Clone)]
pub struct Described {
    /// A text that differs whenever the output of `write` differs. Hashes are computed from it,
    /// without writing the types.
    pub version: String,
    /// The type name of its objects. It is known without building the table.
    pub type_name: String,
    /// The type name of its lists.
    pub list_type: String,
    /// The built-in types that `type_name` and `list_type` refer to.
    pub references: &'static [&'static str],
    /// Writes the definition of `type_name` or of `list_type` as JSON.
    pub write: Arc<Write>,
}

/// Writes the schema of the named type.
pub type Write = dyn Fn(&str, Dialect, &dyn Descriptions, &mut Vec<u8>) + Send + Sync;

impl fmt::Debug for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Described");
        debug.field("version", &self.version).field("type_name", &self.type_name);
        debug.field("list_type", &self.list_type);
        debug.finish_non_exhaustive()
    }
}

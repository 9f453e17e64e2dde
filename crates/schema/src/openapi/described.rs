//! Types that a definition describes itself: those of custom resources.
//!
//! The table of such a type tells how objects are decoded and owned; its author's words, examples and
//! rules are in the definition only, and OpenAPI shows them.

use std::fmt;
use std::sync::Arc;

use pintle_value::Value;

use super::{Descriptions, Dialect};

/// What a resource says of its types.
#[derive(Clone)]
pub struct Described {
    /// Another text whenever `definitions` would give others: hashes are made of it, so that nothing needs
    /// to be written for them.
    pub version: String,
    /// The name of the type of its objects: to know it, no table needs to be made.
    pub type_name: String,
    /// The name of the type of its lists.
    pub list_type: String,
    /// The definitions by name, written when they are asked for.
    pub definitions: Arc<Definitions>,
}

/// Writes definitions: schemas by the names of their types.
pub type Definitions = dyn Fn(Dialect, &dyn Descriptions) -> Vec<(String, Value)> + Send + Sync;

impl fmt::Debug for Described {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Described");
        debug.field("version", &self.version).field("type_name", &self.type_name);
        debug.field("list_type", &self.list_type);
        debug.finish_non_exhaustive()
    }
}

/// The names of the types that a schema refers to.
pub(super) fn references(schema: &Value, names: &mut impl FnMut(&str)) {
    match schema {
        Value::Object(members) => {
            for (key, value) in members.iter() {
                match value {
                    Value::String(place) if key == "$ref" => {
                        names(place.rsplit('/').next().unwrap_or_default());
                    }
                    value => references(value, names),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, names)),
        _ => {}
    }
}

//! The observation seam: who is told of what this server has committed, after it is done.

use pintle_value::Value;

/// Who looks on while objects of a kind change, and has no part in it: what measures their use.
///
/// It sees what came through this server alone, each commit once, and neither dry runs nor attempts that failed.
pub trait Observer: Send + Sync {
    /// An object was changed from one state to another. It is called on the way of the answer, and must be short.
    fn updated(&self, old: &Value, new: &Value);
}

//! Observers of committed changes.

use pintle_value::Value;

/// Measures committed changes of a kind's objects without taking part in the write.
///
/// An observer sees each committed update of this server once. It sees no dry run and no failed
/// attempt.
pub trait Observer: Send + Sync {
    /// Called after an update was committed and before the response; it must be short.
    fn updated(&self, old: &Value, new: &Value);
}

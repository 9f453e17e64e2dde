//! Data of a server that is attached to a resource.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// One value on a [`Resource`](crate::Resource) that a user of the registry would otherwise look up
/// by the resource's name at each request. The first call sets its type.
#[derive(Default)]
pub struct Attached(OnceLock<Arc<dyn Any + Send + Sync>>);

impl Attached {
    /// Returns the attached value, after attaching a new one if there is none. If a value of
    /// another type is attached, returns a new value without attaching it.
    pub fn get_or_make<T: Any + Send + Sync>(&self, make: impl Fn() -> Arc<T>) -> Arc<T> {
        let attached = self.0.get_or_init(|| make());
        attached.clone().downcast().unwrap_or_else(|_| make())
    }
}

impl fmt::Debug for Attached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Attached").field(&self.0.get().is_some()).finish()
    }
}

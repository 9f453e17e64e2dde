//! A served resource: its definition, and its collection in the cache.

use bytes::Bytes;
use pintle_meta::Status;
use pintle_value::Value;

use crate::{Object, ResourceDefinition};

/// A served resource.
pub struct Resource {
    /// What it is.
    pub definition: ResourceDefinition,
}

impl Resource {
    /// The JSON of an object in this resource's version: the stored bytes themselves where this is the
    /// stored version.
    pub fn view(&self, object: &Object) -> Bytes {
        let _ = object;
        todo!()
    }

    /// The object as a tree in this resource's version.
    pub fn tree(&self, object: &Object) -> Result<Value, Status> {
        let _ = object;
        todo!()
    }
}

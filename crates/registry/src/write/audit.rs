//! Reports of a request's body to the audit log.

use bytes::Bytes;
use pintle_schema::{Schema, TypeId, encode};
use pintle_value::Value;

use super::Write;

impl Write<'_> {
    /// Reports an object of the resource, in the version that the client sent: with defaults, as
    /// upstream records it, and before admission.
    pub(super) fn audit_object(&self, sent: &Value) {
        let Some(recorder) = &self.context.recorder else { return };
        recorder.object(sent);
        if recorder.wants_objects() {
            let resource = &self.target.resource;
            let mut object = sent.clone();
            resource.strategy.coerce(&mut object);
            resource.set_defaults(&mut object);
            recorder.request_object(encoded(&object, &resource.schema, resource.ty));
        }
    }

    /// Reports an object of another type.
    pub(super) fn audit_object_as(&self, sent: &Value, schema: &Schema, ty: TypeId) {
        let Some(recorder) = &self.context.recorder else { return };
        recorder.object(sent);
        if recorder.wants_objects() {
            recorder.request_object(encoded(sent, schema, ty));
        }
    }
}

fn encoded(object: &Value, schema: &Schema, ty: TypeId) -> Bytes {
    let mut json = Vec::with_capacity(512);
    encode::write(schema, ty, object, &mut json);
    json.into()
}

//! What an audit log is told of a request's body.

use bytes::Bytes;
use pintle_schema::{Schema, TypeId, encode};
use pintle_value::Value;

use super::Write;

impl Write<'_> {
    /// Tells of an object of the resource, in the version that the client sent: with its defaults, as
    /// upstream records it, and before anybody changes it.
    pub(super) fn record(&self, sent: &Value) {
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

    /// Tells of an object of another type.
    pub(super) fn record_as(&self, sent: &Value, schema: &Schema, ty: TypeId) {
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

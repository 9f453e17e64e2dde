//! One object in the form that was negotiated.

use std::sync::Arc;

use bytes::Bytes;
use pintle_meta::Status;
use pintle_meta::status::Reason;
use pintle_registry::Resource;
use pintle_registry::table::{Printer, UnixSeconds};
use pintle_value::{Value, json};

use super::table;
use crate::negotiation::{Form, MetaVersion};
use crate::options::IncludeObject;

/// How the objects of one answer are written: by whom they are described, in which form, and when.
#[derive(Clone)]
pub(crate) struct Rendering {
    /// The objects' resource, in the version that was asked for.
    pub(crate) resource: Arc<Resource>,
    /// What makes rows of the objects: the resource's own printer, or that of a subresource's kind.
    pub(crate) printer: Arc<dyn Printer>,
    /// The form that was negotiated.
    pub(crate) form: Form,
    /// What rows of a Table show of their objects.
    pub(crate) include: IncludeObject,
    /// The time, for ages.
    pub(crate) now: UnixSeconds,
}

impl Rendering {
    /// A single object, given as JSON in the resource's version.
    pub(crate) fn document(&self, object: &Bytes) -> Result<Bytes, Status> {
        match self.form {
            Form::Object | Form::GroupDiscovery => Ok(object.clone()),
            Form::PartialObjectMetadataList(_) => self.refuse_list().map(|()| Bytes::new()),
            Form::Table(_) | Form::PartialObjectMetadata(_) => {
                let mut out = Vec::with_capacity(object.len() + 256);
                self.write(object, true, &mut out);
                Ok(out.into())
            }
        }
    }

    /// A single object that is not kept like this.
    pub(crate) fn value(&self, value: &Value, type_name: &str) -> Result<Bytes, Status> {
        let mut object = Vec::with_capacity(512);
        let ty = self.resource.schema.find(type_name);
        match ty {
            Some(ty) => {
                pintle_schema::encode::write(&self.resource.schema, ty, value, &mut object);
            }
            None => json::write(value, &mut object),
        }
        let object = Bytes::from(object);
        self.document(&object)
    }

    /// Writes one object as a document of its own: alone, or in a watch event. Tables have their
    /// columns only where `with_columns` says so.
    pub(crate) fn write(&self, object: &[u8], with_columns: bool, out: &mut Vec<u8>) {
        match self.form {
            Form::PartialObjectMetadata(version) => write_metadata(object, version, out),
            Form::Table(version) => table::write_single(self, object, version, with_columns, out),
            Form::Object | Form::GroupDiscovery | Form::PartialObjectMetadataList(_) => {
                out.extend_from_slice(object);
            }
        }
    }

    /// One object is not to be had as a list.
    pub(crate) fn refuse_list(&self) -> Result<(), Status> {
        if !matches!(self.form, Form::PartialObjectMetadataList(_)) {
            return Ok(());
        }
        let kind = &self.resource.kind;
        let message = format!(
            "you requested PartialObjectMetadataList, but the requested object is not a list ({kind})"
        );
        Err(Status::failure(Reason::NotAcceptable, message))
    }
}

/// Writes the metadata of an object, as a PartialObjectMetadata.
pub(super) fn write_metadata(object: &[u8], version: MetaVersion, out: &mut Vec<u8>) {
    let metadata = json::member(object, "metadata").and_then(|range| object.get(range));
    out.extend_from_slice(br#"{"kind":"PartialObjectMetadata","apiVersion":""#);
    out.extend_from_slice(version.api_version().as_bytes());
    out.extend_from_slice(br#"","metadata":"#);
    out.extend_from_slice(metadata.unwrap_or(b"{}"));
    out.push(b'}');
}

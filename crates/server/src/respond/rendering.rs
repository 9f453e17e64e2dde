//! Renders one object in the negotiated form.

use std::sync::Arc;

use bytes::Bytes;
use pintle_meta::Status;
use pintle_meta::status::Reason;
use pintle_registry::request::Encoding;
use pintle_registry::table::{Printer, UnixSeconds};
use pintle_registry::{Extra, Object, Resource};
use pintle_value::{Value, json};

use crate::negotiation::{Form, MetaVersion};
use crate::options::IncludeObject;

/// How the objects of a response are rendered.
#[derive(Clone)]
pub(crate) struct Rendering {
    /// The resource, in the requested version.
    pub(crate) resource: Arc<Resource>,
    /// The printer of the resource, or of a subresource's kind.
    pub(crate) printer: Arc<dyn Printer>,
    /// The form that was negotiated.
    pub(crate) form: Form,
    /// The part of its object that a Table row includes.
    pub(crate) include: IncludeObject,
    /// The time, for ages.
    pub(crate) now: UnixSeconds,
}

/// An object to be rendered.
pub(crate) struct Shown<'a> {
    /// Its JSON in the resource's version.
    pub(crate) json: &'a [u8],
    /// The stored object; `None` for an object that is not stored.
    pub(crate) stored: Option<&'a Arc<Object>>,
}

impl Rendering {
    /// The cached encoding of objects in this form, if there is one. All other encodings are made
    /// from JSON when they are sent.
    pub(crate) const fn cached(&self, encoding: Encoding) -> Option<Extra> {
        use Form::{Object, PartialObjectMetadata, PartialObjectMetadataList};
        match (encoding, self.form) {
            (Encoding::Protobuf, Object) => Some(Extra::Protobuf),
            (Encoding::Cbor, Object) => Some(Extra::Cbor),
            (Encoding::Yaml, Object) => Some(Extra::Yaml),
            (_, PartialObjectMetadata(version) | PartialObjectMetadataList(version)) => {
                match (encoding, version) {
                    (Encoding::Protobuf, MetaVersion::V1) => Some(Extra::ProtobufMetadata),
                    (Encoding::Cbor, MetaVersion::V1) => Some(Extra::CborMetadata),
                    (Encoding::Yaml, MetaVersion::V1) => Some(Extra::YamlMetadata),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// A stored object, as JSON.
    pub(crate) fn stored(&self, object: &Arc<Object>) -> Result<Bytes, Status> {
        let json = self.resource.json(object);
        if matches!(self.form, Form::Object) {
            return Ok(json);
        }
        self.shown(&Shown { json: &json, stored: Some(object) })
    }

    /// Encodes an object that is not stored, given as JSON in the resource's version.
    pub(crate) fn document(&self, json: &[u8]) -> Result<Bytes, Status> {
        self.shown(&Shown { json, stored: None })
    }

    fn shown(&self, shown: &Shown<'_>) -> Result<Bytes, Status> {
        self.refuse_list()?;
        let mut out = Vec::with_capacity(shown.json.len() + 256);
        self.write(shown, true, &mut out);
        Ok(out.into())
    }

    /// Encodes an object that is not stored.
    pub(crate) fn value(&self, value: &Value, type_name: &str) -> Result<Bytes, Status> {
        let mut object = Vec::with_capacity(512);
        let ty = self.resource.schema.find(type_name);
        match ty {
            Some(ty) => {
                pintle_schema::encode::write(&self.resource.schema, ty, value, &mut object);
            }
            None => json::write(value, &mut object),
        }
        self.document(&object)
    }

    /// Writes one object as a document: a response, or the object of a watch event. Tables have
    /// columns only with `with_columns`.
    pub(crate) fn write(&self, shown: &Shown<'_>, with_columns: bool, out: &mut Vec<u8>) {
        match self.form {
            Form::PartialObjectMetadata(version) => {
                write_metadata(&self.resource, shown.json, version, out)
            }
            Form::Table(version) => self.write_table(shown, version, with_columns, out),
            Form::Object | Form::GroupDiscovery | Form::PartialObjectMetadataList(_) => {
                out.extend_from_slice(shown.json);
            }
        }
    }

    /// Refuses the form PartialObjectMetadataList, which is for lists.
    pub(crate) fn refuse_list(&self) -> Result<(), Status> {
        if !matches!(self.form, Form::PartialObjectMetadataList(_)) {
            return Ok(());
        }
        let kind = self.resource.internal_type(false);
        let message = format!(
            "you requested PartialObjectMetadataList, but the requested object is not a list ({kind})"
        );
        Err(Status::failure(Reason::NotAcceptable, message))
    }
}

/// Writes an object as a PartialObjectMetadata.
pub(super) fn write_metadata(
    resource: &Resource,
    object: &[u8],
    version: MetaVersion,
    out: &mut Vec<u8>,
) {
    let metadata = resource.metadata(object);
    out.extend_from_slice(br#"{"kind":"PartialObjectMetadata","apiVersion":""#);
    out.extend_from_slice(version.api_version().as_bytes());
    out.extend_from_slice(br#"","metadata":"#);
    out.extend_from_slice(metadata.as_deref().unwrap_or(b"{}"));
    out.push(b'}');
}

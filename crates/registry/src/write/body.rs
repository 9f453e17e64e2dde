//! Reading a body: bytes against the schema, and what they must say about themselves.

use pintle_meta::Status;
use pintle_schema::decode::{self, Format};
use pintle_schema::{Schema, TypeId};
use pintle_value::{Str, Value};

use super::{Draft, Write};
use crate::request::{Body, Encoding, FieldValidation};

impl Write<'_> {
    /// Reads a body that holds an object of the resource.
    pub(crate) fn decode(&self, body: &Body) -> Result<Draft, Status> {
        let resource = &self.target.resource;
        let kind = (resource.kind.as_str(), resource.api_version());
        let mut draft = self.decode_as(body, &resource.schema, resource.ty, (kind.0, &kind.1))?;
        resource.stamp(&mut draft.tree);
        Ok(draft)
    }

    /// Reads a body that holds an object of some kind, given with its `apiVersion`.
    pub(super) fn decode_as(
        &self,
        body: &Body,
        schema: &Schema,
        ty: TypeId,
        (kind, api_version): (&str, &str),
    ) -> Result<Draft, Status> {
        let format = match body.encoding {
            Encoding::Json => Format::Json,
            Encoding::Yaml => Format::Yaml,
        };
        let version = api_version.rsplit('/').next().unwrap_or_default();
        let refuse = |why: &dyn std::fmt::Display| {
            Status::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
            ))
        };
        let decoded = decode::decode(schema, ty, &body.bytes, format).map_err(|e| refuse(&e))?;
        check_coordinates(&decoded.value, kind, api_version)?;
        let problems: Vec<String> = decoded.problems.iter().map(ToString::to_string).collect();
        let warnings = match self.options.field_validation {
            FieldValidation::Ignore => Vec::new(),
            FieldValidation::Warn => problems,
            FieldValidation::Strict if problems.is_empty() => problems,
            FieldValidation::Strict => {
                return Err(refuse(&format!("strict decoding error: {}", problems.join(", "))));
            }
        };
        Ok(Draft { tree: decoded.value, warnings })
    }
}

/// A body that names a kind must name the right one (PATH-15: it need not name any).
fn check_coordinates(tree: &Value, kind: &str, api_version: &str) -> Result<(), Status> {
    let said_version = tree.str_at(&["apiVersion"]).unwrap_or_default();
    let said_kind = tree.str_at(&["kind"]).unwrap_or_default();
    if !said_version.is_empty() && said_version != api_version {
        return Err(Status::bad_request(format!(
            "the API version in the data ({said_version}) does not match the expected API version \
             ({api_version})"
        )));
    }
    if !said_kind.is_empty() && said_kind != kind {
        let version = api_version.rsplit('/').next().unwrap_or_default();
        return Err(Status::bad_request(format!(
            "{said_kind} in version {version:?} cannot be handled as a {kind}: the kind in the data \
             does not match the expected kind"
        )));
    }
    Ok(())
}

impl Write<'_> {
    /// The namespace in the body must be the one in the URL, or none (META-32). A cluster-scoped object
    /// loses what it says of one.
    pub(super) fn place(&self, tree: &mut Value) -> Result<(), Status> {
        let wanted = &self.target.namespace;
        let said: Str = pintle_meta::object::namespace(tree).into();
        if !said.is_empty() && said != *wanted && self.target.resource.namespaced() {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the \
                 request",
            ));
        }
        pintle_meta::object::set_text(tree, "namespace", wanted.clone());
        Ok(())
    }

    /// The name in the body must be the one in the URL, or none (META-32).
    pub(super) fn check_name(&self, tree: &mut Value) -> Result<(), Status> {
        let wanted = &self.target.name;
        let said = pintle_meta::object::name(tree);
        if !said.is_empty() && said != *wanted {
            return Err(Status::bad_request(format!(
                "the name of the object ({said}) does not match the name on the URL ({wanted})"
            )));
        }
        let namespace = pintle_meta::object::namespace(tree);
        if !namespace.is_empty() && namespace != self.target.namespace {
            return Err(Status::bad_request(format!(
                "the namespace of the object ({namespace}) does not match the namespace on the \
                 request ({})",
                self.target.namespace
            )));
        }
        pintle_meta::object::set_text(tree, "name", wanted.clone());
        Ok(())
    }
}

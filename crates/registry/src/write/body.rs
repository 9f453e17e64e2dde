//! Reading a body: bytes against the schema, and what they must say about themselves.

use pintle_meta::{GroupKind, Status, field};
use pintle_schema::decode::{self, Decoded, Format};
use pintle_schema::{Error, Problem, Schema, TypeId, protobuf};
use pintle_value::{Path, Str, Value, cbor, json};

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
    pub(crate) fn decode_as(
        &self,
        body: &Body,
        schema: &Schema,
        ty: TypeId,
        (kind, api_version): (&str, &str),
    ) -> Result<Draft, Status> {
        self.decode_any(body, schema, ty, (kind, &[api_version]))
    }

    /// Likewise, where an object of the kind is the same in several versions; the first is the usual.
    pub(super) fn decode_any(
        &self,
        body: &Body,
        schema: &Schema,
        ty: TypeId,
        (kind, api_versions): (&str, &[&str]),
    ) -> Result<Draft, Status> {
        let api_version = api_versions.first().copied().unwrap_or_default();
        let version = api_version.rsplit('/').next().unwrap_or_default();
        let refuse = |why: &dyn std::fmt::Display| {
            Status::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
            ))
        };
        let decoded = read(body, schema, ty).map_err(|e| refuse(&e))?;
        let said = decoded.value.str_at(&["apiVersion"]).unwrap_or_default();
        let said = api_versions.iter().find(|version| **version == said).unwrap_or(&api_version);
        self.check_coordinates(&decoded.value, kind, said)?;
        let problems = decoded.problems;
        let warnings = match self.options.field_validation {
            FieldValidation::Ignore => Vec::new(),
            FieldValidation::Strict if !problems.is_empty() => {
                return Err(refuse(&Problem::strict(&problems)));
            }
            FieldValidation::Warn | FieldValidation::Strict => {
                problems.iter().map(ToString::to_string).collect()
            }
        };
        Ok(Draft { tree: decoded.value, warnings, tracked: false })
    }
}

fn read(body: &Body, schema: &Schema, ty: TypeId) -> Result<Decoded, Error> {
    match body.encoding {
        Encoding::Json => decode::decode(schema, ty, &body.bytes, Format::Json),
        Encoding::Yaml => decode::decode(schema, ty, &body.bytes, Format::Yaml),
        Encoding::Cbor => {
            let mut value = cbor::parse(&body.bytes)?;
            let problems = decode::conform(schema, ty, &mut value)?;
            Ok(Decoded { value, problems })
        }
        // Field validation is for text: what a message has no field for is dropped without a word.
        Encoding::Protobuf => {
            let value = protobuf::decode(schema, ty, &body.bytes)?;
            Ok(Decoded { value, problems: Vec::new() })
        }
    }
}

impl Write<'_> {
    /// A body that names a kind must name the right one (PATH-15: it need not name any).
    fn check_coordinates(&self, tree: &Value, kind: &str, api_version: &str) -> Result<(), Status> {
        let resource = &self.target.resource;
        if resource.typed_items && resource.kind == kind {
            return check_typed(tree, kind, api_version, &resource.resource.group);
        }
        let said = |member| tree.str_at(&[member]).filter(|said| !said.is_empty());
        let said_version = said("apiVersion").unwrap_or(api_version);
        let said_kind = said("kind").unwrap_or(kind);
        if said_version == api_version && said_kind == kind {
            return Ok(());
        }
        let version = said_version.rsplit('/').next().unwrap_or_default();
        let refuse = |why: &str| {
            let head = format!("{said_kind} in version {version:?} cannot be handled as a {kind}");
            Err(Status::bad_request(format!("{head}: {why}")))
        };
        let (_, served) = self.registry.resources();
        if !served.iter().any(|r| r.kind == said_kind && r.api_version() == said_version) {
            return refuse(&format!(
                "no kind {said_kind:?} is registered for version {said_version:?} in scheme \
                 \"k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30\""
            ));
        }
        if said_version != api_version {
            return Err(Status::bad_request(format!(
                "the API version in the data ({said_version}) does not match the expected API \
                 version ({api_version})"
            )));
        }
        refuse("the kind in the data does not match the expected kind")
    }

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

    /// The name in the body must be the one in the URL (META-32).
    pub(super) fn check_name(&self, tree: &Value) -> Result<(), Status> {
        let wanted = &self.target.name;
        let said = pintle_meta::object::name(tree);
        if said.is_empty() {
            return Err(Status::bad_request(format!(
                "the name of the object ({wanted} based on URL) was undeterminable: name must be \
                 provided"
            )));
        }
        if said != *wanted {
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
        Ok(())
    }
}

/// An object that no Go type stands for must say what it is, and one of another kind is read and found
/// invalid (upstream: `UnstructuredJSONScheme`, `ValidateTypeMeta`).
fn check_typed(tree: &Value, kind: &str, api_version: &str, group: &str) -> Result<(), Status> {
    let version = api_version.rsplit('/').next().unwrap_or_default();
    let said = |member| tree.str_at(&[member]).unwrap_or_default();
    if said("kind").is_empty() {
        let body = json::to_string(tree);
        return Err(Status::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: Object 'Kind' is missing in \
             '{body}'"
        )));
    }
    let said_version = said("apiVersion");
    if !said_version.is_empty() && said_version != api_version {
        return Err(Status::bad_request(format!(
            "the API version in the data ({said_version}) does not match the expected API version \
             ({api_version})"
        )));
    }
    if said("kind") == kind {
        return Ok(());
    }
    let words = format!("must be {kind}");
    let error = field::Error::invalid(&Path::new("kind"), &said("kind").into(), words);
    let named = GroupKind::new(Str::from(group), said("kind"));
    Err(Status::invalid(&named, pintle_meta::object::name(tree), &[error]))
}

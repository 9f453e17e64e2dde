//! Decoding of a body against the schema.
//!
//! [`super::coordinates`] checks the kind, version, name and namespace in it.

use std::time::Instant;

use pintle_meta::Status;
use pintle_schema::decode::{self, Decoded, Format};
use pintle_schema::{Error, Problem, Schema, TypeId, protobuf};
use pintle_trace::Layer;
use pintle_value::{Value, cbor, json, yaml};

use super::coordinates::{META_KINDS, unrecognized};
use super::{Draft, Write};
use crate::request::{Body, Encoding};

impl Write<'_> {
    /// Decodes a body with an object of the resource.
    pub(crate) fn decode(&self, body: &Body) -> Result<Draft, Status> {
        let resource = &self.target.resource;
        let kind = (resource.kind.as_str(), resource.api_version());
        let mut draft = self.decode_as(body, &resource.schema, resource.ty, (kind.0, &kind.1))?;
        // A custom resource with another kind in its body fails later, in validation.
        if draft.tree.str_at(&["kind"]).is_none_or(|own| !resource.typed_items || own == kind.0) {
            resource.stamp(&mut draft.tree);
        }
        Ok(draft)
    }

    /// Decodes a body with an object of the kind `kind` and `apiVersion` `api_version`.
    pub(crate) fn decode_as(
        &self,
        body: &Body,
        schema: &Schema,
        ty: TypeId,
        (kind, api_version): (&str, &str),
    ) -> Result<Draft, Status> {
        self.decode_any(body, schema, ty, (kind, &[api_version]))
    }

    /// As [`Self::decode_as`], for a kind that has the same fields in several versions; the first
    /// is the default.
    pub(super) fn decode_any(
        &self,
        body: &Body,
        schema: &Schema,
        ty: TypeId,
        (kind, api_versions): (&str, &[&str]),
    ) -> Result<Draft, Status> {
        let resource = &self.target.resource;
        let api_version = api_versions.first().copied().unwrap_or_default();
        let version = api_version.rsplit('/').next().unwrap_or_default();
        let refuse = |why: &dyn std::fmt::Display| {
            Status::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
            ))
        };
        let began = Instant::now();
        let decoded = read(body, schema, ty);
        self.context.timing.spent(Layer::Decoding, began);
        let decoded = decoded.map_err(|error| match without_kind(body, &error) {
            Some(why) => unrecognized(kind, &why, &body.bytes),
            None => match self.check_kind(body, kind, api_version) {
                Err(other) => other,
                Ok(()) => refuse(&error),
            },
        })?;
        let version = decoded.value.str_at(&["apiVersion"]).unwrap_or_default();
        let version = api_versions.iter().find(|known| **known == version).unwrap_or(&api_version);
        let coordinates = self.check_coordinates(&decoded.value, kind, version);
        let problems = match (&coordinates, resource.typed_items && resource.kind == kind) {
            (_, true) => self.reported_problems(&decoded),
            (Err(_), false) => Vec::new(),
            (Ok(()), false) => decoded.problems,
        };
        let strict = || refuse(&Problem::strict(&problems));
        self.report_field_problems(problems.iter().map(ToString::to_string), strict)?;
        coordinates?;
        Ok(Draft { tree: decoded.value, tracked: false, is_body: true })
    }
}

impl Write<'_> {
    /// Checks the kind in a body that cannot be decoded, if it is one of [`META_KINDS`]: the wrong
    /// kind may be the cause.
    fn check_kind(&self, body: &Body, kind: &str, api_version: &str) -> Result<(), Status> {
        let tree = match body.encoding {
            Encoding::Json => json::parse(&body.bytes),
            Encoding::Yaml => yaml::parse(&body.bytes),
            Encoding::Cbor | Encoding::Protobuf => return Ok(()),
        };
        let is_meta_kind =
            |tree: &Value| tree.str_at(&["kind"]).is_some_and(|kind| META_KINDS.contains(&kind));
        match tree {
            Ok(tree) if is_meta_kind(&tree) => self.check_coordinates(&tree, kind, api_version),
            _ => Ok(()),
        }
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
        // Field validation covers text encodings only: unknown fields of a Protobuf message are
        // dropped.
        Encoding::Protobuf => {
            let value = protobuf::decode(schema, ty, &body.bytes)?;
            Ok(Decoded { value, problems: Vec::new() })
        }
    }
}

/// Returns the error of a body whose kind or version cannot be determined: the body is invalid text
/// or no object, or its `kind` or `apiVersion` is not a string. Upstream determines both before it
/// decodes the rest.
fn without_kind(body: &Body, error: &Error) -> Option<String> {
    const TOP: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
                       Kind string \"json:\\\"kind,omitempty\\\"\" }";
    let why = match (body.encoding, error) {
        (Encoding::Yaml, Error::Syntax(error)) => {
            // Upstream's body decoder omits this prefix.
            let why = error.to_string();
            let bare = why.strip_prefix("error converting YAML to JSON: ");
            return Some(bare.filter(|why| why.starts_with("yaml: ")).unwrap_or(&why).to_owned());
        }
        (Encoding::Cbor, Error::Syntax(error)) => {
            return Some(format!("unable to determine group/version/kind: {error}"));
        }
        (Encoding::Json, Error::Syntax(error)) => error.to_string(),
        (Encoding::Json | Encoding::Yaml, Error::Type { found, path, .. }) => {
            let member = path.strip_prefix("struct field ").and_then(|p| p.split_once('.'));
            match member {
                Some((_, member @ ("apiVersion" | "kind"))) => format!(
                    "json: cannot unmarshal {found} into Go struct field .{member} of type string"
                ),
                None if path == "value" => {
                    format!("json: cannot unmarshal {found} into Go value of type {TOP}")
                }
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(format!("couldn't get version/kind; json parse error: {why}"))
}

//! Path and query parameters.

use super::Parameter;
use crate::openapi::Resource;
use crate::table::{Scalar, Schema, Shape};

pub(super) const LIST_OPTIONS: &[(&str, &str)] = &[
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("shardSelector", "string"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];
pub(super) const DELETE_OPTIONS: &[(&str, &str)] = &[
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];
pub(super) const WRITE_OPTIONS: &[(&str, &str)] =
    &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];

/// The path parameters of a resource; with `kind`, the name of an object of that kind is one of
/// them.
pub(super) fn path_parameters(r: &Resource, kind: Option<&str>) -> Vec<Parameter> {
    let mut parameters = Vec::new();
    if let Some(kind) = kind {
        parameters.push(in_path("name", &format!("name of the {kind}")));
    }
    if r.namespaced {
        let description = "object name and auth scope, such as for teams and projects";
        parameters.push(in_path("namespace", description));
    }
    parameters
}

/// A path parameter.
pub(super) fn in_path(name: &str, description: &str) -> Parameter {
    Parameter { in_path: true, description: description.to_owned(), ..query(name, "string", "") }
}

/// A query parameter.
pub(super) fn query(name: &str, kind: &'static str, documented_in: &'static str) -> Parameter {
    Parameter {
        name: name.to_owned(),
        in_path: false,
        kind,
        documented_in,
        description: String::new(),
    }
}

/// Query parameters that an options type of the apimachinery package documents.
pub(super) fn queries(
    options: &[(&str, &'static str)],
    documented_in: &'static str,
) -> Vec<Parameter> {
    options.iter().map(|(name, kind)| query(name, kind, documented_in)).collect()
}

/// The query parameters of an options type of the core group: its members that are booleans,
/// integers, strings, or lists of these.
pub(super) fn options(schema: &Schema, kind: &str) -> Vec<Parameter> {
    let id = schema.find(&format!("io.k8s.api.core.v1.{kind}"));
    let Some(Shape::Struct { fields, .. }) = id.map(|id| &schema.get(id).shape) else {
        return Vec::new();
    };
    let parameters = fields.iter().filter(|f| f.tag != 0).filter_map(|f| {
        let ty = match &schema.get(f.ty).shape {
            Shape::List { item, .. } => &schema.get(*item).shape,
            shape => shape,
        };
        let kind = match ty {
            Shape::Scalar(Scalar::Bool) => "boolean",
            Shape::Scalar(Scalar::Int32 | Scalar::Int64) => "integer",
            Shape::Scalar(Scalar::String) => "string",
            _ => return None,
        };
        Some(query(&f.name, kind, ""))
    });
    let mut parameters: Vec<Parameter> = parameters.collect();
    parameters.sort_by(|a, b| a.name.cmp(&b.name));
    parameters
}

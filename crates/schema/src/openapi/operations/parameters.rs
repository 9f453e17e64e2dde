//! Parameters in paths and queries.

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

/// The parameters in the paths of a resource: with a name, if they are of one object, of that kind.
pub(super) fn path_parameters(r: &Resource, kind: Option<&str>) -> Vec<Parameter> {
    let mut parameters = Vec::new();
    if let Some(kind) = kind {
        parameters.push(in_path("name", &format!("name of the {kind}")));
    }
    if r.namespaced {
        let says = "object name and auth scope, such as for teams and projects";
        parameters.push(in_path("namespace", says));
    }
    parameters
}

/// A parameter in the path.
pub(super) fn in_path(name: &str, says: &str) -> Parameter {
    Parameter { in_path: true, says: says.to_owned(), ..query(name, "string", "") }
}

/// A parameter in the query.
pub(super) fn query(name: &str, kind: &'static str, documented_in: &'static str) -> Parameter {
    Parameter { name: name.to_owned(), in_path: false, kind, documented_in, says: String::new() }
}

/// Parameters in the query that an options type of the metadata package documents.
pub(super) fn queries(
    options: &[(&str, &'static str)],
    documented_in: &'static str,
) -> Vec<Parameter> {
    options.iter().map(|(name, kind)| query(name, kind, documented_in)).collect()
}

/// The query parameters of an options type of the core group: its scalar members.
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

//! OpenAPI 3.0: a document for each group version, one for each page, and their index.

use std::collections::BTreeSet;

use super::json::Json;
use super::operations::{Operation, Parameter, PathItem, paths};
use super::schemas::{Schemas, gvk};
use super::{Dialect, GroupVersion, Page, Source};

/// The document of a group version.
pub fn v3_document(source: Source<'_>, group_version: &GroupVersion) -> Vec<u8> {
    let schemas = Schemas::new(source, Dialect::V3)
        .with(&group_version.resources)
        .of_version(&group_version.group, &group_version.version);
    document(&schemas, &paths(source.schema, group_version), source)
}

/// The document of a page.
pub fn v3_page(source: Source<'_>, page: Page<'_>) -> Vec<u8> {
    let schemas = Schemas::new(source, Dialect::V3);
    document(&schemas, &[super::operations::page(page)], source)
}

/// The index: the path of each document (`apis/apps/v1`) and a hash of its content.
pub fn v3_index<'a>(documents: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    Json::document(|json| {
        json.key("paths").object(|json| {
            for (path, hash) in documents {
                json.key(path).object(|json| {
                    json.key("serverRelativeURL").text(&format!("/openapi/v3/{path}?hash={hash}"));
                });
            }
        });
    })
}

/// The path of a group version in the index: `api/v1`, `apis/apps/v1`.
pub fn v3_path(group: &str, version: &str) -> String {
    super::operations::base(group, version).split_off(1)
}

fn document(schemas: &Schemas<'_>, paths: &[PathItem], source: Source<'_>) -> Vec<u8> {
    let named: BTreeSet<&str> =
        paths.iter().flat_map(|p| &p.operations).flat_map(Operation::types).collect();
    let writer = Writer { schemas, source };
    Json::document(|json| {
        json.key("openapi").text("3.0.0");
        json.key("info").object(|json| super::info(json, source.version));
        json.key("paths").object(|json| {
            for item in paths {
                json.key(&item.path).object(|json| writer.path(json, item));
            }
        });
        json.key("components").object(|json| {
            let types = schemas.closure(&named);
            if !types.is_empty() {
                json.key("schemas").object(|json| schemas.definitions(json, &types, |_| ()));
            }
            json.key("securitySchemes").object(|json| {
                json.key("BearerToken").object(super::bearer_token);
            });
        });
    })
}

struct Writer<'a> {
    schemas: &'a Schemas<'a>,
    source: Source<'a>,
}

impl Writer<'_> {
    fn path(&self, json: &mut Json, item: &PathItem) {
        for operation in &item.operations {
            json.key(operation.method).object(|json| self.operation(json, operation));
        }
        self.parameters(json, &item.parameters);
    }

    fn operation(&self, json: &mut Json, o: &Operation) {
        json.key("description").text(&o.description);
        json.key("operationId").text(&o.id);
        self.parameters(json, &o.parameters);
        if let Some(body) = &o.body {
            json.key("requestBody").object(|json| {
                self.content(json, o.consumes, &body.type_name);
                if body.required {
                    json.key("required").raw("true");
                }
            });
        }
        json.key("responses").object(|json| {
            for code in o.codes {
                json.key(code).object(|json| {
                    json.key("description").text(super::reason(code));
                    if *code != "401" {
                        self.content(json, o.produces, &o.answer);
                    }
                });
            }
        });
        json.key("tags").texts([&o.tag]);
        if let Some((group, version, kind)) = &o.gvk {
            json.key("x-kubernetes-action").text(o.action);
            json.key("x-kubernetes-group-version-kind")
                .object(|json| gvk(json, group, version, kind));
        }
    }

    fn content(&self, json: &mut Json, media_types: &[&'static str], type_name: &str) {
        json.key("content").object(|json| {
            for media_type in self.source.media_types(media_types) {
                json.key(media_type).object(|json| {
                    json.key("schema").object(|json| match type_name {
                        "" => json.key("type").text("string"),
                        name => self.schemas.reference(json, name),
                    });
                });
            }
        });
    }

    fn parameters(&self, json: &mut Json, parameters: &[Parameter]) {
        if parameters.is_empty() {
            return;
        }
        json.key("parameters").list(parameters, |json, p| {
            json.object(|json| {
                super::parameter(json, p, self.source.descriptions);
                json.key("schema").object(|json| {
                    json.key("type").text(p.kind);
                    json.key("uniqueItems").raw("true");
                });
            });
        });
    }
}

//! OpenAPI 2.0 (Swagger): one document for all group versions.

use std::collections::{BTreeMap, BTreeSet};

use pintle_value::Value;

use super::excerpt::{Addition, Excerpt};
use super::json::Json;
use super::operations::{Operation, Parameter, PathItem, page, paths};
use super::schemas::{Schemas, gvk};
use super::{Dialect, GroupVersion, Source};

/// Writes the document of all group versions, with excerpts of other servers' documents.
pub fn v2_document<'a>(
    source: Source<'_>,
    group_versions: &[GroupVersion],
    excerpts: impl IntoIterator<Item = &'a Excerpt>,
    sink: &mut dyn FnMut(&[u8]),
) {
    let items = items(source, group_versions);
    let named: BTreeSet<&str> =
        items.iter().flat_map(|p| &p.operations).flat_map(Operation::types).collect();
    let schemas =
        Schemas::new(source, Dialect::V2).with(group_versions.iter().flat_map(|gv| &gv.resources));
    // Parameters that many operations share are written once, and the others in each operation.
    let shared: BTreeMap<(&str, &str), &Parameter> = items
        .iter()
        .flat_map(|p| p.parameters.iter().chain(p.operations.iter().flat_map(|o| &o.parameters)))
        .filter(|p| is_shared(p))
        .map(|p| ((p.name.as_str(), p.documented_in), p))
        .collect();
    let writer = Writer { schemas: &schemas, source };
    let names = schemas.closure(&named);
    let addition = Addition::of(excerpts, |pointer| {
        let (_, name) = pointer.split_once('/')?;
        let own = Json::document(|json| {
            match names.get(name).filter(|_| pointer.starts_with("definitions/")) {
                Some(name) => schemas.definitions(json, &BTreeSet::from([*name]), |_| {}),
                None => shared
                    .iter()
                    .filter(|((own, options), _)| shared_name(own, options) == name)
                    .for_each(|(_, p)| shared_parameter(json, p, source)),
            }
        });
        pintle_value::json::parse(&own).ok()?.get(name).cloned()
    });
    let rest = Json::document(|json| {
        json.key("swagger").text("2.0");
        json.key("info").object(|json| super::info(json, source.version));
        json.key("paths").object(|json| {
            for item in &items {
                json.key(&item.path).object(|json| writer.path(json, item));
                json.drain(sink);
            }
            let own: BTreeSet<&str> = items.iter().map(|item| item.path.as_str()).collect();
            let further = addition.paths.iter().filter(|(path, _)| !own.contains(path.as_str()));
            for (path, item) in further {
                json.key(path).raw(&pintle_value::json::to_string(item));
            }
        });
        json.key("definitions").object(|json| {
            schemas.definitions(json, &names, |json| json.drain(sink));
            add(json, addition.parts("definitions"));
        });
        json.key("parameters").object(|json| {
            shared.values().for_each(|p| shared_parameter(json, p, source));
            add(json, addition.parts("parameters"));
        });
        json.key("securityDefinitions").object(|json| {
            json.key("BearerToken").object(super::bearer_token);
        });
        json.key("security").raw(r#"[{"BearerToken":[]}]"#);
    });
    sink(&rest);
}

fn items(source: Source<'_>, group_versions: &[GroupVersion]) -> Vec<PathItem> {
    let schema = source.schema;
    let pages = super::pages(group_versions, source.open_id);
    let mut items: Vec<PathItem> = pages.map(page).collect();
    items.extend(group_versions.iter().flat_map(|gv| paths(schema, gv)));
    items.sort_by(|a, b| a.path.cmp(&b.path));
    items
}

/// Parameters that each operation has in full: kubectl before v1.27 looks for them and does not
/// follow references (upstream: `kube-openapi/pkg/builder/parameters.go`).
const INLINE: [&str; 2] = ["dryRun", "fieldValidation"];

/// Whether operations refer to the parameter. The parameters of paths, and those that differ
/// between operations (`body`), are in full, too.
fn is_shared(p: &Parameter) -> bool {
    !p.documented_in.is_empty() && !INLINE.contains(&p.name.as_str())
}

fn shared_parameter(json: &mut Json, p: &Parameter, source: Source<'_>) {
    json.key(&shared_name(&p.name, p.documented_in)).object(|json| {
        super::parameter(json, p, source.descriptions);
        plain(json, p);
    });
}

fn add<'a>(json: &mut Json, parts: impl Iterator<Item = (&'a str, &'a Value)>) {
    for (name, part) in parts {
        json.key(name).raw(&pintle_value::json::to_string(part));
    }
}

fn shared_name(name: &str, options: &str) -> String {
    format!("{name}-{options}")
}

fn plain(json: &mut Json, p: &Parameter) {
    json.key("type").text(p.kind);
    json.key("uniqueItems").raw("true");
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
        if !item.parameters.is_empty() {
            json.key("parameters").list(&item.parameters, |json, p| self.parameter(json, p));
        }
    }

    fn operation(&self, json: &mut Json, o: &Operation) {
        if !o.consumes.is_empty() {
            json.key("consumes").texts(self.source.media_types(o.consumes));
        }
        json.key("description").text(&o.description);
        json.key("operationId").text(&o.id);
        if o.body.is_some() || !o.parameters.is_empty() {
            // In OpenAPI v2, the body is a parameter.
            let body = o.body.iter().map(|_| None);
            let all = body.chain(o.parameters.iter().map(Some));
            json.key("parameters").list(all, |json, p| match p {
                Some(p) => self.parameter(json, p),
                None => json.object(|json| self.body(json, o)),
            });
        }
        json.key("produces").texts(self.source.media_types(o.produces));
        json.key("responses").object(|json| {
            for code in o.codes {
                json.key(code).object(|json| {
                    json.key("description").text(super::reason(code));
                    if *code != "401" {
                        json.key("schema").object(|json| match o.answer.as_str() {
                            "" => json.key("type").text("string"),
                            name => self.schemas.reference(json, name),
                        });
                    }
                });
            }
        });
        json.key("schemes").raw(r#"["https"]"#);
        json.key("tags").texts([&o.tag]);
        if let Some((group, version, kind)) = &o.gvk {
            json.key("x-kubernetes-action").text(o.action);
            json.key("x-kubernetes-group-version-kind")
                .object(|json| gvk(json, group, version, kind));
        }
    }

    fn body(&self, json: &mut Json, o: &Operation) {
        let Some(body) = &o.body else { return };
        json.key("in").text("body");
        json.key("name").text("body");
        if body.required {
            json.key("required").raw("true");
        }
        json.key("schema").object(|json| self.schemas.reference(json, &body.type_name));
    }

    fn parameter(&self, json: &mut Json, p: &Parameter) {
        json.object(|json| {
            if is_shared(p) {
                let name = shared_name(&p.name, p.documented_in);
                json.key("$ref").text(&format!("#/parameters/{name}"));
            } else if p.documented_in.is_empty() {
                super::parameter(json, p, &super::NoDescriptions);
                plain(json, p);
            } else {
                super::parameter(json, p, self.source.descriptions);
                plain(json, p);
            }
        });
    }
}

//! The requests that resources take: paths, methods, parameters, bodies and answers, in the form that
//! both versions of OpenAPI are written from. Upstream: apiserver's endpoints installer.

use super::{GroupVersion, Page, Resource, Subresource};
use crate::table::{Scalar, Schema, Shape};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// A path and what can be asked of it.
#[derive(Debug)]
pub(crate) struct PathItem {
    pub(crate) path: String,
    /// What every operation of the path takes.
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) operations: Vec<Operation>,
}

/// A request.
#[derive(Debug)]
pub(crate) struct Operation {
    /// The HTTP method in lower case.
    pub(crate) method: &'static str,
    /// `x-kubernetes-action`; empty for discovery.
    pub(crate) action: &'static str,
    pub(crate) id: String,
    pub(crate) tag: String,
    /// Group, version and kind; `None` for discovery.
    pub(crate) gvk: Option<(String, String, String)>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Option<Body>,
    /// The type of what is answered; empty for text.
    pub(crate) answer: String,
    pub(crate) codes: &'static [&'static str],
    pub(crate) produces: &'static [&'static str],
    pub(crate) consumes: &'static [&'static str],
}

impl Operation {
    /// The types that it names.
    pub(crate) fn types(&self) -> impl Iterator<Item = &str> {
        let body = self.body.as_ref().map(|b| b.type_name.as_str());
        body.into_iter().chain([self.answer.as_str()]).filter(|t| !t.is_empty())
    }
}

/// The body of a request.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) type_name: String,
    pub(crate) required: bool,
}

/// A parameter in the path or the query.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) in_path: bool,
    /// The type in OpenAPI's words.
    pub(crate) kind: &'static str,
    /// The options type that documents it; empty for names in paths.
    pub(crate) documented_in: &'static str,
}

const OBJECTS: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/cbor",
];
const LISTS: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/cbor",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
    "application/cbor-seq",
];
const TEXTS: &[&str] = &[
    "text/plain",
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/cbor",
];
const DISCOVERY: &[&str] =
    &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const PATCHES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/apply-patch+cbor",
];
const ANY: &[&str] = &["*/*"];

const LIST_OPTIONS: &[(&str, &str)] = &[
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
const DELETE_OPTIONS: &[(&str, &str)] = &[
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];
const WRITE_OPTIONS: &[(&str, &str)] =
    &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];

/// What stands in an operation's id and path for where a resource is looked at.
struct Place<'a> {
    /// `CoreV1`
    api: String,
    /// `core_v1`
    tag: String,
    /// `/api/v1`
    base: String,
    gv: &'a GroupVersion,
    schema: &'a Schema,
}

/// The paths of a group and version, its discovery path first.
pub(crate) fn paths(schema: &Schema, gv: &GroupVersion) -> Vec<PathItem> {
    let base = base(&gv.group, &gv.version);
    let group = if gv.group.is_empty() { "core" } else { &gv.group };
    let group = group.strip_suffix(".k8s.io").unwrap_or(group);
    let api = format!("{}{}", words(group, true), words(&gv.version, true));
    let tag = format!("{}_{}", words(group, false), words(&gv.version, false));
    let place = Place { api, tag, base, gv, schema };
    let id = format!("get{}APIResources", place.api);
    let discovery = format!("{}/", place.base);
    let mut paths = vec![discovery_path(discovery, id, place.tag.clone(), "APIResourceList")];
    for resource in &gv.resources {
        place.resource(resource, &mut paths);
    }
    paths.sort_by(|a, b| a.path.cmp(&b.path));
    paths
}

/// The path of a page.
pub(crate) fn page(page: Page<'_>) -> PathItem {
    let (id, tag, answer) = match page {
        Page::Core => ("getCoreAPIVersions".to_owned(), "core".to_owned(), "APIVersions"),
        Page::Groups => ("getAPIVersions".to_owned(), "apis".to_owned(), "APIGroupList"),
        Page::Group(group) => {
            let short = group.strip_suffix(".k8s.io").unwrap_or(group);
            (format!("get{}APIGroup", words(short, true)), words(short, false), "APIGroup")
        }
        Page::Version => ("getCodeVersion".to_owned(), "version".to_owned(), ""),
    };
    let mut item = discovery_path(format!("/{}/", page.path()), id, tag, answer);
    if page == Page::Version {
        for operation in &mut item.operations {
            operation.answer = "io.k8s.apimachinery.pkg.version.Info".to_owned();
            operation.produces = &["application/json"];
            operation.consumes = &["application/json"];
        }
    }
    item
}

/// `/api/v1`, `/apis/apps/v1`.
pub(crate) fn base(group: &str, version: &str) -> String {
    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
}

fn discovery_path(path: String, id: String, tag: String, answer: &str) -> PathItem {
    let operation = Operation {
        method: "get",
        action: "",
        id,
        tag,
        gvk: None,
        parameters: Vec::new(),
        body: None,
        answer: format!("{META}.{answer}"),
        codes: &["200", "401"],
        produces: DISCOVERY,
        consumes: DISCOVERY,
    };
    PathItem { path, parameters: Vec::new(), operations: vec![operation] }
}

impl Place<'_> {
    fn resource(&self, r: &Resource, out: &mut Vec<PathItem>) {
        let has = |verb: &str| r.verbs.contains(&verb);
        let plural = &r.plural;
        let collection = match r.namespaced {
            true => format!("{}/namespaces/{{namespace}}/{plural}", self.base),
            false => format!("{}/{plural}", self.base),
        };
        let scope = if r.namespaced { "Namespaced" } else { "" };
        let (kind, list) = (&r.kind, format!("{}List", r.type_name));

        let mut operations = Vec::new();
        if has("list") {
            operations.push(self.list(r, format!("list{}{scope}{kind}", self.api), &list));
        }
        if has("create") {
            let id = format!("create{}{scope}{kind}", self.api);
            operations.push(self.write(r, "post", id, &r.type_name));
        }
        if has("deletecollection") {
            operations.push(self.delete_collection(r, scope));
        }
        self.push(out, collection.clone(), path_parameters(r, false), operations);

        let mut operations = Vec::new();
        self.object_operations(
            r,
            scope,
            "",
            &r.verbs,
            &r.type_name,
            &self.own_gvk(r),
            &mut operations,
        );
        if has("delete") {
            operations.push(self.delete(r, scope));
        }
        self.push(out, format!("{collection}/{{name}}"), path_parameters(r, true), operations);

        if r.namespaced && has("list") {
            let id = format!("list{}{kind}ForAllNamespaces", self.api);
            let mut list = self.list(r, id, &list);
            let parameters = std::mem::take(&mut list.parameters);
            self.push(out, format!("{}/{plural}", self.base), parameters, vec![list]);
        }
        if has("watch") {
            self.watches(r, scope, out);
        }
        for sub in &r.subresources {
            self.subresource(r, sub, scope, &format!("{collection}/{{name}}/{}", sub.name), out);
        }
    }

    fn push(
        &self,
        out: &mut Vec<PathItem>,
        path: String,
        mut parameters: Vec<Parameter>,
        operations: Vec<Operation>,
    ) {
        if operations.is_empty() {
            return;
        }
        if operations.iter().any(|o| o.action != "connect") {
            parameters.push(query("pretty", "string", ""));
        }
        out.push(PathItem { path, parameters, operations });
    }

    /// The deprecated paths under `/watch/`.
    fn watches(&self, r: &Resource, scope: &str, out: &mut Vec<PathItem>) {
        let (plural, kind) = (&r.plural, &r.kind);
        let watch = format!("{}/watch", self.base);
        let collection = match r.namespaced {
            true => format!("{watch}/namespaces/{{namespace}}/{plural}"),
            false => format!("{watch}/{plural}"),
        };
        let mut one = |path: String, id: String, action: &'static str, names: Vec<Parameter>| {
            let gvk = self.own_gvk(r);
            let mut operation =
                self.operation("get", action, id, gvk, &format!("{META}.WatchEvent"));
            operation.produces = LISTS;
            let mut parameters = names;
            parameters.extend(queries(LIST_OPTIONS, "ListOptions"));
            self.push(out, path, parameters, vec![operation]);
        };
        let id = format!("watch{}{scope}{kind}", self.api);
        one(format!("{collection}/{{name}}"), id, "watch", path_parameters(r, true));
        let id = format!("watch{}{scope}{kind}List", self.api);
        one(collection, id, "watchlist", path_parameters(r, false));
        if r.namespaced {
            let id = format!("watch{}{kind}ListForAllNamespaces", self.api);
            one(format!("{watch}/{plural}"), id, "watchlist", Vec::new());
        }
    }

    fn subresource(
        &self,
        r: &Resource,
        sub: &Subresource,
        scope: &str,
        path: &str,
        out: &mut Vec<PathItem>,
    ) {
        if sub.kind.ends_with("Options") {
            return self.connection(r, sub, scope, path, out);
        }
        let gvk = (sub.group.clone(), sub.version.clone(), sub.kind.clone());
        let type_name = self.type_of(r, sub);
        let suffix = title(&sub.name);
        let mut operations = Vec::new();
        if sub.name == "log" {
            let id = format!("read{}{scope}{}Log", self.api, r.kind);
            let mut read = self.operation("get", "get", id, gvk, "");
            read.produces = TEXTS;
            read.parameters = self.options("PodLogOptions");
            operations.push(read);
        } else {
            self.object_operations(
                r,
                scope,
                &suffix,
                &sub.verbs,
                &type_name,
                &gvk,
                &mut operations,
            );
        }
        if sub.verbs.contains(&"create") {
            let id = format!("create{}{scope}{}{suffix}", self.api, r.kind);
            let mut create = self.write(r, "post", id, &type_name);
            create.gvk = Some((sub.group.clone(), sub.version.clone(), sub.kind.clone()));
            operations.push(create);
        }
        self.push(out, path.to_owned(), path_parameters(r, true), operations);
    }

    /// A subresource that hands the connection over: `exec`, `proxy`.
    fn connection(
        &self,
        r: &Resource,
        sub: &Subresource,
        scope: &str,
        path: &str,
        out: &mut Vec<PathItem>,
    ) {
        let proxy = sub.name == "proxy";
        let methods: &[&'static str] = match proxy {
            true => &["get", "put", "post", "delete", "options", "head", "patch"],
            false => &["get", "post"],
        };
        let mut item = |path: String, with: &str, extra: Vec<Parameter>| {
            let connect = |method: &&'static str| {
                let (api, kind, name) = (&self.api, &r.kind, title(&sub.name));
                let method_title = title(method);
                let id = format!("connect{api}{method_title}{scope}{kind}{name}{with}");
                let gvk = (sub.group.clone(), sub.version.clone(), sub.kind.clone());
                let mut operation = self.operation(method, "connect", id, gvk, "");
                operation.produces = ANY;
                operation
            };
            let operations = methods.iter().map(connect).collect();
            let mut parameters = path_parameters(r, true);
            parameters.extend(extra);
            self.push(out, path, parameters, operations);
        };
        item(path.to_owned(), "", self.options(&sub.kind));
        if proxy {
            let mut rest = in_path("path");
            rest.documented_in = "";
            // The query parameter of the same name stays beside the one in the path.
            let mut extra = self.options(&sub.kind);
            extra.push(rest);
            item(format!("{path}/{{path}}"), "WithPath", extra);
        }
    }

    /// GET, PUT and PATCH of an object or of a part of it.
    #[allow(clippy::too_many_arguments, reason = "the words that an operation is made of")]
    fn object_operations(
        &self,
        r: &Resource,
        scope: &str,
        suffix: &str,
        verbs: &[&str],
        type_name: &str,
        gvk: &(String, String, String),
        out: &mut Vec<Operation>,
    ) {
        let id = |verb: &str| format!("{verb}{}{scope}{}{suffix}", self.api, r.kind);
        if verbs.contains(&"get") {
            out.push(self.operation("get", "get", id("read"), gvk.clone(), type_name));
        }
        if verbs.contains(&"update") {
            let mut put = self.write(r, "put", id("replace"), type_name);
            put.codes = &["200", "201", "401"];
            put.gvk = Some(gvk.clone());
            out.push(put);
        }
        if verbs.contains(&"patch") {
            let mut patch = self.write(r, "patch", id("patch"), type_name);
            patch.codes = &["200", "201", "401"];
            patch.gvk = Some(gvk.clone());
            patch.consumes = PATCHES;
            patch.body = Some(Body { type_name: format!("{META}.Patch"), required: true });
            patch.parameters.push(query("force", "boolean", "PatchOptions"));
            out.push(patch);
        }
    }

    fn list(&self, r: &Resource, id: String, list: &str) -> Operation {
        let mut operation = self.operation("get", "list", id, self.own_gvk(r), list);
        operation.parameters = queries(LIST_OPTIONS, "ListOptions");
        operation.produces = LISTS;
        operation
    }

    fn write(&self, r: &Resource, method: &'static str, id: String, type_name: &str) -> Operation {
        let mut operation = self.operation(method, method, id, self.own_gvk(r), type_name);
        operation.parameters = queries(WRITE_OPTIONS, "PatchOptions");
        operation.body = Some(Body { type_name: type_name.to_owned(), required: true });
        operation.codes = &["200", "201", "202", "401"];
        operation
    }

    fn delete(&self, r: &Resource, scope: &str) -> Operation {
        let id = format!("delete{}{scope}{}", self.api, r.kind);
        let status = format!("{META}.Status");
        let answer = if r.delete_returns_object { &r.type_name } else { &status };
        let mut operation = self.operation("delete", "delete", id, self.own_gvk(r), answer);
        operation.parameters = queries(DELETE_OPTIONS, "DeleteOptions");
        operation.body = Some(delete_options());
        operation.codes = &["200", "202", "401"];
        operation
    }

    fn delete_collection(&self, r: &Resource, scope: &str) -> Operation {
        let id = format!("delete{}Collection{scope}{}", self.api, r.kind);
        let status = format!("{META}.Status");
        let mut operation =
            self.operation("delete", "deletecollection", id, self.own_gvk(r), &status);
        let of_watches = ["allowWatchBookmarks", "watch"];
        let selection = queries(LIST_OPTIONS, "ListOptions").into_iter();
        operation.parameters = selection.filter(|p| !of_watches.contains(&&*p.name)).collect();
        operation.parameters.extend(queries(DELETE_OPTIONS, "DeleteOptions"));
        operation.parameters.sort_by(|a, b| a.name.cmp(&b.name));
        operation.body = Some(delete_options());
        operation
    }

    fn operation(
        &self,
        method: &'static str,
        action: &'static str,
        id: String,
        gvk: (String, String, String),
        answer: &str,
    ) -> Operation {
        Operation {
            method,
            action,
            id,
            tag: self.tag.clone(),
            gvk: Some(gvk),
            parameters: Vec::new(),
            body: None,
            answer: answer.to_owned(),
            codes: &["200", "401"],
            produces: OBJECTS,
            consumes: ANY,
        }
    }

    fn own_gvk(&self, r: &Resource) -> (String, String, String) {
        (self.gv.group.clone(), self.gv.version.clone(), r.kind.clone())
    }

    /// The type of what a subresource reads and writes.
    fn type_of(&self, r: &Resource, sub: &Subresource) -> String {
        if sub.kind == r.kind {
            return r.type_name.clone();
        }
        let group = if sub.group.is_empty() { "core" } else { &sub.group };
        let short = group.split('.').next().unwrap_or(group);
        format!("io.k8s.api.{short}.{}.{}", sub.version, sub.kind)
    }

    /// The query parameters of an options type: its scalar members.
    fn options(&self, kind: &str) -> Vec<Parameter> {
        let id = self.schema.find(&format!("io.k8s.api.core.v1.{kind}"));
        let Some(Shape::Struct { fields, .. }) = id.map(|id| &self.schema.get(id).shape) else {
            return Vec::new();
        };
        let parameters = fields.iter().filter(|f| f.tag != 0).filter_map(|f| {
            let ty = match &self.schema.get(f.ty).shape {
                Shape::List { item, .. } => &self.schema.get(*item).shape,
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
}

fn path_parameters(r: &Resource, name: bool) -> Vec<Parameter> {
    let mut parameters = Vec::new();
    if name {
        parameters.push(in_path("name"));
    }
    if r.namespaced {
        parameters.push(in_path("namespace"));
    }
    parameters
}

fn in_path(name: &str) -> Parameter {
    Parameter { name: name.to_owned(), in_path: true, kind: "string", documented_in: "" }
}

fn query(name: &str, kind: &'static str, documented_in: &'static str) -> Parameter {
    Parameter { name: name.to_owned(), in_path: false, kind, documented_in }
}

fn queries(options: &[(&str, &'static str)], documented_in: &'static str) -> Vec<Parameter> {
    options.iter().map(|(name, kind)| query(name, kind, documented_in)).collect()
}

fn delete_options() -> Body {
    Body { type_name: format!("{META}.DeleteOptions"), required: false }
}

/// `rbac.authorization` as `RbacAuthorization`, or `rbacAuthorization` where it begins a word.
fn words(text: &str, capital: bool) -> String {
    let parts = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|p| !p.is_empty());
    let mut out = String::new();
    for part in parts {
        if capital || !out.is_empty() { out.push_str(&title(part)) } else { out.push_str(part) }
    }
    out
}

fn title(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| c.to_ascii_uppercase().to_string() + chars.as_str())
}

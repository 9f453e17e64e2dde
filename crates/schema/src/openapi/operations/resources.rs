//! The operations of resources and their subresources.

use super::parameters::{
    DELETE_OPTIONS, LIST_OPTIONS, WRITE_OPTIONS, in_path, options, path_parameters, queries, query,
};
use super::{
    ANY, Body, DESCRIBED, LISTS, META, Media, Operation, Parameter, PathItem, TEXTS, TYPED, base,
    discovery_path, title, words,
};
use crate::openapi::{GroupVersion, Resource, Subresource};
use crate::table::Schema;

/// The paths of a group version, its discovery path first.
pub(crate) fn paths(schema: &Schema, gv: &GroupVersion) -> Vec<PathItem> {
    let base = base(&gv.group, &gv.version);
    let group = if gv.group.is_empty() { "core" } else { &gv.group };
    let group = group.strip_suffix(".k8s.io").unwrap_or(group);
    let api = format!("{}{}", words(group, true), words(&gv.version, true));
    let tag = format!("{}_{}", words(group, false), words(&gv.version, false));
    let context = GroupContext { api, tag, base, gv, schema };
    let mut paths = Vec::new();
    // Upstream's documents have no discovery for groups of custom resources.
    if !gv.is_described() {
        let id = format!("get{}APIResources", context.api);
        let discovery = format!("{}/", context.base);
        let (tag, description) = (context.tag.clone(), "get available resources");
        paths.push(discovery_path(discovery, id, tag, "APIResourceList", description));
    }
    for resource in &gv.resources {
        context.resource(resource, &mut paths);
    }
    paths.sort_by(|a, b| a.path.cmp(&b.path));
    paths
}

/// The group version of operations, and its names in ids and paths.
struct GroupContext<'a> {
    /// `CoreV1`
    api: String,
    /// `core_v1`
    tag: String,
    /// `/api/v1`
    base: String,
    gv: &'a GroupVersion,
    schema: &'a Schema,
}

/// The object of an operation.
#[derive(Clone)]
struct Object {
    /// Its name in ids: `NamespacedPodStatus`.
    subject: String,
    type_name: String,
    list_type: String,
    gvk: (String, String, String),
    media: &'static Media,
    /// The kind of the resource itself.
    kind: String,
    /// The subresource; empty for the resource itself.
    subresource: String,
    /// Whether a list can also be watched.
    watched: bool,
}

impl GroupContext<'_> {
    fn resource(&self, r: &Resource, out: &mut Vec<PathItem>) {
        let has = |verb: &str| r.verbs.contains(&verb);
        let plural = &r.plural;
        let collection = match r.namespaced {
            true => format!("{}/namespaces/{{namespace}}/{plural}", self.base),
            false => format!("{}/{plural}", self.base),
        };
        let object = self.object(r);

        let mut operations = Vec::new();
        if has("list") {
            operations.push(self.list(&object, ""));
        }
        if has("create") {
            operations.push(self.write("post", "create", &object));
        }
        if has("deletecollection") {
            operations.push(match r.described {
                None => self.delete_collection(&object),
                Some(_) => self.delete_selected(&object),
            });
        }
        self.push(out, collection.clone(), path_parameters(r, None), operations);

        let mut operations = self.reads_and_writes(&object, &r.verbs);
        if has("delete") {
            operations.push(self.delete(&object, r.delete_returns_object));
        }
        self.push(
            out,
            format!("{collection}/{{name}}"),
            path_parameters(r, Some(&r.kind)),
            operations,
        );

        if r.namespaced && has("list") {
            let everywhere = Object { subject: r.kind.clone(), ..self.object(r) };
            let list = self.list(&everywhere, "ForAllNamespaces");
            self.push(out, format!("{}/{plural}", self.base), Vec::new(), vec![list]);
        }
        if has("watch") && r.described.is_none() {
            self.watches(r, out);
        }
        for sub in &r.subresources {
            self.subresource(r, sub, &format!("{collection}/{{name}}/{}", sub.name), out);
        }
    }

    /// The objects of a resource.
    fn object(&self, r: &Resource) -> Object {
        let scope = if r.namespaced { "Namespaced" } else { "" };
        Object {
            subject: format!("{scope}{}", r.kind),
            type_name: r.type_name.clone(),
            list_type: match &r.described {
                None => format!("{}List", r.type_name),
                Some(described) => described.list_type.clone(),
            },
            gvk: (self.gv.group.clone(), self.gv.version.clone(), r.kind.clone()),
            media: if r.described.is_none() { &TYPED } else { &DESCRIBED },
            kind: r.kind.clone(),
            subresource: String::new(),
            watched: r.verbs.contains(&"watch") && r.described.is_none(),
        }
    }

    fn push(
        &self,
        out: &mut Vec<PathItem>,
        path: String,
        mut parameters: Vec<Parameter>,
        mut operations: Vec<Operation>,
    ) {
        let Some((first, others)) = operations.split_first() else { return };
        if operations.iter().any(|o| o.action != "connect") {
            parameters.push(query("pretty", "string", ""));
        }
        // Parameters of all operations of a path are listed once.
        let takes = |o: &Operation, p: &Parameter| o.parameters.iter().any(|q| q.name == p.name);
        let shared = first.parameters.iter().filter(|p| others.iter().all(|o| takes(o, p)));
        let shared: Vec<Parameter> = shared.cloned().collect();
        for operation in &mut operations {
            operation.parameters.retain(|p| !shared.iter().any(|q| q.name == p.name));
        }
        parameters.extend(shared);
        parameters.sort_by(|a, b| (&a.name, !a.in_path).cmp(&(&b.name, !b.in_path)));
        out.push(PathItem { path, parameters, operations });
    }

    /// The deprecated paths under `/watch/`.
    fn watches(&self, r: &Resource, out: &mut Vec<PathItem>) {
        let (plural, object) = (&r.plural, self.object(r));
        let watch = format!("{}/watch", self.base);
        let collection = match r.namespaced {
            true => format!("{watch}/namespaces/{{namespace}}/{plural}"),
            false => format!("{watch}/{plural}"),
        };
        let mut one = |path: String, subject: &str, action: &'static str, names: Vec<Parameter>| {
            let event = Object { type_name: format!("{META}.WatchEvent"), ..object.clone() };
            let mut operation = self.operation("get", action, &format!("watch{subject}"), &event);
            operation.produces = LISTS;
            let mut parameters = names;
            parameters.extend(queries(LIST_OPTIONS, "ListOptions"));
            self.push(out, path, parameters, vec![operation]);
        };
        let list = format!("{}List", object.subject);
        let item = format!("{collection}/{{name}}");
        one(item, &object.subject, "watch", path_parameters(r, Some(&r.kind)));
        one(collection, &list, "watchlist", path_parameters(r, None));
        if r.namespaced {
            let list = format!("{}ListForAllNamespaces", r.kind);
            one(format!("{watch}/{plural}"), &list, "watchlist", Vec::new());
        }
    }

    fn subresource(&self, r: &Resource, sub: &Subresource, path: &str, out: &mut Vec<PathItem>) {
        let object = Object {
            subject: format!("{}{}", self.object(r).subject, title(&sub.name)),
            type_name: type_of(r, sub),
            gvk: match r.described {
                None => (sub.group.clone(), sub.version.clone(), sub.kind.clone()),
                // For custom resources, upstream names the kind of the resource.
                Some(_) => self.object(r).gvk,
            },
            subresource: sub.name.clone(),
            ..self.object(r)
        };
        if sub.kind.ends_with("Options") {
            return self.connection(r, sub, object, path, out);
        }
        let operations = if sub.name == "log" {
            let text = Object { type_name: String::new(), ..object };
            let mut read = self.operation("get", "get", &format!("read{}", text.subject), &text);
            read.produces = TEXTS;
            read.parameters = options(self.schema, "PodLogOptions");
            vec![read]
        } else {
            let mut operations = self.reads_and_writes(&object, &sub.verbs);
            if sub.verbs.contains(&"create") {
                operations.push(self.write("post", "create", &object));
            }
            operations
        };
        let kind = if r.described.is_none() { &sub.kind } else { &r.kind };
        self.push(out, path.to_owned(), path_parameters(r, Some(kind)), operations);
    }

    /// The paths of a subresource that takes over the connection: `exec`, `proxy`.
    fn connection(
        &self,
        r: &Resource,
        sub: &Subresource,
        object: Object,
        path: &str,
        out: &mut Vec<PathItem>,
    ) {
        let proxy = sub.name == "proxy";
        let methods: &[&'static str] = match proxy {
            true => &["get", "put", "post", "delete", "options", "head", "patch"],
            false => &["get", "post"],
        };
        let text = Object { type_name: String::new(), ..object };
        let mut item = |path: String, with: &str, rest: Option<Parameter>| {
            let connect = |method: &&'static str| {
                let words = format!("connect{}{}{with}", title(method), text.subject);
                let mut operation = self.operation(method, "connect", &words, &text);
                operation.produces = ANY;
                operation
            };
            let mut parameters = path_parameters(r, Some(&sub.kind));
            // The proxy's query has a parameter with the same name as the rest of its path.
            parameters.extend(options(self.schema, &sub.kind));
            parameters.extend(rest);
            self.push(out, path, parameters, methods.iter().map(connect).collect());
        };
        item(path.to_owned(), "", None);
        if proxy {
            item(
                format!("{path}/{{path}}"),
                "WithPath",
                Some(in_path("path", "path to the resource")),
            );
        }
    }

    /// GET, PUT and PATCH of an object or a subresource.
    fn reads_and_writes(&self, object: &Object, verbs: &[&str]) -> Vec<Operation> {
        let mut out = Vec::new();
        if verbs.contains(&"get") {
            out.push(self.operation("get", "get", &format!("read{}", object.subject), object));
        }
        if verbs.contains(&"update") {
            let mut put = self.write("put", "replace", object);
            put.codes = &["200", "201", "401"];
            out.push(put);
        }
        if verbs.contains(&"patch") {
            let mut patch = self.write("patch", "patch", object);
            patch.codes = object.media.patch_codes;
            patch.consumes = object.media.patches;
            patch.body = Some(Body { type_name: format!("{META}.Patch"), required: true });
            patch.parameters.push(query("force", "boolean", "PatchOptions"));
            out.push(patch);
        }
        out
    }

    fn list(&self, object: &Object, everywhere: &str) -> Operation {
        let words = format!("list{}{everywhere}", object.subject);
        let list = Object { type_name: object.list_type.clone(), ..object.clone() };
        let mut operation = self.operation("get", "list", &words, &list);
        operation.parameters = queries(LIST_OPTIONS, "ListOptions");
        operation.produces = object.media.lists;
        operation
    }

    fn write(&self, method: &'static str, verb: &str, object: &Object) -> Operation {
        let words = format!("{verb}{}", object.subject);
        let mut operation = self.operation(method, method, &words, object);
        operation.parameters = queries(WRITE_OPTIONS, "PatchOptions");
        operation.body = Some(Body { type_name: object.type_name.clone(), required: true });
        operation.codes = &["200", "201", "202", "401"];
        operation
    }

    fn delete(&self, object: &Object, returns_object: bool) -> Operation {
        let words = format!("delete{}", object.subject);
        let mut operation = self.operation("delete", "delete", &words, object);
        if !returns_object {
            operation.answer = format!("{META}.Status");
        }
        operation.parameters = queries(DELETE_OPTIONS, "DeleteOptions");
        operation.body = Some(delete_options());
        operation.codes = &["200", "202", "401"];
        operation
    }

    fn delete_collection(&self, object: &Object) -> Operation {
        let words = format!("deleteCollection{}", object.subject);
        let mut operation = self.operation("delete", "deletecollection", &words, object);
        operation.answer = format!("{META}.Status");
        let of_watches = ["allowWatchBookmarks", "watch"];
        let selection = queries(LIST_OPTIONS, "ListOptions").into_iter();
        operation.parameters = selection.filter(|p| !of_watches.contains(&&*p.name)).collect();
        operation.parameters.extend(queries(DELETE_OPTIONS, "DeleteOptions"));
        operation.parameters.sort_by(|a, b| a.name.cmp(&b.name));
        operation.body = Some(delete_options());
        operation
    }

    /// Like [`Self::delete_collection`], for custom resources, which upstream documents in less
    /// detail.
    fn delete_selected(&self, object: &Object) -> Operation {
        let words = format!("deleteCollection{}", object.subject);
        let mut operation = self.operation("delete", "deletecollection", &words, object);
        operation.answer = format!("{META}.Status");
        operation.parameters = queries(LIST_OPTIONS, "ListOptions");
        operation
    }

    /// An operation; `words` is its id without the group version, which is inserted after the verb.
    fn operation(
        &self,
        method: &'static str,
        action: &'static str,
        words: &str,
        object: &Object,
    ) -> Operation {
        let verb = words.find(|c: char| c.is_ascii_uppercase()).unwrap_or(words.len());
        Operation {
            method,
            action,
            id: format!("{}{}{}", &words[..verb], self.api, &words[verb..]),
            description: description(method, action, object),
            tag: self.tag.clone(),
            gvk: Some(object.gvk.clone()),
            parameters: Vec::new(),
            body: None,
            answer: object.type_name.clone(),
            codes: &["200", "401"],
            produces: object.media.objects,
            consumes: object.media.bodies,
        }
    }
}

/// The description of an operation, in upstream's words.
fn description(method: &str, action: &str, object: &Object) -> String {
    let Object { kind, subresource, .. } = object;
    let of = |verb: &str| match subresource.as_str() {
        "" => format!("{verb} the specified {kind}"),
        subresource => format!("{verb} {subresource} of the specified {kind}"),
    };
    let article = article(kind);
    match action {
        "get" => of("read"),
        "put" => of("replace"),
        "patch" => of("partially update"),
        "post" if subresource.is_empty() => format!("create {article}{kind}"),
        "post" => format!("create {subresource} of {article}{kind}"),
        "delete" => format!("delete {article}{kind}"),
        "deletecollection" => format!("delete collection of {kind}"),
        "list" if object.watched => format!("list or watch objects of kind {kind}"),
        "list" => format!("list objects of kind {kind}"),
        "watch" => format!(
            "watch changes to an object of kind {kind}. deprecated: use the 'watch' parameter with a \
             list operation instead, filtered to a single item with the 'fieldSelector' parameter."
        ),
        "watchlist" => format!(
            "watch individual changes to a list of {kind}. deprecated: use the 'watch' parameter \
             with a list operation instead."
        ),
        _ => format!("connect {} requests to {subresource} of {kind}", method.to_ascii_uppercase()),
    }
}

/// The article before a kind; plurals have none.
fn article(kind: &str) -> &'static str {
    if kind.ends_with('s') && !kind.ends_with("ss") {
        ""
    } else if kind.starts_with(['A', 'E', 'I', 'O', 'U', 'a', 'e', 'i', 'o', 'u']) {
        "an "
    } else {
        "a "
    }
}

/// The type of a subresource's objects.
fn type_of(r: &Resource, sub: &Subresource) -> String {
    if sub.kind == r.kind {
        return r.type_name.clone();
    }
    let group = if sub.group.is_empty() { "core" } else { &sub.group };
    let short = group.split('.').next().unwrap_or(group);
    format!("io.k8s.api.{short}.{}.{}", sub.version, sub.kind)
}

fn delete_options() -> Body {
    Body { type_name: format!("{META}.DeleteOptions"), required: false }
}

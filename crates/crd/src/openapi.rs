//! OpenAPI schemas of custom resources: a version's schema as its author wrote it, completed by the
//! members of every object (upstream: `pkg/controller/openapi/builder`).
//!
//! Must not know: documents, or which document includes a definition.

use std::borrow::Cow;
use std::sync::Arc;

use pintle_schema::openapi::{Described, Descriptions, Dialect};
use pintle_value::{Map, Value, json};

use crate::check::structural;
use crate::definition::{Crd, Version};
use crate::schemas::{Source, type_name};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// A built-in type whose members have the descriptions that all objects share.
const LIKE_ALL: &str = "io.k8s.api.core.v1.Pod";

/// The description of a version. It is generated from the current definition when a document is
/// requested.
pub(crate) fn described(crd: Crd<'_>, version: Version<'_>, source: Source) -> Described {
    let names = crd.accepted_names();
    let [kind, list_kind, plural] =
        [names.kind(), names.list_kind(), names.plural()].map(str::to_owned);
    let (group, name) = (crd.group().to_owned(), version.name().to_owned());
    let [own_type, list_type] = [&kind, &list_kind].map(|kind| type_name(&group, &name, kind));
    let revision = ["uid", "generation"].map(|member| crd.0.at(&["metadata", member]).cloned());
    let fields = selectable(version);
    let source = published(crd.preserves_unknown(), source);
    let write = {
        let own_type = own_type.clone();
        move |wanted: &str, dialect: Dialect, descriptions: &dyn Descriptions, out: &mut Vec<u8>| {
            let is_object = wanted == own_type;
            let own_kind = if is_object { &kind } else { &list_kind };
            let mut more = vec![("x-kubernetes-group-version-kind", gvk(&group, &name, own_kind))];
            more.extend(fields.clone().map(|fields| ("x-kubernetes-selectable-fields", fields)));
            let writer = Writer { dialect, descriptions };
            if is_object {
                writer.object(source(&name, dialect).as_ref(), more, out);
            } else {
                let mut list = writer.list(&own_type, [&kind, &list_kind, &plural]);
                more.into_iter().for_each(|(key, value)| _ = list.insert(key, value));
                json::write(&list.into(), out);
            }
        }
    };
    Described {
        version: format!("{revision:?}"),
        type_name: own_type,
        list_type,
        references: &[OBJECT_META, LIST_META],
        write: Arc::new(write),
    }
}

/// The schemas that documents show. If undeclared members are kept, OpenAPI 2 shows none, because
/// its clients would treat the declared members as the only allowed ones, and schemas that are not
/// structural are never shown.
fn published(
    keeps_unknown: bool,
    source: Source,
) -> impl Fn(&str, Dialect) -> Option<Value> + Send + Sync {
    move |version, dialect| {
        if keeps_unknown && dialect == Dialect::V2 {
            return None;
        }
        source(version).filter(|schema| !keeps_unknown || structural::is_structural(schema))
    }
}

fn gvk(group: &str, version: &str, kind: &str) -> Value {
    vec![Value::from([("group", group), ("version", version), ("kind", kind)])].into()
}

/// The selectable fields of a version.
fn selectable(version: Version<'_>) -> Option<Value> {
    let fields = version.list("selectableFields").iter().filter_map(|f| f.str_at(&["jsonPath"]));
    let fields = fields.map(|path| path.strip_prefix('.').unwrap_or(path));
    let fields: Vec<_> = fields.map(|path| Value::from([("fieldPath", path)])).collect();
    (!fields.is_empty()).then(|| fields.into())
}

/// Writes schemas in one OpenAPI version.
struct Writer<'a> {
    dialect: Dialect,
    descriptions: &'a dyn Descriptions,
}

impl Writer<'_> {
    /// Writes the schema of a version's objects with additional members.
    fn object(&self, given: Option<&Value>, more: Vec<(&'static str, Value)>, out: &mut Vec<u8>) {
        let bare = Map::from_iter([("type".into(), "object".into())]);
        let given = given.and_then(Value::as_object);
        // Clients of OpenAPI 2 would treat the declared members as the only allowed ones.
        let keeps = |given: &Map| given.get(PRESERVE).and_then(Value::as_bool) == Some(true);
        let known = given.filter(|given| self.dialect == Dialect::V3 || !keeps(given));
        let mut node = self.node(known.unwrap_or(&bare));
        if known.is_some() {
            node.add_properties();
        }
        more.into_iter().for_each(|(key, value)| node.set(key, value));
        self.write(&node, known.is_some(), out);
    }

    /// The schema of a version's lists.
    fn list(&self, item: &str, [kind, list_kind, plural]: [&str; 3]) -> Map {
        let about =
            "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
        let items = Value::from([
            ("description", Value::from(format!("List of {plural}. More info: {about}"))),
            ("items", self.reference(item)),
            ("type", "array".into()),
        ]);
        let mut properties = Map::new();
        properties.insert("items", items);
        properties.insert("metadata", self.metadata(LIST_META, "io.k8s.api.core.v1.PodList"));
        self.type_members(&mut properties);
        Map::from_iter([
            ("description".into(), format!("{list_kind} is a list of {kind}").into()),
            ("properties".into(), properties.into()),
            ("required".into(), vec![Value::from("items")].into()),
            ("type".into(), "object".into()),
        ])
    }

    fn reference(&self, type_name: &str) -> Value {
        let prefix = match self.dialect {
            Dialect::V2 => "#/definitions/",
            Dialect::V3 => "#/components/schemas/",
        };
        Value::from([("$ref", format!("{prefix}{type_name}"))])
    }

    /// The schema of the member `metadata`, with the description that the type `like` has for this
    /// member.
    fn metadata(&self, type_name: &str, like: &str) -> Value {
        let reference = self.reference(type_name);
        let mut schema = match self.dialect {
            Dialect::V2 => reference,
            // OpenAPI 3.0 ignores siblings of a reference.
            Dialect::V3 => Value::from([("allOf", vec![reference])]),
        };
        self.describe(&mut schema, like, "metadata");
        schema
    }

    fn type_members(&self, properties: &mut Map) {
        for member in ["apiVersion", "kind"] {
            let mut schema = Value::from([("type", "string")]);
            self.describe(&mut schema, LIKE_ALL, member);
            properties.insert(member, schema);
        }
    }

    fn describe(&self, schema: &mut Value, type_name: &str, member: &str) {
        if let Some(words) = self.descriptions.of_field(type_name, member) {
            schema.make_object().insert("description", words);
        }
    }

    /// A schema adapted to the OpenAPI version; schemas nested in it are not adapted yet.
    fn node<'s>(&self, given: &'s Map) -> Node<'s> {
        let mut node = Node::of(given);
        node.unfold();
        if self.dialect == Dialect::V2 {
            node.reduce();
        }
        node
    }

    /// Writes a nested schema.
    fn schema(&self, given: &Map, out: &mut Vec<u8>) {
        let mut node = self.node(given);
        // OpenAPI 2 shows no members of a schema that keeps unknown ones, as in [`Self::object`].
        let is_object = node.flag("x-kubernetes-embedded-resource")
            && (self.dialect == Dialect::V3 || !keeps_unknown(&node));
        if is_object {
            node.add_properties();
            node.require(["kind", "apiVersion"]);
        }
        self.write(&node, is_object, out);
    }

    /// Writes a schema and adapts the schemas nested in it.
    fn write(&self, node: &Node<'_>, is_object: bool, out: &mut Vec<u8>) {
        let own = |(key, value): &(&str, Cow<'_, Value>), out: &mut Vec<u8>| match (*key, &**value)
        {
            ("properties", Value::Object(properties)) => {
                self.properties(properties, is_object, out);
            }
            ("items" | "additionalProperties", Value::Object(below)) => self.schema(below, out),
            (_, value) => json::write(value, out),
        };
        members(&node.0, own, out);
    }

    /// Writes the schemas of an object's members; with `is_object`, including those of every
    /// object.
    fn properties(&self, given: &Map, is_object: bool, out: &mut Vec<u8>) {
        let mut of_objects = Map::new();
        if is_object {
            of_objects.insert("metadata", self.metadata(OBJECT_META, LIKE_ALL));
            self.type_members(&mut of_objects);
        }
        let own = given.iter().filter(|(name, _)| !of_objects.contains_key(name));
        let mut all: Vec<_> = own.map(|(name, value)| (name.as_str(), (value, false))).collect();
        all.extend(of_objects.iter().map(|(name, value)| (name.as_str(), (value, true))));
        all.sort_unstable_by_key(|(name, _)| *name);
        let each = |(_, (value, made)): &(&str, (&Value, bool)), out: &mut Vec<u8>| match value {
            Value::Object(given) if !made => self.schema(given, out),
            value => json::write(value, out),
        };
        members(&all, each, out);
    }
}

/// Writes an object from members that are sorted by name.
fn members<T>(all: &[(&str, T)], each: impl Fn(&(&str, T), &mut Vec<u8>), out: &mut Vec<u8>) {
    out.push(b'{');
    for (i, member) in all.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        json::write_string(member.0, out);
        out.push(b':');
        each(member, out);
    }
    out.push(b'}');
}

/// One schema, sorted by key, with its changes. Nested schemas are not copied, because schemas are
/// deep.
struct Node<'s>(Vec<(&'s str, Cow<'s, Value>)>);

impl<'s> Node<'s> {
    fn of(given: &'s Map) -> Self {
        let members = given.iter().filter(|(key, value)| is_significant(key, value));
        Self(members.map(|(key, value)| (key.as_str(), Cow::Borrowed(value))).collect())
    }

    fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| *known == key).map(|(_, value)| &**value)
    }

    fn flag(&self, key: &str) -> bool {
        self.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    fn list(&self, key: &str) -> &[Value] {
        self.get(key).and_then(Value::as_array).unwrap_or_default()
    }

    fn set(&mut self, key: &'s str, value: impl Into<Value>) {
        let value = Cow::Owned(value.into());
        match self.0.binary_search_by(|(known, _)| (*known).cmp(key)) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (key, value)),
        }
    }

    fn remove(&mut self, keys: &[&str]) {
        self.0.retain(|(key, _)| !keys.contains(key));
    }

    fn add_properties(&mut self) {
        if self.get("properties").is_none() {
            self.set("properties", Value::object());
        }
    }

    fn require(&mut self, names: [&str; 2]) {
        let mut required = self.list("required").to_vec();
        for name in names.map(Value::from) {
            if !required.contains(&name) {
                required.push(name);
            }
        }
        self.set("required", required);
    }

    /// Writes an integer-or-string schema explicitly (upstream: `Structural.Unfold`).
    fn unfold(&mut self) {
        if !self.flag("x-kubernetes-int-or-string") {
            return;
        }
        let either: Vec<Value> = ["integer", "string"].map(|ty| Value::from([("type", ty)])).into();
        let all = self.list("allOf");
        let in_first = all.first().and_then(|first| first.get("anyOf")?.as_array());
        if self.list("anyOf") == either || in_first == Some(&either[..]) {
            return;
        }
        if self.get("anyOf").is_none() {
            return self.set("anyOf", either);
        }
        let mut all = all.to_vec();
        all.insert(0, Value::from([("anyOf", either)]));
        self.set("allOf", all);
    }

    /// Removes the members that OpenAPI 2 or its clients do not support (upstream:
    /// `ToStructuralOpenAPIV2`, and the pruning of defaults).
    fn reduce(&mut self) {
        self.remove(&["allOf", "anyOf", "oneOf", "not", "default"]);
        let (nullable, unknown) = (self.get("nullable").is_some(), keeps_unknown(self));
        if nullable {
            self.remove(&["nullable", "type"]);
        }
        if nullable || unknown {
            self.remove(&["items", "properties"]);
        }
        match self.get("type").and_then(Value::as_str) {
            Some("array") if self.get("items").is_none() => self.remove(&["type"]),
            Some("object") if unknown => self.remove(&["type"]),
            _ => {}
        }
        let is_nullable =
            |schema: &Value| schema.get("nullable").and_then(Value::as_bool) == Some(true);
        if self.get("additionalProperties").is_some_and(is_nullable) {
            self.remove(&["required"]);
        }
        let properties = self.get("properties").and_then(Value::as_object);
        let may_be_null = |name: &Value| {
            let property = properties.zip(name.as_str()).and_then(|(all, name)| all.get(name));
            property.is_some_and(is_nullable)
        };
        let given = self.list("required");
        if given.iter().any(may_be_null) {
            let required: Vec<_> =
                given.iter().filter(|name| !may_be_null(name)).cloned().collect();
            if required.is_empty() {
                self.remove(&["required"]);
            } else {
                self.set("required", required);
            }
        }
    }
}

fn keeps_unknown(schema: &Node<'_>) -> bool {
    schema.flag(PRESERVE)
}

/// Whether a member of a schema is significant: Go omits the others.
fn is_significant(key: &str, value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => {
            *truth || matches!(key, "default" | "example" | "additionalProperties")
        }
        Value::Array(items) => !items.is_empty() || matches!(key, "default" | "example"),
        Value::Object(members) if key == "properties" => !members.is_empty(),
        _ => true,
    }
}

#[cfg(test)]
mod tests;

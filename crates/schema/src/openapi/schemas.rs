//! Writes types as OpenAPI schemas.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::json::Json;
use super::{Described, Descriptions, Dialect, Resource, Source};
use crate::builtin::generated::openapi::{BYTE_LISTS, GRANULAR, KINDS, UNDECLARED, UNIONS};
use crate::builtin::generated::types::T;
use crate::table::{
    Default, Field, ListType, MapType, Presence, Rule, Scalar, Schema, Shape, Type, TypeId,
};
use crate::{is_builtin, removed};

/// Writes the types of a schema, and those that custom resources describe themselves.
pub(crate) struct Schemas<'a> {
    schema: &'a Schema,
    dialect: Dialect,
    descriptions: &'a dyn Descriptions,
    /// The self-described types, by name.
    described: BTreeMap<&'a str, &'a Described>,
    /// The group and version of the document; `None` for a document about all.
    of: Option<(&'a str, &'a str)>,
}

impl<'a> Schemas<'a> {
    pub(crate) fn new(source: Source<'a>, dialect: Dialect) -> Self {
        let Source { schema, descriptions, .. } = source;
        Self { schema, dialect, descriptions, described: BTreeMap::new(), of: None }
    }

    /// Sets the group and version of the document.
    pub(crate) fn of_version(self, group: &'a str, version: &'a str) -> Self {
        Self { of: Some((group, version)), ..self }
    }

    /// Adds the types that resources describe themselves.
    pub(crate) fn with(mut self, resources: impl IntoIterator<Item = &'a Resource>) -> Self {
        for described in resources.into_iter().filter_map(|resource| resource.described.as_ref()) {
            for name in [&described.type_name, &described.list_type] {
                self.described.insert(name, described);
            }
        }
        self
    }

    /// The names of all types reachable from `names` and from the self-described types, both
    /// included.
    pub(crate) fn closure<'s>(&'s self, names: &BTreeSet<&'s str>) -> BTreeSet<&'s str> {
        let mut all = BTreeSet::new();
        let mut due: Vec<TypeId> = names.iter().filter_map(|n| self.schema.find(n)).collect();
        // Self-described types refer to their own types and to built-in ones.
        for (name, described) in &self.described {
            all.insert(*name);
            due.extend(described.references.iter().filter_map(|name| self.schema.find(name)));
        }
        while let Some(id) = due.pop() {
            let ty = self.schema.get(id);
            if !ty.name.is_empty() && !all.insert(ty.name.as_ref()) {
                continue;
            }
            match &ty.shape {
                Shape::Scalar(_) => {}
                Shape::Struct { fields, .. } => due.extend(fields.iter().map(|f| f.ty)),
                Shape::Map { value: id, .. } | Shape::List { item: id, .. } => due.push(*id),
            }
        }
        all
    }

    /// Writes the definitions of the named types as members of an object. Calls `follow` after
    /// each.
    pub(crate) fn definitions(
        &self,
        json: &mut Json,
        names: &BTreeSet<&str>,
        mut follow: impl FnMut(&mut Json),
    ) {
        for name in names {
            if let Some(described) = self.described.get(*name) {
                let write = |out: &mut Vec<u8>| {
                    (described.write)(name, self.dialect, self.descriptions, out);
                };
                json.key(name).written(write);
            } else if let Some(id) = self.schema.find(name) {
                json.key(name).object(|json| self.definition(json, id));
            }
            follow(json);
        }
    }

    /// Writes a reference to a named type, as a whole schema.
    pub(crate) fn reference(&self, json: &mut Json, name: &str) {
        let prefix = match self.dialect {
            Dialect::V2 => "#/definitions/",
            Dialect::V3 => "#/components/schemas/",
        };
        json.key("$ref").text(&format!("{prefix}{name}"));
    }

    fn definition(&self, json: &mut Json, id: TypeId) {
        let ty = self.schema.get(id);
        if let Some(text) = self.descriptions.of_type(&ty.name) {
            json.key("description").text(text);
        }
        match &ty.shape {
            Shape::Scalar(scalar) => self.named_scalar(json, ty, *scalar),
            Shape::Struct { .. } => self.structure(json, id),
            Shape::Map { .. } | Shape::List { .. } => self.anonymous(json, id, false),
        }
        // A kind that exists in every group is listed for the core group and for the document's
        // group.
        let kinds = self.of_builtin(id, &KINDS).copied().unwrap_or_default();
        let shown = kinds.iter().filter(|(group, version, _)| {
            let own =
                |of: (&str, &str)| of == (*group, *version) || ("", "v1") == (*group, *version);
            kinds.len() == 1 || self.of.is_none_or(own)
        });
        self.kinds(json, shown);
        if let Some((group, version, kind)) = self.removed_kind(id) {
            self.kinds(json, [(group.as_str(), version, kind)].iter());
        }
        if let Some(unions) = self.of_builtin(id, &UNIONS) {
            json.key("x-kubernetes-unions").raw(unions);
        }
    }

    /// Writes the members of a struct's schema.
    fn structure(&self, json: &mut Json, id: TypeId) {
        let ty = self.schema.get(id);
        let Shape::Struct { fields, by_name, map_type, .. } = &ty.shape else { return };
        if !fields.is_empty() {
            json.key("properties").object(|json| {
                for field in by_name.iter().map(|&i| &fields[usize::from(i)]) {
                    json.key(&field.name).object(|json| self.field(json, id, field));
                }
            });
        }
        let required: Vec<&str> =
            fields.iter().filter(|f| f.required).map(|f| f.name.as_ref()).collect();
        if !required.is_empty() {
            json.key("required").texts(required);
        }
        json.key("type").text("object");
        if *map_type == MapType::Atomic {
            json.key("x-kubernetes-map-type").text("atomic");
        }
    }

    fn kinds<'k>(
        &self,
        json: &mut Json,
        kinds: impl Iterator<Item = &'k (&'k str, &'k str, &'k str)>,
    ) {
        let mut kinds = kinds.peekable();
        if kinds.peek().is_some() {
            let key = "x-kubernetes-group-version-kind";
            json.key(key).list(kinds, |json, (group, version, kind)| {
                json.object(|json| gvk(json, group, version, kind));
            });
        }
    }

    /// The row of a table about built-in types; `None` for types of another schema.
    fn of_builtin<R>(&self, id: TypeId, rows: &'static [(T, R)]) -> Option<&'static R> {
        if !is_builtin(self.schema, id) {
            return None;
        }
        let at = rows.binary_search_by_key(&id.0, |(t, _)| *t as u32).ok()?;
        Some(&rows[at].1)
    }

    /// The kind of a type of a removed version, if it is one.
    fn removed_kind(&self, id: TypeId) -> Option<(String, &str, &str)> {
        let name = &self.schema.get(id).name;
        (!is_builtin(self.schema, id)).then(|| removed::kind(name)).flatten()
    }

    fn named_scalar(&self, json: &mut Json, ty: &Type, scalar: Scalar) {
        let v3 = self.dialect == Dialect::V3;
        match scalar {
            Scalar::Quantity if v3 => one_of(json, &["string", "number"]),
            Scalar::IntOrString => {
                json.key("format").text("int-or-string");
                if v3 {
                    one_of(json, &["integer", "string"]);
                } else {
                    json.key("type").text("string");
                }
            }
            Scalar::Time | Scalar::MicroTime => {
                json.key("format").text("date-time");
                json.key("type").text("string");
            }
            Scalar::Quantity | Scalar::Duration => json.key("type").text("string"),
            Scalar::RawExtension | Scalar::Fields => json.key("type").text("object"),
            // Of the types that hold any value, those of the apimachinery package are documented as
            // objects.
            Scalar::Any if ty.name.starts_with("io.k8s.apimachinery.") => {
                json.key("type").text("object");
            }
            Scalar::Any => {}
            plain => plain_scalar(json, plain),
        }
    }

    fn field(&self, json: &mut Json, owner: TypeId, field: &Field) {
        let description = self.descriptions.of_field(&self.schema.get(owner).name, &field.name);
        let granular = self.is_listed(owner, &field.name, &GRANULAR);
        if let Some(text) = description {
            json.key("description").text(&self.with_values(text, field));
        }
        if self.dialect == Dialect::V3 {
            self.default(json, field);
        }
        let target = self.schema.get(field.ty);
        let alone = description.is_none() && !granular && !self.has_extensions(field);
        if target.name.is_empty() {
            let undeclared = self.is_listed(owner, &field.name, &UNDECLARED);
            self.anonymous_field(json, field, undeclared);
        } else if self.dialect == Dialect::V2 || alone {
            self.reference(json, &target.name);
        } else {
            // OpenAPI 3.0 ignores siblings of a reference.
            json.key("allOf").list([&target.name], |json, name| {
                json.object(|json| self.reference(json, name));
            });
        }
        if granular {
            json.key("x-kubernetes-map-type").text("granular");
        }
        if self.is_listed(owner, &field.name, &BYTE_LISTS) {
            json.key("x-kubernetes-list-type").text("atomic");
        }
        patch(json, field);
    }

    /// Appends the possible values of a field to its description, as upstream lists them, but
    /// without a description of each value.
    fn with_values<'t>(&self, text: &'t str, field: &Field) -> Cow<'t, str> {
        let is_list = matches!(self.schema.get(field.ty).shape, Shape::List { .. });
        let values = enum_of(field);
        if is_list || values.is_empty() {
            return Cow::Borrowed(text);
        }
        let values: String = values.iter().map(|value| format!("\n - `{value:?}`")).collect();
        Cow::Owned(format!("{text}\n\nPossible enum values:{values}"))
    }

    fn is_listed(&self, owner: TypeId, field: &str, rows: &[(T, &str)]) -> bool {
        is_builtin(self.schema, owner)
            && rows.iter().any(|(t, name)| *t as u32 == owner.0 && *name == field)
    }

    fn anonymous_field(&self, json: &mut Json, field: &Field, undeclared: bool) {
        match &self.schema.get(field.ty).shape {
            Shape::List { item, list_type } if !enum_of(field).is_empty() => {
                json.key("items").object(|json| {
                    json.key("enum").texts(enum_of(field));
                    self.element(json, *item);
                });
                list(json, list_type, undeclared);
            }
            _ => {
                if !enum_of(field).is_empty() {
                    json.key("enum").texts(enum_of(field));
                }
                self.anonymous(json, field.ty, undeclared);
            }
        }
    }

    /// Writes an unnamed scalar, list or map, as members of a schema.
    fn anonymous(&self, json: &mut Json, id: TypeId, undeclared: bool) {
        match &self.schema.get(id).shape {
            Shape::Scalar(scalar) => plain_scalar(json, *scalar),
            Shape::Map { value, map_type } => {
                json.key("additionalProperties").object(|json| match undeclared {
                    true => self.anonymous(json, *value, true),
                    false => self.element(json, *value),
                });
                json.key("type").text("object");
                if *map_type == MapType::Atomic {
                    json.key("x-kubernetes-map-type").text("atomic");
                }
            }
            Shape::List { item, list_type } => {
                json.key("items").object(|json| self.element(json, *item));
                list(json, list_type, undeclared);
            }
            Shape::Struct { .. } => self.structure(json, id),
        }
    }

    /// Writes an item of a list or a value of a map. In v3, struct and scalar types have their zero
    /// value as default, as fields by value do.
    fn element(&self, json: &mut Json, id: TypeId) {
        let ty = self.schema.get(id);
        let default = zero(ty).filter(|_| self.dialect == Dialect::V3);
        if let Some(default) = default {
            json.key("default").raw(default);
        }
        if ty.name.is_empty() {
            self.anonymous(json, id, false);
        } else if default.is_some() {
            json.key("allOf").list([&ty.name], |json, name| {
                json.object(|json| self.reference(json, name));
            });
        } else {
            self.reference(json, &ty.name);
        }
    }

    /// Whether a field has more than a reference.
    fn has_extensions(&self, field: &Field) -> bool {
        field.patch != crate::Patch::REPLACE
            || field.default.is_some()
            || self.implied_default(field).is_some()
    }

    fn default(&self, json: &mut Json, field: &Field) {
        match &field.default {
            Some(Default::String(text)) => json.key("default").text(text),
            Some(Default::Int(int)) => json.key("default").raw(&int.to_string()),
            Some(Default::Bool(bool)) => json.key("default").raw(&bool.to_string()),
            Some(Default::Json(text)) => json.key("default").raw(text),
            None => {
                if let Some(zero) = self.implied_default(field) {
                    json.key("default").raw(zero);
                }
            }
        }
    }

    /// The default of a field by value that is always present: its zero value.
    fn implied_default(&self, field: &Field) -> Option<&'static str> {
        (field.presence == Presence::Always).then(|| zero(self.schema.get(field.ty))).flatten()
    }
}

/// The zero value of a type that is not a pointer, list or map and has no encoder of its own.
fn zero(ty: &Type) -> Option<&'static str> {
    match &ty.shape {
        Shape::Struct { .. } => Some("{}"),
        Shape::Scalar(Scalar::String) => Some("\"\""),
        Shape::Scalar(Scalar::Bool) => Some("false"),
        Shape::Scalar(Scalar::Int32 | Scalar::Int64 | Scalar::Float64) => Some("0"),
        _ => None,
    }
}

fn enum_of(field: &Field) -> &[Cow<'static, str>] {
    let values = field.rules.iter().find_map(|r| match r {
        Rule::Enum(values) => Some(values.as_ref()),
        _ => None,
    });
    values.unwrap_or(&[])
}

fn plain_scalar(json: &mut Json, scalar: Scalar) {
    let (kind, format) = match scalar {
        Scalar::Bool => ("boolean", ""),
        Scalar::Int32 => ("integer", "int32"),
        Scalar::Int64 => ("integer", "int64"),
        Scalar::Float64 => ("number", "double"),
        Scalar::Bytes => ("string", "byte"),
        Scalar::Any => return,
        Scalar::RawExtension | Scalar::Fields => ("object", ""),
        _ => ("string", ""),
    };
    if !format.is_empty() {
        json.key("format").text(format);
    }
    json.key("type").text(kind);
}

fn one_of(json: &mut Json, types: &[&str]) {
    json.key("oneOf").list(types, |json, ty| json.object(|json| json.key("type").text(ty)));
}

fn list(json: &mut Json, list_type: &ListType, undeclared: bool) {
    json.key("type").text("array");
    match list_type {
        ListType::Atomic if undeclared => {}
        ListType::Atomic => json.key("x-kubernetes-list-type").text("atomic"),
        ListType::Set => json.key("x-kubernetes-list-type").text("set"),
        ListType::Map(keys) => {
            json.key("x-kubernetes-list-map-keys").texts(keys.iter());
            json.key("x-kubernetes-list-type").text("map");
        }
    }
}

fn patch(json: &mut Json, field: &Field) {
    let patch = &field.patch;
    if !patch.merge_key.is_empty() {
        json.key("x-kubernetes-patch-merge-key").text(&patch.merge_key);
    }
    let strategies: Vec<&str> =
        [(patch.merge, "merge"), (patch.replace, "replace"), (patch.retain_keys, "retainKeys")]
            .into_iter()
            .filter_map(|(is, name)| is.then_some(name))
            .collect();
    if !strategies.is_empty() {
        json.key("x-kubernetes-patch-strategy").text(&strategies.join(","));
    }
}

/// Writes the members of `x-kubernetes-group-version-kind`.
pub(crate) fn gvk(json: &mut Json, group: &str, version: &str, kind: &str) {
    json.key("group").text(group);
    json.key("kind").text(kind);
    json.key("version").text(version);
}

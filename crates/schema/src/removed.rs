//! The types of versions that v1.36 does not serve any more, parsed on first use from
//! `removed.txt`.
//!
//! A line without leading space begins a type: its name, and `kind` for a kind, or the scalar that
//! it is. The following lines are its fields: a name, a type, a [`Presence`], a Protobuf field
//! number, and rare attributes:
//!
//! ```text
//! io.k8s.api.extensions.v1beta1.DaemonSet kind
//!  kind String OmitZero 0
//!  spec io.k8s.api.extensions.v1beta1.DaemonSetSpec Always 2
//! ```
//!
//! A type is a name, a [`Scalar`], a list (`[]T`, `[set]T`, `[key,key]T`) or a map (`{}T`,
//! `{atomic}T`).

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use crate::builtin::generated::openapi::KINDS;
use crate::builtin::{builtin, builtin_kind, type_name};
use crate::table::{
    Default, Field, ListType, MapType, Patch, Presence, Scalar, Schema, Shape, Type, TypeId, Types,
    Unknown,
};

static TEXT: &str = include_str!("builtin/generated/removed.txt");

/// The built-in schema extended by the types of removed versions. The first call builds it, so a
/// server that never needs it does not pay for it.
pub fn with_removed() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let schema = Schema::extended(builtin(), read(TEXT));
        schema.index();
        schema
    })
}

/// The type of a kind of any release, and its schema. The kind may be built-in or removed.
pub fn any_kind(api_version: &str, kind: &str) -> Option<(&'static Schema, TypeId)> {
    let served = builtin_kind(api_version, kind).map(|ty| (builtin(), ty));
    served.or_else(|| Some((with_removed(), with_removed().find(&type_name(api_version, kind))?)))
}

/// The group, version and kind of a removed type, if it is a kind.
pub(crate) fn kind(type_name: &str) -> Option<(String, &str, &str)> {
    headers().find(|(name, what)| *what == "kind" && *name == type_name)?;
    let (package, kind) = type_name.rsplit_once('.')?;
    let (package, version) = package.rsplit_once('.')?;
    let name = package.rsplit_once('.').map_or(package, |(_, name)| name);
    // The group has the package's name, in most groups followed by a domain.
    let served = KINDS.iter().flat_map(|(_, kinds)| kinds.iter().map(|(group, ..)| *group));
    let mut served = served.filter(|group| group.split('.').next() == Some(name));
    Some((served.next().unwrap_or(name).to_owned(), version, kind))
}

/// The names of the types, and the rest of their header lines.
fn headers() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = TEXT.lines().filter(|line| !line.starts_with(' '));
    lines.map(|line| line.split_once(' ').unwrap_or((line, "")))
}

/// The state of the parser.
struct Reader {
    /// The id of the first type.
    first: u32,
    /// The ids by name; for lists, maps and scalars by their notation in fields.
    ids: HashMap<&'static str, TypeId>,
    /// Lists, maps and scalars, which follow the named types.
    unnamed: Vec<Type>,
    /// The number of named types.
    named: usize,
}

fn read(text: &'static str) -> Types {
    let names: Vec<&str> = headers().map(|(name, _)| name).collect();
    let first = builtin().types().len() as u32;
    let ids: HashMap<_, _> = names.iter().copied().zip((first..).map(TypeId)).collect();
    let mut reader = Reader { first, ids: ids.clone(), unnamed: Vec::new(), named: names.len() };
    let mut types: Vec<Type> = Vec::with_capacity(2 * names.len());
    let mut lines = text.lines().peekable();
    while let Some(header) = lines.next() {
        let (name, what) = header.split_once(' ').unwrap_or((header, ""));
        let mut fields = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with(' ')) {
            fields.extend(reader.field(line));
        }
        let shape = scalar(what).map_or_else(|| structure(fields), Shape::Scalar);
        types.push(Type { name: Cow::Borrowed(name), shape });
    }
    types.append(&mut reader.unnamed);
    // The file is sorted by name.
    let names = names.into_iter().map(|name| (Cow::Borrowed(name), ids[name])).collect();
    // A schema is cloned for each definition that uses it. The clones must share the types.
    Types { types: Cow::Borrowed(types.leak()), names: Cow::Borrowed(Vec::leak(names)) }
}

impl Reader {
    /// Parses a field; `None` for an invalid line, which a test rules out.
    fn field(&mut self, line: &'static str) -> Option<Field> {
        let mut words = line.split_whitespace();
        let mut field = Field {
            name: Cow::Borrowed(words.next()?),
            ty: self.reference(words.next()?)?,
            presence: presence(words.next()?)?,
            required: false,
            tag: words.next()?.parse().ok()?,
            inside: Cow::Borrowed(&[]),
            patch: Patch::REPLACE,
            default: None,
            rules: Cow::Borrowed(&[]),
        };
        for word in words {
            match word.split_once('=').unwrap_or((word, "")) {
                ("required", _) => field.required = true,
                ("replace", _) => field.patch.replace = true,
                ("retainKeys", _) => field.patch.retain_keys = true,
                ("merge", key) => {
                    field.patch.merge = true;
                    field.patch.merge_key = Cow::Borrowed(key);
                }
                ("inside", tags) => {
                    let tags: Result<Vec<u32>, _> = tags.split(',').map(str::parse).collect();
                    field.inside = tags.ok()?.into();
                }
                ("default", json) => field.default = Some(Default::Json(Cow::Borrowed(json))),
                _ => return None,
            }
        }
        Some(field)
    }

    /// The type that a field refers to. A list, a map or a scalar is created at its first
    /// occurrence.
    fn reference(&mut self, text: &'static str) -> Option<TypeId> {
        if let Some(id) = self.ids.get(text) {
            return Some(*id);
        }
        let shape = if let Some(scalar) = scalar(text) {
            Shape::Scalar(scalar)
        } else if let Some((keys, item)) = text.strip_prefix('[').and_then(|t| t.split_once(']')) {
            let list_type = match keys {
                "" => ListType::Atomic,
                "set" => ListType::Set,
                keys => ListType::Map(keys.split(',').map(Cow::Borrowed).collect()),
            };
            Shape::List { item: self.reference(item)?, list_type }
        } else if let Some((atomic, value)) = text.strip_prefix('{').and_then(|t| t.split_once('}'))
        {
            let map_type = if atomic.is_empty() { MapType::Granular } else { MapType::Atomic };
            Shape::Map { value: self.reference(value)?, map_type }
        } else {
            return builtin().find(text);
        };
        let id = TypeId(self.first + (self.named + self.unnamed.len()) as u32);
        self.unnamed.push(Type { name: Cow::Borrowed(""), shape });
        self.ids.insert(text, id);
        Some(id)
    }
}

fn structure(fields: Vec<Field>) -> Shape {
    let mut by_name: Vec<u16> = (0..fields.len() as u16).collect();
    by_name.sort_by(|a, b| fields[usize::from(*a)].name.cmp(&fields[usize::from(*b)].name));
    Shape::Struct {
        fields: fields.into(),
        by_name: by_name.into(),
        unknown: Unknown::Drop,
        map_type: MapType::Granular,
    }
}

fn presence(text: &str) -> Option<Presence> {
    Some(match text {
        "Pointer" => Presence::Pointer,
        "OmitZero" => Presence::OmitZero,
        "Always" => Presence::Always,
        "Distinct" => Presence::Distinct,
        "Null" => Presence::Null,
        _ => return None,
    })
}

fn scalar(text: &str) -> Option<Scalar> {
    Some(match text {
        "String" => Scalar::String,
        "Bool" => Scalar::Bool,
        "Int32" => Scalar::Int32,
        "Int64" => Scalar::Int64,
        "Float64" => Scalar::Float64,
        "Bytes" => Scalar::Bytes,
        "Any" => Scalar::Any,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_type_or_a_field() {
        let schema = with_removed();
        let fields = schema.types().iter().map(|ty| match &ty.shape {
            Shape::Struct { fields, .. } => fields.len(),
            _ => 0,
        });
        let lines = TEXT.lines().filter(|line| line.starts_with(' ')).count();
        assert_eq!(fields.sum::<usize>(), lines);
        assert!(schema.names().is_sorted_by(|a, b| a.0 < b.0));
        for (name, id) in schema.names() {
            assert_eq!(schema.get(*id).name, *name);
            assert_eq!(builtin().find(name), None, "{name} is served");
        }
    }

    #[test]
    fn kinds_of_any_release_are_found() {
        for (api_version, kind) in [
            ("extensions/v1beta1", "Deployment"),
            ("rbac.authorization.k8s.io/v1alpha1", "RoleBinding"),
            ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition"),
            ("apiregistration.k8s.io/v1beta1", "APIService"),
            ("autoscaling/v2beta2", "HorizontalPodAutoscalerList"),
            ("apps/v1", "Deployment"),
        ] {
            assert!(any_kind(api_version, kind).is_some(), "{api_version} {kind}");
        }
        assert!(any_kind("extensions/v1beta1", "Job").is_none());
        assert!(any_kind("extensions/v1", "Deployment").is_none());
    }
}

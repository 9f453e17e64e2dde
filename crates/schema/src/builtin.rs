//! The built-in schema: a constant table, and the constructors that the generated file uses.
//!
//! Every constructor is `const` and is evaluated by the compiler, so nothing runs at start-up.

pub(crate) mod generated;

use std::borrow::Cow;

use crate::table::{
    Default, Field, ListType, MapType, Patch, Presence, Rule, Scalar, Schema, Shape, Type, TypeId,
    Unknown,
};
use generated::openapi::KINDS;
use generated::types::{NAMES, T, TYPES};

static BUILTIN: Schema = Schema::new(Cow::Borrowed(&TYPES), Cow::Borrowed(&NAMES));

/// The types of the built-in API. A clone shares the types.
pub fn builtin() -> &'static Schema {
    &BUILTIN
}

/// The type of a built-in kind: an object, a list, or a kind whose objects are never stored.
pub fn builtin_kind(api_version: &str, kind: &str) -> Option<TypeId> {
    let (group, version) = group_version(api_version);
    let published = KINDS.iter().find(|(_, kinds)| kinds.contains(&(group, version, kind)));
    if let Some((ty, _)) = published {
        return Some(TypeId(*ty as u32));
    }
    BUILTIN.find(&type_name(api_version, kind))
}

/// Whether the type is in the built-in table: the schema's own, or that of the one that it extends.
pub fn is_builtin(schema: &Schema, ty: TypeId) -> bool {
    let table = schema.base().unwrap_or(schema);
    ty.0 < table.types().len() as u32
        && std::ptr::eq(table.types().as_ptr(), builtin().types().as_ptr())
}

/// The type name of a kind, by the rule that nearly all types follow.
pub(crate) fn type_name(api_version: &str, kind: &str) -> String {
    let (group, version) = group_version(api_version);
    // Discovery documents have no version, and all kinds of the apimachinery package may use `v1`.
    let machinery = matches!(api_version, "" | "v1" | "meta.k8s.io/v1");
    let package = match (group, group.split('.').next().unwrap_or_default()) {
        _ if machinery => "io.k8s.apimachinery.pkg.apis.meta".to_owned(),
        ("apiextensions.k8s.io", name) => format!("io.k8s.apiextensions-apiserver.pkg.apis.{name}"),
        ("apiregistration.k8s.io", name) => format!("io.k8s.kube-aggregator.pkg.apis.{name}"),
        (_, "") => "io.k8s.api.core".to_owned(),
        (_, name) => format!("io.k8s.api.{name}"),
    };
    let version = if machinery { "v1" } else { version };
    format!("{package}.{version}.{kind}")
}

fn group_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// A constant list of texts.
macro_rules! texts {
    ($($text:literal),*) => {
        ::std::borrow::Cow::Borrowed(const { &[$(::std::borrow::Cow::Borrowed($text)),*] })
    };
}

/// A constant list of rules.
macro_rules! rules {
    ($($rule:expr),*) => { const { &[$($rule),*] } };
}

/// A struct: its name, its map type and its rows.
macro_rules! structure {
    ($name:literal, $map_type:expr => [$($row:expr,)*]) => {{
        const FIELDS: &[$crate::table::Field] = &[$($row.field()),*];
        const BY_NAME: &[u16] = &$crate::builtin::by_name::<{ FIELDS.len() }>(FIELDS);
        $crate::builtin::struct_type($name, $map_type, BY_NAME, FIELDS)
    }};
}

pub(crate) use {rules, structure, texts};

/// A field in the notation of the generated table; everything but the first four values is rare.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    name: &'static str,
    ty: T,
    presence: Presence,
    tag: u32,
    required: bool,
    inside: &'static [u32],
    merge: Option<&'static str>,
    replace: bool,
    retain_keys: bool,
    default: Constant,
    rules: &'static [Rule],
}

#[derive(Clone, Copy)]
enum Constant {
    None,
    Text(&'static str),
    Int(i64),
    Bool(bool),
    Json(&'static str),
}

pub(crate) const fn row(name: &'static str, ty: T, presence: Presence, tag: u32) -> Row {
    Row {
        name,
        ty,
        presence,
        tag,
        required: false,
        inside: &[],
        merge: None,
        replace: false,
        retain_keys: false,
        default: Constant::None,
        rules: &[],
    }
}

#[allow(dead_code, reason = "which of these are used depends on the release")]
impl Row {
    pub(crate) const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    pub(crate) const fn inside(self, inside: &'static [u32]) -> Self {
        Self { inside, ..self }
    }

    pub(crate) const fn merge(self, key: &'static str) -> Self {
        Self { merge: Some(key), ..self }
    }

    pub(crate) const fn replace(self) -> Self {
        Self { replace: true, ..self }
    }

    pub(crate) const fn retain_keys(self) -> Self {
        Self { retain_keys: true, ..self }
    }

    pub(crate) const fn default_text(self, text: &'static str) -> Self {
        Self { default: Constant::Text(text), ..self }
    }

    pub(crate) const fn default_int(self, int: i64) -> Self {
        Self { default: Constant::Int(int), ..self }
    }

    pub(crate) const fn default_bool(self, bool: bool) -> Self {
        Self { default: Constant::Bool(bool), ..self }
    }

    pub(crate) const fn default_json(self, json: &'static str) -> Self {
        Self { default: Constant::Json(json), ..self }
    }

    pub(crate) const fn rules(self, rules: &'static [Rule]) -> Self {
        Self { rules, ..self }
    }

    pub(crate) const fn field(self) -> Field {
        Field {
            name: Cow::Borrowed(self.name),
            ty: id(self.ty),
            presence: self.presence,
            required: self.required,
            tag: self.tag,
            inside: Cow::Borrowed(self.inside),
            patch: Patch {
                merge: self.merge.is_some(),
                replace: self.replace,
                retain_keys: self.retain_keys,
                merge_key: Cow::Borrowed(match self.merge {
                    Some(key) => key,
                    None => "",
                }),
            },
            default: match self.default {
                Constant::None => None,
                Constant::Text(text) => Some(Default::String(Cow::Borrowed(text))),
                Constant::Int(int) => Some(Default::Int(int)),
                Constant::Bool(bool) => Some(Default::Bool(bool)),
                Constant::Json(json) => Some(Default::Json(Cow::Borrowed(json))),
            },
            rules: Cow::Borrowed(self.rules),
        }
    }
}

const fn id(ty: T) -> TypeId {
    TypeId(ty as u32)
}

const fn unnamed(shape: Shape) -> Type {
    Type { name: Cow::Borrowed(""), shape }
}

pub(crate) const fn text(text: &'static str) -> Cow<'static, str> {
    Cow::Borrowed(text)
}

pub(crate) const fn named(name: &'static str, ty: T) -> (Cow<'static, str>, TypeId) {
    (Cow::Borrowed(name), id(ty))
}

pub(crate) const fn scalar(name: &'static str, scalar: Scalar) -> Type {
    Type { name: Cow::Borrowed(name), shape: Shape::Scalar(scalar) }
}

pub(crate) const fn map(value: T, map_type: MapType) -> Type {
    unnamed(Shape::Map { value: id(value), map_type })
}

pub(crate) const fn list(item: T) -> Type {
    unnamed(Shape::List { item: id(item), list_type: ListType::Atomic })
}

pub(crate) const fn set(item: T) -> Type {
    unnamed(Shape::List { item: id(item), list_type: ListType::Set })
}

pub(crate) const fn list_by(item: T, keys: Cow<'static, [Cow<'static, str>]>) -> Type {
    unnamed(Shape::List { item: id(item), list_type: ListType::Map(keys) })
}

pub(crate) const fn struct_type(
    name: &'static str,
    map_type: MapType,
    by_name: &'static [u16],
    fields: &'static [Field],
) -> Type {
    Type {
        name: Cow::Borrowed(name),
        shape: Shape::Struct {
            fields: Cow::Borrowed(fields),
            by_name: Cow::Borrowed(by_name),
            unknown: Unknown::Drop,
            map_type,
        },
    }
}

/// The indices of `fields` sorted by name: an insertion sort at compile time.
pub(crate) const fn by_name<const N: usize>(fields: &[Field]) -> [u16; N] {
    let mut order = [0; N];
    let mut i = 0;
    while i < N {
        let mut at = i;
        while at > 0 && precedes(&fields[i], &fields[order[at - 1] as usize]) {
            order[at] = order[at - 1];
            at -= 1;
        }
        order[at] = i as u16;
        i += 1;
    }
    order
}

/// Whether the name of `a` sorts before that of `b`; the names in the table are all borrowed.
const fn precedes(a: &Field, b: &Field) -> bool {
    let (Cow::Borrowed(a), Cow::Borrowed(b)) = (&a.name, &b.name) else { return false };
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() {
        if a[i] != b[i] {
            return a[i] < b[i];
        }
        i += 1;
    }
    a.len() < b.len()
}

#[cfg(test)]
mod tests;

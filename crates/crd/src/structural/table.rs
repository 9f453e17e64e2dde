//! The table derived from a structural schema, for decoding, pruning and ownership.

use std::borrow::Cow;

use pintle_schema::{
    Default, Field, ListType, MapType, Patch, Presence, Scalar, Schema, Shape, Type as TableType,
    TypeId, Types, Unknown, builtin,
};
use pintle_value::{Str, Value};

use super::{Additional, List, Structural, Type};

/// The type name of object metadata.
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The members that every object has, regardless of its schema.
const OF_OBJECTS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The type of a schema's objects: the first type that [`types`] creates.
pub(crate) fn root() -> TypeId {
    TypeId(builtin().types().len() as u32)
}

/// The types of a schema; the type of its objects comes first and has this name.
pub(crate) fn types(schema: &Structural, name: &str) -> Types {
    let mut table = Table { types: Vec::new() };
    let root = table.reserve();
    let shape = table.structure(schema, true);
    table.set(root, name.to_owned(), shape);
    Types { types: table.types.into(), names: vec![(name.to_owned().into(), root)].into() }
}

/// A table that is created from a structural schema on first use.
pub(crate) fn schema(
    structural: impl Fn() -> std::sync::Arc<Structural> + Send + Sync + 'static,
    name: String,
) -> Schema {
    Schema::extending(builtin(), move || types(&structural(), &name))
}

struct Table {
    types: Vec<TableType>,
}

impl Table {
    fn reserve(&mut self) -> TypeId {
        let id = TypeId(root().0 + self.types.len() as u32);
        self.types.push(TableType { name: "".into(), shape: Shape::Scalar(Scalar::Any) });
        id
    }

    fn set(&mut self, id: TypeId, name: String, shape: Shape) {
        self.types[(id.0 - root().0) as usize] = TableType { name: name.into(), shape };
    }

    fn add(&mut self, schema: &Structural) -> TypeId {
        let id = self.reserve();
        let shape = self.shape(schema);
        self.set(id, String::new(), shape);
        id
    }

    fn shape(&mut self, schema: &Structural) -> Shape {
        // The schema keeps what is below a value of a wrong type.
        let scalar =
            |scalar| Shape::Scalar(if schema.preserve_unknown { Scalar::Any } else { scalar });
        if schema.int_or_string {
            return scalar(Scalar::IntOrString);
        }
        match schema.ty {
            Some(Type::String) => scalar(Scalar::String),
            Some(Type::Integer) => scalar(Scalar::Int64),
            Some(Type::Number) => scalar(Scalar::Float64),
            Some(Type::Boolean) => scalar(Scalar::Bool),
            Some(Type::Array) => self.list(schema),
            _ if schema.embedded => self.structure(schema, true),
            _ => match schema.additional.as_deref() {
                Some(Additional::Schema(value)) if schema.properties.is_empty() => {
                    Shape::Map { value: self.add(value), map_type: map_type(schema) }
                }
                // The schema says nothing about the values of the members.
                Some(Additional::Any(true)) if schema.properties.is_empty() => {
                    Shape::Map { value: self.unspecified(), map_type: map_type(schema) }
                }
                _ if schema.ty.is_none() && schema.properties.is_empty() => {
                    Shape::Scalar(Scalar::Any)
                }
                _ => self.structure(schema, false),
            },
        }
    }

    fn list(&mut self, schema: &Structural) -> Shape {
        let item = match &schema.items {
            Some(items) => self.add(items),
            None => self.unspecified(),
        };
        let list_type = match &schema.list {
            List::Atomic => ListType::Atomic,
            List::Set => ListType::Set,
            List::Map(keys) => {
                let keys: Vec<_> = keys.iter().map(|key| Cow::Owned(key.to_string())).collect();
                if let Some(items) = &schema.items {
                    self.default_keys(item, items, &keys);
                }
                ListType::Map(keys.into())
            }
        };
        Shape::List { item, list_type }
    }

    /// Declares the defaults of the keys of a list's items: an item that omits a key is identified
    /// by its default.
    fn default_keys(&mut self, item: TypeId, items: &Structural, keys: &[Cow<'static, str>]) {
        let Shape::Struct { fields, .. } = &mut self.types[(item.0 - root().0) as usize].shape
        else {
            return;
        };
        for field in fields.to_mut().iter_mut().filter(|field| keys.contains(&field.name)) {
            let property = items.properties.iter().find(|(name, _)| **name == *field.name);
            field.default = property.and_then(|(_, p)| p.default.as_deref()).and_then(scalar);
        }
    }

    /// The type of unspecified values; all their members are undeclared.
    fn unspecified(&mut self) -> TypeId {
        let id = self.reserve();
        let shape = Shape::Struct {
            fields: Cow::Borrowed(&[]),
            by_name: Cow::Borrowed(&[]),
            unknown: Unknown::Drop,
            map_type: MapType::Granular,
        };
        self.set(id, String::new(), shape);
        id
    }

    /// An object with declared members; `is_object` for a whole Kubernetes object.
    fn structure(&mut self, schema: &Structural, is_object: bool) -> Shape {
        let mut fields: Vec<Field> = Vec::with_capacity(schema.properties.len() + 3);
        for (name, property) in &schema.properties {
            if !(is_object && OF_OBJECTS.contains(&name.as_str())) {
                let ty = self.add(property);
                fields.push(field(name, ty));
            }
        }
        if is_object {
            for name in ["apiVersion", "kind"] {
                let id = self.reserve();
                self.set(id, String::new(), Shape::Scalar(Scalar::String));
                fields.push(field(&name.into(), id));
            }
            // A test ensures that the built-in schema has this type.
            if let Some(metadata) = builtin().find(OBJECT_META) {
                fields.push(field(&"metadata".into(), metadata));
            }
            fields.sort_by(|a, b| a.name.cmp(&b.name));
        }
        let by_name: Vec<u16> = (0..u16::MAX).take(fields.len()).collect();
        let keeps = schema.preserve_unknown
            || matches!(schema.additional.as_deref(), Some(Additional::Any(true)));
        Shape::Struct {
            fields: fields.into(),
            by_name: by_name.into(),
            unknown: if keeps { Unknown::Keep } else { Unknown::Drop },
            map_type: map_type(schema),
        }
    }
}

const fn map_type(schema: &Structural) -> MapType {
    if schema.atomic_map { MapType::Atomic } else { MapType::Granular }
}

fn scalar(value: &Value) -> Option<Default> {
    match value {
        Value::String(text) => Some(Default::String(text.to_string().into())),
        Value::Int(n) => Some(Default::Int(*n)),
        Value::Bool(b) => Some(Default::Bool(*b)),
        _ => None,
    }
}

fn field(name: &Str, ty: TypeId) -> Field {
    Field {
        name: name.to_string().into(),
        ty,
        presence: Presence::Pointer,
        required: false,
        tag: 0,
        inside: Cow::Borrowed(&[]),
        patch: Patch::REPLACE,
        default: None,
        rules: Cow::Borrowed(&[]),
    }
}

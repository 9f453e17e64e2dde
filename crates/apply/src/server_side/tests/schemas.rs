//! Schemas in a short notation, which the case files explain.

use std::borrow::Cow;
use std::collections::BTreeMap;

use pintle_schema::{
    Default, Field, ListType, MapType, Patch, Presence, Scalar, Schema, Shape, Type, TypeId,
    Unknown,
};
use pintle_value::{Value, json, yaml};

/// The named schemas of a case file, and its rows.
pub(in crate::server_side) fn cases(text: &str) -> (BTreeMap<String, Schema>, Vec<Value>) {
    let file = yaml::parse(text.as_bytes()).expect("the file is YAML");
    let schemas = file.get("schemas").and_then(Value::as_object).expect("a file has schemas");
    let schemas = schemas.iter().map(|(name, types)| (name.to_string(), schema(types))).collect();
    let rows = file.get("rows").and_then(Value::as_array).expect("a file has rows");
    (schemas, rows.to_vec())
}

/// A schema of named types.
pub(in crate::server_side) fn schema(types: &Value) -> Schema {
    let definitions = types.as_object().expect("types are an object");
    let names: Vec<&str> = definitions.keys().map(|name| name.as_str()).collect();
    let blank = Type { name: "".into(), shape: Shape::Scalar(Scalar::Any) };
    let mut reader = Reader { types: vec![blank; names.len()], names };
    for (at, (name, definition)) in definitions.iter().enumerate() {
        let shape = match definition {
            Value::Object(fields) => reader.structure(name, fields),
            expression => reader.shape(expression.as_str().expect("an expression is text")),
        };
        reader.types[at] = Type { name: name.to_string().into(), shape };
    }
    let names = reader.names.iter().zip(0..).map(|(n, i)| (n.to_string().into(), TypeId(i)));
    let names: Vec<(Cow<'static, str>, TypeId)> = names.collect();
    Schema::new(reader.types.into(), names.into())
}

/// The schema, and the type that an expression denotes in it.
pub(in crate::server_side) fn with_type(schema: &Schema, expression: &str) -> (Schema, TypeId) {
    let names = schema.names().iter().map(|(name, _)| name.as_ref()).collect();
    let mut reader = Reader { types: schema.types().to_vec(), names };
    let ty = reader.ty(expression);
    (Schema::new(reader.types.into(), schema.names().to_vec().into()), ty)
}

/// The pseudo-field for members that are not declared.
const REST: &str = "...";

struct Reader<'a> {
    types: Vec<Type>,
    names: Vec<&'a str>,
}

impl Reader<'_> {
    fn structure(&mut self, name: &str, members: &pintle_value::Map) -> Shape {
        let named = members.iter().filter(|(name, _)| name.as_str() != REST);
        let fields: Vec<Field> = named.map(|(name, e)| self.field(name, e)).collect();
        Shape::Struct {
            by_name: (0..).take(fields.len()).collect::<Vec<u16>>().into(),
            fields: fields.into(),
            unknown: if members.contains_key(REST) { Unknown::Keep } else { Unknown::Drop },
            map_type: map_type(name.ends_with('!')),
        }
    }

    fn field(&mut self, name: &str, expression: &Value) -> Field {
        let expression = expression.as_str().expect("an expression is text");
        let (ty, default) = match expression.split_once(" = ") {
            Some((ty, default)) => (ty, Some(default)),
            None => (expression, None),
        };
        let default = default.map(|text| match json::parse(text.as_bytes()).expect("JSON") {
            Value::String(text) => Default::String(text.to_string().into()),
            Value::Int(n) => Default::Int(n),
            Value::Bool(b) => Default::Bool(b),
            _ => Default::Json(text.to_owned().into()),
        });
        Field {
            name: name.to_owned().into(),
            ty: self.ty(ty),
            presence: Presence::Pointer,
            required: false,
            tag: 0,
            inside: Cow::Borrowed(&[]),
            patch: Patch::REPLACE,
            default,
            rules: Cow::Borrowed(&[]),
        }
    }

    fn ty(&mut self, expression: &str) -> TypeId {
        if let Ok(at) = self.names.binary_search(&expression) {
            return TypeId(u32::try_from(at).expect("few types"));
        }
        let shape = self.shape(expression);
        self.types.push(Type { name: "".into(), shape });
        TypeId(u32::try_from(self.types.len() - 1).expect("few types"))
    }

    fn shape(&mut self, expression: &str) -> Shape {
        let inner = |open, close| expression.strip_prefix(open)?.strip_suffix(close);
        if let Some(item) = inner("[", "]") {
            return Shape::List { item: self.ty(item), list_type: ListType::Atomic };
        }
        if let Some(item) = inner("{", "}") {
            let Some((item, keys)) = item.rsplit_once(" by ") else {
                return Shape::List { item: self.ty(item), list_type: ListType::Set };
            };
            let keys: Vec<_> = keys.split(", ").map(|key| key.to_owned().into()).collect();
            return Shape::List { item: self.ty(item), list_type: ListType::Map(keys.into()) };
        }
        if let Some(value) = inner("<", ">").or(inner("<", ">!")) {
            let map_type = map_type(expression.ends_with('!'));
            return Shape::Map { value: self.ty(value), map_type };
        }
        Shape::Scalar(match expression {
            "string" => Scalar::String,
            "number" => Scalar::Float64,
            "boolean" => Scalar::Bool,
            "scalar" => Scalar::IntOrString,
            "any" => Scalar::Any,
            other => panic!("no type {other}"),
        })
    }
}

fn map_type(atomic: bool) -> MapType {
    if atomic { MapType::Atomic } else { MapType::Granular }
}

//! Properties of every tree and every type: bytes, YAML and trees with the same content decode
//! equally.

#![allow(clippy::unwrap_used)]

use pintle_schema::{
    Decoded, Error, Field, Format, Scalar, Schema, Shape, TypeId, builtin, conform, decode,
    default, encode, protobuf, validate,
};
use pintle_value::{Map, Str, Value, cbor, json, yaml};
use proptest::prelude::*;

/// Generates trees that mostly match a type, from a seed.
struct Maker {
    state: u64,
    budget: u32,
}

impl Maker {
    fn below(&mut self, bound: u64) -> u64 {
        // SplitMix64.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len() as u64) as usize]
    }

    fn value(&mut self, schema: &Schema, ty: TypeId, noise: u64) -> Value {
        self.budget = self.budget.saturating_sub(1);
        if noise > 0 && self.below(noise) == 0 {
            return self.anything(3);
        }
        let many = if self.budget == 0 { 1 } else { 3 };
        match &schema.get(ty).shape {
            Shape::Scalar(Scalar::Any) if schema.get(ty).name.contains("JSONSchemaPropsOr") => {
                self.union(schema, noise)
            }
            Shape::Scalar(scalar) => self.scalar(*scalar),
            Shape::List { item, .. } => (0..self.below(many))
                .map(|_| self.value(schema, *item, noise))
                .collect::<Vec<_>>()
                .into(),
            Shape::Map { value, .. } => (0..self.below(many))
                .map(|_| (Str::from(self.text()), self.value(schema, *value, noise)))
                .collect::<Map>()
                .into(),
            Shape::Struct { fields, .. } => {
                let mut members = Map::new();
                for field in fields.iter() {
                    if self.below(if self.budget == 0 { 20 } else { 2 }) == 0 {
                        members.insert(&*field.name, self.value(schema, field.ty, noise));
                    }
                }
                if noise > 0 && self.below(noise) == 0 {
                    members.insert(self.text(), self.anything(2));
                }
                members.into()
            }
        }
    }

    /// A value of one of the union types.
    fn union(&mut self, schema: &Schema, noise: u64) -> Value {
        let ty = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
        match schema.find(ty) {
            Some(ty) if self.below(2) == 0 => self.value(schema, ty, noise),
            _ => Value::Null,
        }
    }

    fn text(&mut self) -> &'static str {
        self.pick(&[
            "",
            "a",
            "yes",
            "5",
            "a: b",
            "é\u{2028}",
            "x\ny",
            "long text that does not fit",
        ])
    }

    fn scalar(&mut self, scalar: Scalar) -> Value {
        let text = |text: &str| Value::from(text);
        match scalar {
            Scalar::String => self.text().into(),
            Scalar::Bool => Value::Bool(self.below(2) == 0),
            Scalar::Int32 | Scalar::Int64 => Value::Int(self.pick(&[0, 1, -1, 2_147_483_647])),
            Scalar::Float64 => self.pick(&[Value::Int(0), Value::Float(0.5)].each_ref()).clone(),
            Scalar::Bytes => text(self.pick(&["", "aGk=", "aG\nk=", "aGl="])),
            Scalar::Quantity => match self.below(3) {
                0 => Value::Float(1.5),
                1 => Value::Int(0),
                _ => text(self.pick(&["0", "100m", "1000m", "1Ki", "1e3", "0.5", "1.1Gi"])),
            },
            Scalar::Time => text(self.pick(&[
                "2024-01-01T00:00:00Z",
                "2024-01-01T00:00:00.5+01:00",
                "0001-01-01T00:00:00Z",
            ])),
            Scalar::MicroTime => text("2024-01-01T00:00:00.000001+02:00"),
            Scalar::Duration => text(self.pick(&["0s", "90m", "1h"])),
            Scalar::IntOrString => {
                self.pick(&[Value::Int(0), Value::from("http")].each_ref()).clone()
            }
            Scalar::RawExtension | Scalar::Any => self.anything(3),
            Scalar::Fields => Value::raw(json::to_string(&self.anything(3)).into()),
        }
    }

    fn anything(&mut self, depth: u32) -> Value {
        match self.below(if depth == 0 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => Value::Bool(true),
            2 => Value::Int(7),
            3 => Value::Float(0.25),
            4 => self.text().into(),
            5 => (0..self.below(3)).map(|_| self.anything(depth - 1)).collect::<Vec<_>>().into(),
            _ => (0..self.below(3))
                .map(|_| (Str::from(self.text()), self.anything(depth - 1)))
                .collect::<Map>()
                .into(),
        }
    }
}

fn conformed(ty: TypeId, tree: &Value) -> Result<Decoded, Error> {
    let mut value = tree.clone();
    let problems = conform(builtin(), ty, &mut value)?;
    Ok(Decoded { value, problems })
}

fn check(ty: TypeId, tree: &Value) -> Result<(), TestCaseError> {
    let schema = builtin();
    let text = json::to_string(tree);
    let decoded = decode(schema, ty, text.as_bytes(), Format::Json);
    prop_assert_eq!(&decoded, &conformed(ty, tree));
    let mut as_yaml = Vec::new();
    yaml::write(tree, &mut as_yaml);
    let from_yaml = decode(schema, ty, &as_yaml, Format::Yaml);
    prop_assert_eq!(
        from_yaml.map(|d| d.value).ok(),
        decoded.as_ref().ok().map(|d| d.value.clone())
    );
    let Ok(Decoded { value, .. }) = decoded else { return Ok(()) };

    // A normalized tree is stable in every encoding.
    prop_assert_eq!(
        conformed(ty, &value),
        Ok(Decoded { value: value.clone(), problems: Vec::new() })
    );
    let mut out = Vec::new();
    encode::write(schema, ty, &value, &mut out);
    prop_assert_eq!(json::parse(&out), json::parse(json::to_string(&value).as_bytes()));
    let mut defaulted = value;
    default::apply(schema, ty, &mut defaulted);
    prop_assert_eq!(conformed(ty, &defaulted).map(|d| d.value), Ok(defaulted.clone()));
    prop_assert!(validate::validate(schema, ty, &defaulted, Some(&defaulted)).is_empty());
    validate::validate(schema, ty, &defaulted, None);
    Ok(())
}

/// Whether Protobuf can represent every value of a type. Some types have no messages (Tables), and
/// a union type can hold any tree.
fn has_message(name: &str, ty: TypeId) -> bool {
    let Shape::Struct { fields, .. } = &builtin().get(ty).shape else { return false };
    let is_in_protobuf =
        |field: &Field| field.tag != 0 || matches!(&*field.name, "kind" | "apiVersion");
    !name.contains("apiextensions") && fields.iter().all(is_in_protobuf)
}

/// Removes the members that only the envelope of a message has; embedded objects have no envelope.
fn remove_kinds(ty: TypeId, value: &mut Value) {
    match (&builtin().get(ty).shape, value) {
        (Shape::Struct { fields, .. }, Value::Object(members)) => {
            for field in fields.iter() {
                if field.tag == 0 {
                    members.remove(&field.name);
                } else if let Some(value) = members.get_mut(&field.name) {
                    remove_kinds(field.ty, value);
                }
            }
        }
        (Shape::List { item, .. }, Value::Array(items)) => {
            items.iter_mut().for_each(|value| remove_kinds(*item, value));
        }
        (Shape::Map { value: ty, .. }, Value::Object(members)) => {
            members.iter_mut().for_each(|(_, value)| remove_kinds(*ty, value));
        }
        _ => {}
    }
}

/// The part of a value that a message can represent: a message has no empty and no zero values.
fn representable(value: &Value) -> Option<Value> {
    match value {
        Value::Object(members) => {
            let representable = members
                .iter()
                .filter_map(|(key, value)| Some((key.clone(), representable(value)?)));
            let representable: Map = representable.collect();
            (!representable.is_empty()).then(|| representable.into())
        }
        Value::Array(items) => {
            let representable = items
                .iter()
                .map(|item| representable(item).unwrap_or_default())
                .collect::<Vec<_>>();
            (!representable.is_empty()).then(|| representable.into())
        }
        Value::Null | Value::Bool(false) | Value::Int(0) => None,
        Value::String(text) => (!matches!(text.as_str(), "" | "0" | "0s")).then(|| value.clone()),
        other => Some(other.clone()),
    }
}

/// Encodes a normalized tree in the binary encodings and decodes it again.
fn check_binary(ty: TypeId, value: &Value) -> Result<(), TestCaseError> {
    let schema = builtin();
    let mut bytes = Vec::new();
    cbor::write(value, &mut bytes);
    let mut read = cbor::parse(&bytes).unwrap();
    prop_assert_eq!(conform(schema, ty, &mut read), Ok(Vec::new()));
    prop_assert_eq!(&read, value);

    let mut message = Vec::new();
    protobuf::encode(schema, ty, value, &mut message);
    let read = protobuf::decode(schema, ty, &message).unwrap();
    prop_assert_eq!(representable(&read), representable(value));
    let mut again = Vec::new();
    protobuf::encode(schema, ty, &read, &mut again);
    prop_assert_eq!(again, message);
    Ok(())
}

proptest! {
    #[test]
    fn all_encodings_are_equal(seed: u64, which: prop::sample::Index) {
        let names = builtin().names().iter();
        let names: Vec<_> = names.filter(|(name, ty)| has_message(name, *ty)).collect();
        let (name, ty) = names[which.index(names.len())];
        let mut tree = Maker { state: seed, budget: 60 }.value(builtin(), *ty, 0);
        remove_kinds(*ty, &mut tree);
        // The envelope has the `kind` of every tree, and a message of another kind is not decoded.
        let members = tree.as_object_mut().unwrap();
        match builtin().field(*ty, "kind") {
            Some(field) if field.tag == 0 => members.insert("kind", name.rsplit('.').next().unwrap()),
            _ => members.remove("kind"),
        };
        let value = conformed(*ty, &tree).unwrap().value;
        check_binary(*ty, &value)?;
    }

    #[test]
    fn all_forms_of_a_tree_decode_equally(seed: u64, which: prop::sample::Index, noisy: bool) {
        let (_, ty) = builtin().names()[which.index(builtin().names().len())];
        let mut maker = Maker { state: seed, budget: 60 };
        let tree = maker.value(builtin(), ty, if noisy { 60 } else { 0 });
        check(ty, &tree)?;
    }

    #[test]
    fn trees_of_the_type_are_accepted(seed: u64, which: prop::sample::Index) {
        let (_, ty) = builtin().names()[which.index(builtin().names().len())];
        let tree = Maker { state: seed, budget: 60 }.value(builtin(), ty, 0);
        let decoded = conformed(ty, &tree).unwrap();
        prop_assert_eq!(decoded.problems, Vec::new());
    }
}

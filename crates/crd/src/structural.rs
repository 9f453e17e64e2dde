//! A structural schema: the schema of a version of a CustomResourceDefinition.
//!
//! A tree holds the structure (types, members, lists) and the value validations attached to it; the
//! schemas under `allOf`, `anyOf`, `oneOf` and `not` are trees of the same kind. Decoding,
//! ownership and pruning use the table that [`table`] derives; defaulting and validation walk the
//! tree itself.
//!
//! Reading never fails: a stored definition was validated when it was written, and keywords that
//! are not supported any more are ignored.

mod choices;
mod default;
mod expression;
mod pattern;
pub(crate) mod table;

use std::sync::Arc;

use pintle_value::{DEPTH_MAX, Map, Path, Str, Value};

use crate::shown::step;

use choices::Choices;
pub(crate) use expression::Expression;
use pattern::{Pattern, Patterns};

/// A node of a schema.
#[derive(Debug, Default)]
pub(crate) struct Structural {
    /// `None` if any type is allowed.
    pub(crate) ty: Option<Type>,
    pub(crate) nullable: bool,
    pub(crate) int_or_string: bool,
    pub(crate) preserve_unknown: bool,
    pub(crate) embedded: bool,
    pub(crate) list: List,
    pub(crate) atomic_map: bool,
    pub(crate) default: Option<Box<Value>>,
    /// Sorted by name.
    pub(crate) properties: Box<[(Str, Structural)]>,
    pub(crate) additional: Option<Box<Additional>>,
    pub(crate) items: Option<Box<Structural>>,
    pub(crate) rules: Option<Box<Rules>>,
    /// `x-kubernetes-validations`
    pub(crate) expressions: Box<[Expression]>,
}

/// The JSON types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl Type {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }

    /// The type's name in schemas.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// `x-kubernetes-list-type`, with its keys.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum List {
    #[default]
    Atomic,
    Set,
    Map(Box<[Str]>),
}

/// `additionalProperties`.
#[derive(Debug)]
pub(crate) enum Additional {
    /// Whether undeclared members are allowed.
    Any(bool),
    Schema(Structural),
}

/// The value validations of a node.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    pub(crate) format: Str,
    pub(crate) maximum: Option<f64>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) minimum: Option<f64>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) max_length: Option<i64>,
    pub(crate) min_length: Option<i64>,
    pub(crate) pattern: Option<Arc<Pattern>>,
    pub(crate) max_items: Option<i64>,
    pub(crate) min_items: Option<i64>,
    pub(crate) max_properties: Option<i64>,
    pub(crate) min_properties: Option<i64>,
    pub(crate) required: Vec<Str>,
    pub(crate) enumeration: Choices,
    pub(crate) all_of: Vec<Structural>,
    pub(crate) any_of: Vec<Structural>,
    pub(crate) one_of: Vec<Structural>,
    pub(crate) not: Option<Structural>,
}

impl Structural {
    /// Reads a schema (`openAPIV3Schema`).
    pub(crate) fn read(schema: &Value) -> Self {
        Self::read_at(schema, &mut Patterns::default(), 0)
    }

    fn read_at(schema: &Value, patterns: &mut Patterns, depth: usize) -> Self {
        if depth > DEPTH_MAX {
            return Self { preserve_unknown: true, ..Self::default() };
        }
        let text = |key: &str| schema.str_at(&[key]).unwrap_or_default();
        let flag = |key: &str| schema.get(key).and_then(Value::as_bool).unwrap_or(false);
        let rules = Rules::read(schema, patterns, depth).map(Box::new);
        let mut below = |value: &Value| Self::read_at(value, patterns, depth + 1);
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties = properties.into_iter().flat_map(Map::iter);
        let additional = schema.get("additionalProperties").map(|additional| {
            Box::new(match additional {
                Value::Bool(any) => Additional::Any(*any),
                schema => Additional::Schema(below(schema)),
            })
        });
        let mut read = Self {
            ty: Type::named(text("type")),
            nullable: flag("nullable"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            list: match text("x-kubernetes-list-type") {
                "set" => List::Set,
                "map" => List::Map(texts(schema, "x-kubernetes-list-map-keys").collect()),
                _ => List::Atomic,
            },
            atomic_map: text("x-kubernetes-map-type") == "atomic",
            default: schema.get("default").cloned().map(Box::new),
            properties: properties.map(|(name, schema)| (name.clone(), below(schema))).collect(),
            additional,
            items: schema.get("items").filter(|i| i.as_object().is_some()).map(|i| below(i).into()),
            rules,
            expressions: Expression::read(schema),
        };
        if let Some(mut default) = read.default.take() {
            read.prune_metadata(&mut default);
            read.default = Some(default);
        }
        if read.embedded {
            read.drop_unknown_metadata_defaults();
        }
        read
    }

    /// Sets the schema to keep undeclared fields, at every level.
    pub(crate) fn keep_unknown(&mut self) {
        self.preserve_unknown |= matches!(self.ty, None | Some(Type::Object));
        self.properties.iter_mut().for_each(|(_, schema)| schema.keep_unknown());
        self.items.iter_mut().for_each(|schema| schema.keep_unknown());
        if let Some(Additional::Schema(schema)) = self.additional.as_deref_mut() {
            schema.keep_unknown();
        }
    }

    /// The schema of a declared member.
    pub(crate) fn property(&self, name: &str) -> Option<&Self> {
        let at = self.properties.binary_search_by(|(n, _)| n.as_str().cmp(name)).ok()?;
        Some(&self.properties[at].1)
    }

    /// The schema of undeclared members.
    pub(crate) fn additional(&self) -> Option<&Self> {
        match self.additional.as_deref()? {
            Additional::Schema(schema) => Some(schema),
            Additional::Any(_) => None,
        }
    }

    /// The schema of a member: its own, or that of undeclared members.
    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        self.property(name).or_else(|| self.additional())
    }

    /// Visits the members or items of a value that have a schema, with their paths.
    pub(crate) fn each_part(
        &self,
        value: &Value,
        path: &mut Path,
        mut visit: impl FnMut(&Self, &Value, &mut Path),
    ) {
        let back = path.len();
        match value {
            Value::Object(members) => {
                for (name, member) in members.iter() {
                    let schema = match self.property(name) {
                        Some(property) => {
                            path.push_field(step(back, name));
                            property
                        }
                        None => {
                            let Some(additional) = self.additional() else { continue };
                            path.push_key(step(back, name));
                            additional
                        }
                    };
                    visit(schema, member, path);
                    path.truncate(back);
                }
            }
            Value::Array(items) => {
                let Some(schema) = &self.items else { return };
                for (i, item) in items.iter().enumerate() {
                    path.push_index(i);
                    visit(schema, item, path);
                    path.truncate(back);
                }
            }
            _ => {}
        }
    }
}

impl Rules {
    /// Reads the value validations of a schema; `None` if it has none.
    fn read(schema: &Value, patterns: &mut Patterns, depth: usize) -> Option<Self> {
        if !schema.as_object().is_some_and(|members| members.keys().any(|key| is_rule(key))) {
            return None;
        }
        let number = |key: &str| schema.get(key).and_then(number);
        let count = |key: &str| schema.get(key).and_then(Value::as_int);
        let flag = |key: &str| schema.get(key).and_then(Value::as_bool).unwrap_or(false);
        let list = |key: &str| schema.get(key).and_then(Value::as_array).unwrap_or_default();
        let text = |key: &str| schema.str_at(&[key]).filter(|text| !text.is_empty());
        let pattern = text("pattern").map(|pattern| patterns.get(pattern));
        let mut below = |value: &Value| Structural::read_at(value, patterns, depth + 1);
        Some(Self {
            format: text("format").unwrap_or_default().into(),
            maximum: number("maximum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            minimum: number("minimum"),
            exclusive_minimum: flag("exclusiveMinimum"),
            multiple_of: number("multipleOf"),
            max_length: count("maxLength"),
            min_length: count("minLength"),
            pattern,
            max_items: count("maxItems"),
            min_items: count("minItems"),
            max_properties: count("maxProperties"),
            min_properties: count("minProperties"),
            required: texts(schema, "required").collect(),
            enumeration: Choices::new(list("enum")),
            all_of: list("allOf").iter().map(&mut below).collect(),
            any_of: list("anyOf").iter().map(&mut below).collect(),
            one_of: list("oneOf").iter().map(&mut below).collect(),
            not: schema.get("not").filter(|not| !not.is_null()).map(&mut below),
        })
    }
}

/// Whether a keyword is a value validation.
fn is_rule(key: &str) -> bool {
    matches!(
        key,
        "format"
            | "maximum"
            | "minimum"
            | "multipleOf"
            | "maxLength"
            | "minLength"
            | "pattern"
            | "maxItems"
            | "minItems"
            | "maxProperties"
            | "minProperties"
            | "required"
            | "enum"
            | "allOf"
            | "anyOf"
            | "oneOf"
            | "not"
    )
}

fn texts<'s>(schema: &'s Value, key: &str) -> impl Iterator<Item = Str> + 's {
    let list = schema.get(key).and_then(Value::as_array).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(Str::from)
}

/// A number, integer or float.
pub(crate) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(n) => Some(*n as f64),
        Value::Float(x) => Some(*x),
        _ => None,
    }
}

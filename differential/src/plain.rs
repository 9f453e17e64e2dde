//! The common types and values of all implementations.

use std::collections::BTreeMap;
use std::fmt;

use pintle_value::Value;

/// A type of expressions. In rows, parameters stand for any type.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    Int,
    Uint,
    Double,
    String,
    Bool,
    List(Box<Type>),
    Map(Box<Type>, Box<Type>),
    Parameter(char),
}

impl Type {
    /// Parses `list int` or `map string T`.
    pub fn read(text: &str) -> Self {
        let mut words = text.split(' ');
        let found = Self::words(&mut words);
        assert_eq!(words.next(), None, "{text}");
        found
    }

    fn words<'a>(words: &mut impl Iterator<Item = &'a str>) -> Self {
        match words.next().expect("a type") {
            "int" => Self::Int,
            "uint" => Self::Uint,
            "double" => Self::Double,
            "string" => Self::String,
            "bool" => Self::Bool,
            "list" => Self::List(Box::new(Self::words(words))),
            "map" => {
                let keys = Self::words(words);
                Self::Map(Box::new(keys), Box::new(Self::words(words)))
            }
            other => Self::Parameter(other.chars().next().expect("a letter")),
        }
    }

    /// Binds the parameters so that the type equals `other`; returns false if that is impossible.
    pub fn unify(&self, other: &Self, bound: &mut BTreeMap<char, Self>) -> bool {
        match (self, other) {
            (Self::Parameter(name), other) => {
                bound.entry(*name).or_insert_with(|| other.clone()) == other
            }
            (Self::List(a), Self::List(b)) => a.unify(b, bound),
            (Self::Map(a, b), Self::Map(c, d)) => a.unify(c, bound) && b.unify(d, bound),
            (a, b) => a == b,
        }
    }

    /// Replaces the parameters; `choose` binds those that are unbound.
    pub fn with(
        &self,
        bound: &mut BTreeMap<char, Self>,
        choose: &mut impl FnMut(char) -> Self,
    ) -> Self {
        match self {
            Self::Parameter(name) => bound.entry(*name).or_insert_with(|| choose(*name)).clone(),
            Self::List(items) => Self::List(Box::new(items.with(bound, choose))),
            Self::Map(keys, values) => {
                Self::Map(Box::new(keys.with(bound, choose)), Box::new(values.with(bound, choose)))
            }
            other => other.clone(),
        }
    }
}

/// A value. Signed and unsigned integers are not distinguished; map keys are strings.
#[derive(Clone, Debug, PartialEq)]
pub enum Plain {
    Null,
    Bool(bool),
    Int(i128),
    Double(f64),
    String(String),
    List(Vec<Plain>),
    Map(BTreeMap<String, Plain>),
    /// A value of another kind, as text.
    Other(String),
}

/// The result of an evaluation.
#[derive(Clone, Debug)]
pub enum Outcome {
    Value(Plain),
    Error(String),
    /// The expression does not type-check, for example because of the item type of an empty list.
    Refused,
}

impl Outcome {
    /// True if both are errors or the same value.
    pub fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Value(a), Self::Value(b)) => a.to_string() == b.to_string(),
            (Self::Error(_), Self::Error(_)) => true,
            _ => false,
        }
    }
}

impl From<&Value> for Plain {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(b) => Self::Bool(*b),
            Value::Int(n) => Self::Int((*n).into()),
            Value::Float(n) => Self::Double(*n),
            Value::String(text) => Self::String(text.to_string()),
            Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Value::Object(members) => Self::Map(
                members.iter().map(|(key, value)| (key.to_string(), Self::from(value))).collect(),
            ),
            Value::Unread(_) => unreachable!("every value here is read"),
        }
    }
}

impl Plain {
    /// Formats the value as an expression of type `t`, if possible.
    pub fn literal(&self, t: &Type) -> Option<String> {
        Some(match (self, t) {
            (Self::Bool(b), Type::Bool) => b.to_string(),
            (Self::Int(n), Type::Int) if *n < 0 => format!("({n})"),
            (Self::Int(n), Type::Int) => n.to_string(),
            (Self::Int(n), Type::Uint) => format!("{n}u"),
            (Self::Int(n), Type::Double) => format!("({n}.0)"),
            (Self::Double(n), Type::Double) if n.is_finite() => format!("({n:?})"),
            (Self::String(text), Type::String) => {
                if text.chars().any(char::is_control) {
                    return None;
                }
                format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
            }
            (Self::List(items), Type::List(t)) => {
                let items = items.iter().map(|item| item.literal(t));
                format!("[{}]", items.collect::<Option<Vec<_>>>()?.join(", "))
            }
            (Self::Map(entries), Type::Map(keys, values)) => {
                let entries = entries.iter().map(|(key, value)| {
                    let key = match **keys {
                        Type::String => Self::String(key.clone()),
                        Type::Bool => Self::Bool(key == "true"),
                        _ => Self::Int(key.parse().ok()?),
                    };
                    Some(format!("{}: {}", key.literal(keys)?, value.literal(values)?))
                });
                format!("{{{}}}", entries.collect::<Option<Vec<_>>>()?.join(", "))
            }
            _ => return None,
        })
    }
}

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(b) => write!(f, "{b}"),
            // Pintle's values are JSON, in which such a number is a double.
            Self::Int(n) if *n > i64::MAX.into() => Self::Double(*n as f64).fmt(f),
            Self::Int(n) => write!(f, "{n}"),
            // Only the type distinguishes an integer from a double without a fraction.
            Self::Double(n) if n.fract() == 0.0 && n.abs() < 9e18 => write!(f, "{}", *n as i128),
            Self::Double(n) if n.is_nan() => f.write_str("\"NaN\""),
            Self::Double(n) if n.is_infinite() => {
                f.write_str(if *n > 0.0 { "\"+Inf\"" } else { "\"-Inf\"" })
            }
            Self::Double(n) => write!(f, "{n:e}"),
            Self::String(text) => write!(f, "{text:?}"),
            Self::List(items) => {
                let items: Vec<_> = items.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", items.join(", "))
            }
            Self::Map(entries) => {
                let entries: Vec<_> = entries.iter().map(|(k, v)| format!("{k:?}: {v}")).collect();
                write!(f, "{{{}}}", entries.join(", "))
            }
            Self::Other(what) => write!(f, "<{what}>"),
        }
    }
}

//! Conversion of data to values, by declaration, and of values to data.

use std::sync::Arc;

use pintle_meta::quote::go_type;
use pintle_value::{Map as Tree, Str, Value, json};

use super::{Eval, List, Map, Text, Val, list, map};
use crate::context::Context;
use crate::error::EvalError;
use crate::time;
use crate::types::declaration::Declaration;

/// Reads a node of a tree by its declaration. Data that does not match is an error when it is used.
pub(crate) fn lift<'a>(value: &'a Value, declaration: &'a Declaration) -> Eval<'a> {
    let wrong = |expected: &str, value: &Value| {
        Err(EvalError::new(format!("invalid data, expected {expected}, got {}", go_type(value))))
    };
    Ok(match (declaration, value) {
        (Declaration::Dyn { .. }, value) => any(value),
        (Declaration::Nullable(_), Value::Null) => Val::Null,
        (Declaration::Nullable(inner), value) => return lift(value, inner),
        (Declaration::Optional(inner), value) => Val::some(lift(value, inner)?),
        (_, Value::Null) => {
            let message = "invalid data, got null for schema with nullable=false";
            return Err(EvalError::new(message));
        }
        (Declaration::IntOrString { .. }, Value::Int(n)) => Val::Int(*n),
        (Declaration::IntOrString { .. }, Value::String(text)) => borrowed(text),
        (Declaration::IntOrString { .. }, _) => {
            let message = "invalid data, expected XIntOrString value to be either a string or \
                           integer";
            return Err(EvalError::new(message));
        }
        (Declaration::Object(object), Value::Object(members)) => {
            let declared = map::Declared::Object(object);
            Val::Map(Map::Tree { members, declared })
        }
        (Declaration::Map(declared), Value::Object(members)) => {
            let declared = map::Declared::Map(declared);
            Val::Map(Map::Tree { members, declared })
        }
        (Declaration::Object(_) | Declaration::Map(_), _) => {
            let message = "invalid data, expected a map for the provided schema with type=object";
            return Err(EvalError::new(message));
        }
        (Declaration::List(list), Value::Array(items)) => {
            let declared = list::Declared::Known(list);
            Val::List(List::Tree { items, declared })
        }
        (Declaration::List(_), _) => {
            let message = "invalid data, expected an array for the provided schema with type=array";
            return Err(EvalError::new(message));
        }
        (Declaration::String { .. }, Value::String(text)) => borrowed(text),
        (Declaration::Int, Value::Int(n)) => Val::Int(*n),
        (Declaration::Int, value) => return wrong("int", value),
        (Declaration::Double, Value::Int(n)) => Val::Double(*n as f64),
        (Declaration::Double, Value::Float(n)) => Val::Double(*n),
        (Declaration::Double, value) => return wrong("float", value),
        (Declaration::Bool, Value::Bool(b)) => Val::Bool(*b),
        (Declaration::Bool, value) => return wrong("bool", value),
        (declaration, Value::String(text)) => return formatted(text, declaration),
        (_, value) => return wrong("string", value),
    })
}

fn borrowed(text: &str) -> Val<'_> {
    Val::String(Text::Borrowed(text))
}

/// Reads text whose format gives it another type.
fn formatted<'a>(text: &'a str, declaration: &Declaration) -> Eval<'a> {
    let wrong = |what: &str| Err(EvalError::new(format!("Invalid {what} {text}: cannot parse")));
    match declaration {
        Declaration::Duration => match time::parse_open_api_duration(text) {
            Some(nanos) => Ok(Val::Duration(nanos)),
            None => wrong("duration"),
        },
        Declaration::Date => match time::parse_date(text) {
            Some(time) => Ok(Val::Timestamp(time)),
            None => wrong("date formatted string"),
        },
        Declaration::DateTime => match time::parse_open_api_time(text) {
            Some(time) => Ok(Val::Timestamp(time)),
            None => wrong("date-time formatted string"),
        },
        Declaration::Bytes { .. } => match base64(text) {
            Some(bytes) => Ok(Val::Bytes(bytes.into())),
            None => wrong("byte formatted string"),
        },
        _ => Ok(borrowed(text)),
    }
}

/// Reads a JSON value of unknown type.
pub(crate) fn any(value: &Value) -> Val<'_> {
    match value {
        Value::Null => Val::Null,
        Value::Bool(b) => Val::Bool(*b),
        Value::Int(n) => Val::Int(*n),
        Value::Float(n) => Val::Double(*n),
        Value::String(text) => borrowed(text),
        Value::Array(items) => Val::List(List::Tree { items, declared: list::Declared::Any }),
        Value::Object(members) => Val::Map(Map::Tree { members, declared: map::Declared::Any }),
        Value::Raw(text) => owned(json::parse(text.as_bytes()).unwrap_or_default()),
    }
}

/// Converts an owned JSON value.
fn owned(value: Value) -> Val<'static> {
    match value {
        Value::String(text) => Val::String(Text::Shared(text.as_str().into())),
        Value::Array(items) => {
            let items = items.into_iter().map(owned).collect();
            Val::List(List::Owned { items: Arc::new(items), merge: None })
        }
        Value::Object(members) => {
            let key = |key: Str| map::Key::new(Val::String(Text::Shared(key.as_str().into())));
            let entries = members.into_iter().filter_map(|(k, v)| Some((key(k)?, owned(v))));
            Val::Map(Map::Owned(Arc::new(entries.collect())))
        }
        Value::Null | Value::Raw(_) => Val::Null,
        Value::Bool(b) => Val::Bool(b),
        Value::Int(n) => Val::Int(n),
        Value::Float(n) => Val::Double(n),
    }
}

/// Converts a value to data: times and durations as text, bytes in base64. Visited values and
/// copied bytes count as work.
pub(crate) fn to_json(value: &Val<'_>, context: &mut Context) -> Result<Value, EvalError> {
    context.value()?;
    Ok(match value {
        Val::Null => Value::Null,
        Val::Bool(b) => Value::Bool(*b),
        Val::Int(n) => Value::Int(*n),
        Val::Uint(n) => i64::try_from(*n).map_or(Value::Float(*n as f64), Value::Int),
        Val::Double(n) if n.is_finite() => Value::Float(*n),
        Val::Double(n) => Value::from(crate::number::shortest(*n)),
        Val::String(text) => {
            context.work(text.len() as u64)?;
            Value::String(Str::from(&**text))
        }
        Val::Bytes(bytes) => {
            context.work(bytes.len() as u64)?;
            Value::from(to_base64(bytes))
        }
        Val::Optional(None) => Value::Null,
        Val::Optional(Some(inner)) => to_json(inner, context)?,
        Val::List(List::Tree { items, .. }) => {
            items.iter().try_for_each(|item| copy(item, context))?;
            Value::Array(items.to_vec())
        }
        Val::List(list) => {
            let items: Result<_, EvalError> =
                list.iter().map(|item| to_json(&item?, context)).collect();
            Value::Array(items?)
        }
        Val::Map(Map::Tree { members, .. }) => {
            copy_members(members, context)?;
            Value::Object((*members).clone())
        }
        Val::Map(Map::Owned(entries)) => {
            let mut out = Tree::new();
            for (key, value) in entries.iter() {
                context.work(key.value().size())?;
                out.insert(key.value().to_string(), to_json(value, context)?);
            }
            Value::Object(out)
        }
        Val::Made(made) => made.to_json(context)?,
        other => Value::from(other.to_string()),
    })
}

/// Accounts for a copy of data.
fn copy(value: &Value, context: &mut Context) -> Result<(), EvalError> {
    context.value()?;
    match value {
        Value::String(text) => context.work(text.len() as u64),
        Value::Raw(text) => context.work(text.len() as u64),
        Value::Array(items) => items.iter().try_for_each(|item| copy(item, context)),
        Value::Object(members) => copy_members(members, context),
        _ => Ok(()),
    }
}

fn copy_members(members: &Tree, context: &mut Context) -> Result<(), EvalError> {
    members.iter().try_for_each(|(name, value)| {
        context.work(name.len() as u64)?;
        copy(value, context)
    })
}

/// The identity of a scalar in a set.
pub(crate) fn identity(value: &Val<'_>, context: &mut Context) -> Result<String, EvalError> {
    Ok(format!("{:?}", to_json(value, context)?))
}

/// The identity of an object in a keyed list. Only the members that are its keys are read.
pub(crate) fn key_of(
    value: &Val<'_>,
    keys: &[Str],
    context: &mut Context,
) -> Result<String, EvalError> {
    let data;
    let members = match value {
        Val::Map(Map::Tree { members, .. }) => Some(*members),
        other => {
            data = to_json(other, context)?;
            data.as_object()
        }
    };
    let keys: Vec<Option<&Value>> =
        keys.iter().map(|key| members.and_then(|members| members.get(key))).collect();
    keys.iter().flatten().try_for_each(|key| copy(key, context))?;
    Ok(format!("{keys:?}"))
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes bytes in standard base64.
pub(crate) fn to_base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * i)) as usize & 63];
            out.push(if i <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

/// Decodes base64 in the URL alphabet with padding (as upstream decodes the `byte` format); line
/// ends are ignored.
fn base64(text: &str) -> Option<Vec<u8>> {
    let digit = |d: u8| match d {
        b'-' => Some(62),
        b'_' => Some(63),
        b'+' | b'/' => None,
        _ => DIGITS.iter().position(|known| *known == d),
    };
    let text: Vec<u8> = text.bytes().filter(|b| !matches!(b, b'\r' | b'\n')).collect();
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let digits = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(&text);
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    for chunk in digits.chunks(4) {
        let mut bits = 0_u32;
        for byte in chunk {
            bits = bits << 6 | digit(*byte)? as u32;
        }
        bits <<= 6 * (4 - chunk.len());
        out.extend_from_slice(&bits.to_be_bytes()[1..chunk.len()]);
    }
    Some(out)
}

/// Converts a literal.
pub(crate) fn constant(literal: &crate::ast::Literal) -> Val<'static> {
    use crate::ast::Literal;
    match literal {
        Literal::Null => Val::Null,
        Literal::Bool(b) => Val::Bool(*b),
        Literal::Int(n) => Val::Int(*n),
        Literal::Uint(n) => Val::Uint(*n),
        Literal::Double(n) => Val::Double(*n),
        Literal::String(text) => Val::string(text.as_str()),
        Literal::Bytes(bytes) => Val::Bytes(Arc::clone(bytes)),
    }
}

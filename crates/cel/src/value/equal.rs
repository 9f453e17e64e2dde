//! Equality of values. Values of different types are unequal, except for numbers with equal values.
//! To compare data, or values of Kubernetes' own types, with other types is an error.

use std::collections::HashMap;

use pintle_value::Value;

use super::map::Declared;
use super::{List, Made, Map, Val, convert};
use crate::context::Context;
use crate::error::EvalError;
use crate::types::declaration::Merge;

impl<'a> Val<'a> {
    /// Whether both are equal; visiting items counts as work.
    pub(crate) fn equals(&self, other: &Self, context: &mut Context) -> Result<bool, EvalError> {
        Ok(match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::String(a), Self::String(b)) => {
                context.read(if a.len() == b.len() { a.len() } else { 0 })?;
                **a == **b
            }
            (Self::Bytes(a), Self::Bytes(b)) => {
                context.read(if a.len() == b.len() { a.len() } else { 0 })?;
                a == b
            }
            (Self::Timestamp(a), Self::Timestamp(b)) => a == b,
            (Self::Duration(a), Self::Duration(b)) => a == b,
            (Self::Type(a), Self::Type(b)) => a == b,
            (Self::List(a), Self::List(b)) => return lists(a, b, context),
            (Self::Map(a), Self::Map(b)) => return maps(a, b, context),
            // Data cannot be compared with values of other types, except null.
            (Self::List(list), other) if list.is_of_data() && !matches!(other, Self::Null) => {
                return Err(EvalError::no_such_overload());
            }
            (Self::Map(Map::Tree { .. }), other) if !matches!(other, Self::Null) => {
                return Err(EvalError::no_such_overload());
            }
            (Self::Optional(a), Self::Optional(b)) => match (a, b) {
                (None, None) => true,
                (Some(a), Some(b)) => return a.equals(b, context),
                _ => false,
            },
            (Self::Opaque(a), Self::Opaque(b)) => a.equals(b, context)?,
            (Self::Opaque(a), _) => return a.not_equal(),
            (Self::Made(a), Self::Made(b)) => return mades(a, b, context),
            (a, b) => super::compare(a, b).is_ok_and(std::cmp::Ordering::is_eq),
        })
    }
}

fn mades<'a>(a: &Made<'a>, b: &Made<'a>, context: &mut Context) -> Result<bool, EvalError> {
    if a.type_name != b.type_name || a.fields.len() != b.fields.len() {
        return Ok(false);
    }
    for ((a_name, a), (b_name, b)) in a.fields.iter().zip(&b.fields) {
        context.work(1)?;
        if a_name != b_name || !a.equals(b, context)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn lists<'a>(a: &List<'a>, b: &List<'a>, context: &mut Context) -> Result<bool, EvalError> {
    if a.len() != b.len() {
        return Ok(false);
    }
    context.work(a.len().saturating_mul(4))?;
    match a.merge() {
        Merge::Set => sets(a, b, context),
        Merge::Keys(keys) => keyed(a, b, keys, context),
        Merge::Atomic => {
            for (a, b) in a.iter().zip(b.iter()) {
                if !a?.equals(&b?, context)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

/// Sets of scalars are equal if they have the same items, in any order.
fn sets<'a>(a: &List<'a>, b: &List<'a>, context: &mut Context) -> Result<bool, EvalError> {
    let mut seen = std::collections::HashSet::new();
    for item in a.iter() {
        seen.insert(convert::identity(&item?, context)?);
    }
    for item in b.iter() {
        if !seen.contains(&convert::identity(&item?, context)?) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Keyed lists are equal if the objects with the same keys are equal.
fn keyed<'a>(
    a: &List<'a>,
    b: &List<'a>,
    keys: &[pintle_value::Str],
    context: &mut Context,
) -> Result<bool, EvalError> {
    let mut by_key = HashMap::new();
    for item in a.iter() {
        let item = item?;
        by_key.insert(convert::key_of(&item, keys, context)?, item);
    }
    for item in b.iter() {
        let item = item?;
        let Some(same) = by_key.get(&convert::key_of(&item, keys, context)?) else {
            return Ok(false);
        };
        if !same.equals(&item, context)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn maps<'a>(a: &Map<'a>, b: &Map<'a>, context: &mut Context) -> Result<bool, EvalError> {
    if a.len() != b.len() {
        return Ok(false);
    }
    context.work(a.len() as u64 * 4)?;
    if let (Map::Tree { members: a, declared: in_a }, Map::Tree { members: b, declared: in_b }) =
        (a, b)
    {
        return trees((a, *in_a), (b, *in_b), context);
    }
    for key in a.keys() {
        if let Val::String(name) = &key {
            context.read(name.len())?;
        }
        let (Some(a), Some(b)) = (a.get(&key)?, b.get(&key)?) else { return Ok(false) };
        if !a.equals(&b, context)? {
            return Ok(false);
        }
    }
    Ok(true)
}

type Members<'a> = (&'a pintle_value::Map, Declared<'a>);

/// Compares objects of data. Undeclared members are compared as data, where both have them.
fn trees<'a>(a: Members<'a>, b: Members<'a>, context: &mut Context) -> Result<bool, EvalError> {
    for (name, value) in a.0.iter() {
        context.read(name.len())?;
        let other = b.0.get(name);
        let Some(value) = a.1.lift_member(name, value) else {
            if let Some(other) = other
                && !same_data(value, other, context)?
            {
                return Ok(false);
            }
            continue;
        };
        let is_object = matches!(a.1, Declared::Object(_));
        let absent = |v: Option<&Value>| v.is_none_or(|v| is_object && v.is_null());
        if absent(a.0.get(name)) && absent(other) {
            continue;
        }
        let Some(other) = other.and_then(|other| b.1.lift_member(name, other)) else {
            return Ok(false);
        };
        if !value?.equals(&other?, context)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Compares undeclared members.
fn same_data(a: &Value, b: &Value, context: &mut Context) -> Result<bool, EvalError> {
    context.work(1)?;
    match (a, b) {
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (a, b) in a.iter().zip(b) {
                if !same_data(a, b, context)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Object(a), Value::Object(b)) if a.len() == b.len() => {
            for (name, a) in a.iter() {
                context.read(name.len())?;
                let Some(b) = b.get(name) else { return Ok(false) };
                if !same_data(a, b, context)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Array(_) | Value::Object(_), _) => Ok(false),
        (Value::String(a), Value::String(b)) if a.len() == b.len() => {
            context.read(a.len())?;
            Ok(a == b)
        }
        (Value::Raw(text), _) => {
            context.read(text.len())?;
            Ok(a == b)
        }
        (a, b) => Ok(a == b),
    }
}

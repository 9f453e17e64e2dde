//! Strategic merge patch: a merge patch that merges lists too, by what the schema says of them.
//!
//! Beside values, a patch has directives: `$patch` replaces or deletes the object that it stands in,
//! `$retainKeys` names the members that stay, `$deleteFromPrimitiveList/x` takes items out of the
//! list `x`, and `$setElementOrder/x` says in which order its items are to be.
//!
//! Where upstream's outcome depends on the order in which Go walks a map, ours is that of sorted
//! keys: directives before values.

mod lists;
mod order;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::BTreeSet};

use pintle_meta::quote::{plain, quote};
use pintle_schema::{Field, Schema, Shape, TypeId};
use pintle_value::{Map, Str, Value};

use crate::{
    Error, Patched,
    read::{read, texts},
};

/// The directive in an object: `replace`, `delete`, or in a list's item `merge`.
const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

pub(crate) fn apply(
    schema: &Schema,
    ty: TypeId,
    current: &Value,
    patch: &[u8],
) -> Result<Patched, Error> {
    let (patch, problems) = read(patch).map_err(|e| Error::Malformed(e.to_string()))?;
    let patch = match patch {
        Value::Object(patch) => patch,
        Value::Null => Map::new(),
        other => {
            let found = other.type_name();
            return Err(Error::Malformed(format!(
                "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            )));
        }
    };
    let mut value = current.clone();
    let original = std::mem::take(value.make_object());
    let merged = Merger { schema }.objects(original, patch, ty)?;
    Ok(Patched { value: merged.into(), problems: texts(&problems) })
}

#[derive(Clone, Copy)]
struct Merger<'s> {
    schema: &'s Schema,
}

impl Merger<'_> {
    /// Merges `patch` into an object of the type `ty`.
    fn objects(self, mut original: Map, mut patch: Map, ty: TypeId) -> Result<Map, Error> {
        if let Some(directive) = patch.remove(PATCH) {
            return match directive.as_str() {
                Some("replace") => Ok(patch),
                Some("delete") => Ok(Map::new()),
                _ => Err(unknown_directive(directive, patch)),
            };
        }
        if let Some(keys) = patch.remove(RETAIN_KEYS) {
            retain_keys(&mut original, &patch, &keys)?;
        }
        self.ordered_lists(&mut original, &mut patch, ty)?;
        for (key, change) in patch {
            match key.strip_prefix(DELETE_FROM) {
                None => self.member(&mut original, key, change, ty, false)?,
                Some(of) => {
                    let list = of.strip_prefix('/');
                    let list = list.ok_or_else(|| Error::malformed(BAD_PRIMITIVE_LIST))?;
                    self.member(&mut original, list.into(), change, ty, true)?;
                }
            }
        }
        Ok(original)
    }

    /// Merges one member; with `deletes`, `change` lists the items to take out.
    fn member(
        self,
        original: &mut Map,
        key: Str,
        mut change: Value,
        ty: TypeId,
        deletes: bool,
    ) -> Result<(), Error> {
        if change.is_null() {
            original.remove(&key);
            return Ok(());
        }
        let Some(current) = original.get_mut(&key).filter(|c| same_type(c, &change)) else {
            if !deletes {
                discard_nulls(&mut change);
                set(original, key, change);
            }
            return Ok(());
        };
        match (current, change) {
            (Value::Object(current), Value::Object(change)) => {
                let field = self.field(ty, &key)?;
                *current = if field.patch.replace {
                    change
                } else {
                    self.objects(std::mem::take(current), change, field.ty)?
                };
            }
            (Value::Array(current), Value::Array(change)) => {
                let (field, item) = self.list_field(ty, &key)?;
                *current = if field.patch.merge || deletes {
                    let merge_key = &field.patch.merge_key;
                    self.lists(std::mem::take(current), change, item, merge_key, deletes)?
                } else {
                    change
                };
            }
            (current, change) => *current = change,
        }
        Ok(())
    }

    /// Merges the lists for which the patch sets an order, and takes them out of the patch.
    fn ordered_lists(self, original: &mut Map, patch: &mut Map, ty: TypeId) -> Result<(), Error> {
        let is_order = |key: &&Str| key.starts_with(SET_ORDER);
        let directives: Vec<Str> = patch.keys().filter(is_order).cloned().collect();
        for directive in directives {
            let order = match patch.remove(&directive) {
                Some(Value::Array(order)) => order,
                other => return Err(wrong_type("[]interface {}", &other.unwrap_or_default())),
            };
            let key = directive[SET_ORDER.len()..].strip_prefix('/');
            let key = key.ok_or_else(|| Error::malformed(BAD_ELEMENT_ORDER))?;
            let current = original.get(key).map(array).transpose()?;
            let change = patch.get(key).map(array).transpose()?;
            let (field, item) = self.list_field(ty, key)?;
            let merge_key = &field.patch.merge_key;
            order::check(change.unwrap_or_default(), &order, merge_key)?;

            let mut before = Cow::Borrowed(current.unwrap_or_default());
            let merged = match (current, change) {
                (None, None) => continue,
                (Some(current), None) => current.to_vec(),
                (None, Some(change)) => change.iter().cloned().filter_map(undirected).collect(),
                (Some(current), Some(change)) if field.patch.merge => {
                    before = lists::before(current, change, merge_key)?;
                    self.lists(current.to_vec(), change.to_vec(), item, merge_key, false)?
                }
                (Some(_), Some(change)) => change.to_vec(),
            };
            lists::item_kind(&[current.unwrap_or_default(), change.unwrap_or_default()])?;
            let arranged = order::arrange(merged, &order, &before, merge_key)?;
            patch.remove(key);
            original.insert(key, arranged);
        }
        Ok(())
    }

    /// The field `key` of the struct `ty`.
    fn field(&self, ty: TypeId, key: &str) -> Result<&Field, Error> {
        let ty = self.schema.get(ty);
        if let Some(field) = ty.field(key) {
            return Ok(field);
        }
        Err(Error::Unclassified(match kind(&ty.shape) {
            "struct" => {
                let name = ty.name.rsplit('.').next().unwrap_or_default();
                let key = quote(key);
                format!("unable to find api field in struct {name} for the json field {key}")
            }
            kind => {
                format!("merging an object in json but data type is not struct, instead is: {kind}")
            }
        }))
    }

    /// The field `key` of the struct `ty`, which is a list, and the type of its items.
    fn list_field(&self, ty: TypeId, key: &str) -> Result<(&Field, TypeId), Error> {
        let field = self.field(ty, key)?;
        match &self.schema.get(field.ty).shape {
            Shape::List { item, .. } => Ok((field, *item)),
            _ => {
                Err(Error::Unclassified("expected slice or array type, but got: struct".to_owned()))
            }
        }
    }
}

/// Removes what `$retainKeys` does not name.
fn retain_keys(original: &mut Map, patch: &Map, keys: &Value) -> Result<(), Error> {
    let bad = || Error::malformed("invalid patch format of retainKeys");
    let keys = keys.as_array().ok_or_else(bad)?;
    let keys: BTreeSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    for (key, value) in patch.iter() {
        let directive = key.starts_with(DELETE_FROM) || key.starts_with(SET_ORDER);
        if !value.is_null() && !directive && !keys.contains(key.as_str()) {
            return Err(bad());
        }
    }
    original.retain(|key, _| keys.contains(key.as_str()));
    Ok(())
}

/// Sets a member to what is new there; objects that are but directives are not kept.
fn set(original: &mut Map, key: Str, value: Value) {
    match undirected(value) {
        Some(value) => {
            original.insert(key, value);
        }
        None => {
            original.remove(&key);
        }
    }
}

/// A new value without the objects in it that have a `$patch`; `None` if it is such an object.
fn undirected(value: Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(PATCH) => None,
        Value::Object(members) => {
            let members = members.into_iter();
            let members = members.filter_map(|(key, value)| Some((key, undirected(value)?)));
            Some(Value::Object(members.collect()))
        }
        Value::Array(items) => {
            Some(Value::Array(items.into_iter().filter_map(undirected).collect()))
        }
        scalar => Some(scalar),
    }
}

/// Takes null members away; null items stay.
fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => members.retain(|_, value| {
            discard_nulls(value);
            !value.is_null()
        }),
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

const BAD_PRIMITIVE_LIST: &str = "invalid patch format of primitive list";
const BAD_ELEMENT_ORDER: &str = "invalid patch format of setElementOrder list";

fn unknown_directive(directive: Value, mut object: Map) -> Error {
    let shown = match &directive {
        Value::String(text) => text.to_string(),
        other => format!("%!s({}={})", go_type(other), plain(other)),
    };
    object.insert(PATCH, directive);
    let object = plain(&Value::Object(object));
    Error::Unclassified(format!("unknown patch type: {shown} in map: {object}"))
}

fn wrong_type(expected: &str, found: &Value) -> Error {
    let found = go_type(found);
    Error::Unclassified(format!("expected a {expected}, but received a {found}"))
}

fn array(value: &Value) -> Result<&[Value], Error> {
    value.as_array().ok_or_else(|| wrong_type("[]interface {}", value))
}

/// The Go type of a decoded JSON value.
const fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn same_type(a: &Value, b: &Value) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}

/// Go's word for the kind of a type.
const fn kind(shape: &Shape) -> &'static str {
    match shape {
        Shape::Map { .. } => "map",
        Shape::List { .. } => "slice",
        // The types of untyped JSON are structs without fields.
        Shape::Struct { .. } | Shape::Scalar(_) => "struct",
    }
}

//! Strategic merge patch: a merge patch that also merges lists, as the schema says.
//!
//! Besides values, a patch has directives: `$patch` replaces or deletes the object that contains
//! it, `$retainKeys` lists the members to keep, `$deleteFromPrimitiveList/x` removes items from the
//! list `x`, and `$setElementOrder/x` gives the order of its items.
//!
//! Where upstream's result depends on the order in which Go iterates over a map, ours is the result
//! for sorted keys: directives come before values.

mod items;
mod lists;
mod order;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use pintle_meta::quote::{self, plain, quote};
use pintle_schema::{Field, Schema, Shape, TypeId};
use pintle_value::{Map, Str, Value};

use crate::{
    Error, Patched, members,
    read::{read, texts},
};

/// The directive of an object: `replace`, `delete`, or `merge` in an item of a list.
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
        self.deletions(&mut original, &mut patch, ty)?;
        members::merge(original, patch, |key, current, change| {
            self.member(key, current, change, ty, false)
        })
    }

    /// Applies the `$deleteFromPrimitiveList` directives to `original` and removes them from the
    /// patch.
    fn deletions(self, original: &mut Map, patch: &mut Map, ty: TypeId) -> Result<(), Error> {
        let mut directives = Vec::new();
        patch.retain(|key, change| {
            let stays = !key.starts_with(DELETE_FROM);
            if !stays {
                directives.push((key.clone(), std::mem::take(change)));
            }
            stays
        });
        if directives.is_empty() {
            return Ok(());
        }
        let mut gone = BTreeSet::new();
        for (directive, change) in directives {
            let key = directive[DELETE_FROM.len()..].strip_prefix('/');
            let key = Str::from(key.ok_or_else(|| Error::malformed(BAD_PRIMITIVE_LIST))?);
            let Some(member) = original.get_mut(&key) else { continue };
            match self.member(&key, Some(std::mem::take(member)), change, ty, true)? {
                Some(value) => *member = value,
                None => {
                    gone.insert(key);
                }
            }
        }
        original.retain(|key, _| !gone.contains(key));
        Ok(())
    }

    /// Merges one member. With `deletes`, `change` lists the items to remove.
    fn member(
        self,
        key: &str,
        current: Option<Value>,
        mut change: Value,
        ty: TypeId,
        deletes: bool,
    ) -> Result<Option<Value>, Error> {
        if change.is_null() {
            return Ok(None);
        }
        let current = match current {
            Some(current) if same_type(&current, &change) => current,
            current if deletes => return Ok(current),
            _ => {
                discard_nulls(&mut change);
                return Ok(without_directives(change));
            }
        };
        Ok(Some(match (current, change) {
            (Value::Object(current), Value::Object(change)) => {
                let field = self.field(ty, key)?;
                if field.patch.replace {
                    change.into()
                } else {
                    self.objects(current, change, field.ty)?.into()
                }
            }
            (Value::Array(current), Value::Array(change)) => {
                let (field, item) = self.list_field(ty, key)?;
                if field.patch.merge || deletes {
                    let merge_key = &field.patch.merge_key;
                    self.lists(current, change, item, merge_key, deletes)?.into()
                } else {
                    change.into()
                }
            }
            (_, change) => change,
        }))
    }

    /// Merges the lists for which the patch sets an order, and removes them from the patch.
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
            let current = original.get_mut(key).map(take_list).transpose()?;
            let change = patch.remove(key).as_mut().map(take_list).transpose()?;
            let (field, item) = self.list_field(ty, key)?;
            let merge_key = &field.patch.merge_key;
            let (now, new) = (or_empty(&current), or_empty(&change));
            order::check(new, &order, merge_key)?;
            let kind = items::item_kind(&[now, new]);
            let merges = field.patch.merge && current.is_some();
            let before = lists::original_positions(now, if merges { new } else { &[] }, merge_key);

            let merged = match (current, change) {
                (None, None) => continue,
                (Some(current), None) => current,
                (None, Some(change)) => change.into_iter().filter_map(without_directives).collect(),
                (Some(current), Some(change)) if merges => {
                    self.lists(current, change, item, merge_key, false)?
                }
                (Some(_), Some(change)) => change,
            };
            kind?;
            let order = order::positions(&order, merge_key)?;
            let arranged = order::arrange(merged, &order, &before?, merge_key)?;
            original.insert(key, arranged);
        }
        Ok(())
    }

    /// Returns the field `key` of the struct `ty`.
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

    /// Returns the list field `key` of the struct `ty`, and the type of its items.
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

/// Removes the members that `$retainKeys` does not list.
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

/// Returns a new value without the objects in it that have a `$patch`; `None` if the value itself
/// is such an object.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(PATCH) => None,
        Value::Object(members) => {
            let members = members.into_iter();
            let members =
                members.filter_map(|(key, value)| Some((key, without_directives(value)?)));
            Some(Value::Object(members.collect()))
        }
        Value::Array(items) => {
            Some(Value::Array(items.into_iter().filter_map(without_directives).collect()))
        }
        scalar => Some(scalar),
    }
}

/// Removes null members at every depth. Null items stay.
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
        Value::Null => "%!s(<nil>)".to_owned(),
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

fn take_list(value: &mut Value) -> Result<Vec<Value>, Error> {
    match value {
        Value::Array(items) => Ok(std::mem::take(items)),
        other => Err(wrong_type("[]interface {}", other)),
    }
}

fn or_empty(list: &Option<Vec<Value>>) -> &[Value] {
    list.as_deref().unwrap_or_default()
}

/// The name of the Go type that a JSON value decodes to.
const fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        other => quote::go_type(other),
    }
}

fn same_type(a: &Value, b: &Value) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}

/// The name of a type's kind in Go's reflection.
const fn kind(shape: &Shape) -> &'static str {
    match shape {
        Shape::Map { .. } => "map",
        Shape::List { .. } => "slice",
        // Upstream's types of untyped JSON are structs without fields.
        Shape::Struct { .. } | Shape::Scalar(_) => "struct",
    }
}

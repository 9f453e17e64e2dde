//! List items that have their own owners.

use std::borrow::Cow;
use std::cmp::Ordering;

use pintle_meta::quote::quote;
use pintle_schema::{Default, Field, Presence, Scalar, Shape};
use pintle_value::{Str, Value, json};

use super::Typing;
use crate::server_side::fieldset::{ElementRef, PathElement, order};

/// How the items of a list are identified.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Items<'s> {
    /// The type of an item.
    pub(crate) ty: Typing<'s>,
    /// The key fields; empty where an item is identified by its value.
    keys: &'s [Cow<'static, str>],
}

/// Why an item cannot be identified. The messages are upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unkeyed {
    #[error("associative list with keys may not have a null element")]
    Null,
    #[error("associative list with keys may not have non-map elements")]
    NotObject,
    #[error(
        "associative list with keys has an element that omits all key fields [{0}] (and doesn't \
         have default values for any key fields)"
    )]
    NoKeys(String),
    #[error("associative list without keys has an element that's a map type")]
    Object,
    #[error("not supported: associative list with lists as elements")]
    List,
    #[error("associative list without keys has an element that's an explicit null")]
    NullValue,
}

impl<'s> Items<'s> {
    pub(super) const fn new(ty: Typing<'s>, keys: &'s [Cow<'static, str>]) -> Self {
        Self { ty, keys }
    }

    /// Whether the member `name` is a key field.
    pub(super) fn has_key(self, name: &str) -> bool {
        self.keys.iter().any(|key| key == name)
    }

    /// Returns the path element that identifies an item.
    pub(crate) fn element(self, item: &Value) -> Result<PathElement, Unkeyed> {
        self.identify(item).map(|element| element.to_path_element())
    }

    fn identify<'v>(self, item: &'v Value) -> Result<ElementRef<'v>, Unkeyed>
    where
        's: 'v,
    {
        if self.keys.is_empty() {
            return match item {
                Value::Object(_) => Err(Unkeyed::Object),
                Value::Array(_) => Err(Unkeyed::List),
                Value::Null => Err(Unkeyed::NullValue),
                scalar => Ok(ElementRef::Value(Cow::Borrowed(scalar))),
            };
        }
        let item = match item {
            Value::Object(item) => item,
            Value::Null => return Err(Unkeyed::Null),
            _ => return Err(Unkeyed::NotObject),
        };
        let mut fields = Vec::with_capacity(self.keys.len());
        for key in self.keys {
            let given = item.get(key).map(Cow::Borrowed);
            if let Some(value) = given.or_else(|| self.default(key).map(Cow::Owned)) {
                fields.push((&**key, value));
            }
        }
        if fields.is_empty() {
            let keys: Vec<String> = self.keys.iter().map(|key| quote(key)).collect();
            return Err(Unkeyed::NoKeys(keys.join(" ")));
        }
        Ok(ElementRef::key(fields))
    }

    /// Whether two lists have the same elements in the same order. The elements of `b` are
    /// distinct.
    pub(super) fn are_aligned(self, a: &[Value], b: &[Value]) -> bool {
        let same = |a: &Value, b: &Value| match (a, b) {
            (Value::Object(a), Value::Object(b)) if !self.keys.is_empty() => {
                // If `a` has one of the keys, it can be identified, so comparing all keys is
                // enough.
                let named = self.keys.iter().any(|key| a.contains_key(key));
                named
                    && self.keys.iter().all(|key| match (a.get(key), b.get(key)) {
                        (Some(a), Some(b)) => order::same(a, b),
                        (None, None) => true,
                        (Some(given), None) | (None, Some(given)) => {
                            self.default(key).is_some_and(|default| order::same(given, &default))
                        }
                    })
            }
            (Value::Object(_) | Value::Array(_) | Value::Null, _) => false,
            (a, b) => self.keys.is_empty() && order::same(a, b),
        };
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
    }

    /// The value of a key that an item omits: the declared default, or Go's zero value for a field
    /// that is always written (upstream's OpenAPI declares it as the default).
    fn default(self, key: &str) -> Option<Value> {
        let field = self.ty.field(key)?;
        match &field.default {
            Some(Default::String(text)) => Some(Value::String((**text).into())),
            Some(Default::Int(n)) => Some(Value::Int(*n)),
            Some(Default::Bool(b)) => Some(Value::Bool(*b)),
            Some(Default::Json(text)) => json::parse(text.as_bytes()).ok(),
            None => self.zero(field),
        }
    }

    fn zero(self, field: &Field) -> Option<Value> {
        if field.presence != Presence::Always {
            return None;
        }
        match self.ty.schema.get(field.ty).shape {
            Shape::Scalar(Scalar::String) => Some(Value::String(Str::default())),
            Shape::Scalar(Scalar::Int32 | Scalar::Int64 | Scalar::Float64) => Some(Value::Int(0)),
            Shape::Scalar(Scalar::Bool) => Some(Value::Bool(false)),
            _ => None,
        }
    }

    /// The items of a list by path element. Items that cannot be identified are left out.
    pub(super) fn index<'v>(self, list: &'v [Value]) -> Index<'v>
    where
        's: 'v,
    {
        let mut entries = Vec::with_capacity(list.len());
        for item in list {
            if let Ok(element) = self.identify(item) {
                entries.push((element, item));
            }
        }
        Index::of(entries, list.len())
    }
}

/// An item with the path element that identifies it.
pub(super) type Entry<'v> = (ElementRef<'v>, &'v Value);

/// The items of a list, sorted by path element.
pub(super) struct Index<'v> {
    entries: Vec<Entry<'v>>,
    /// Whether every item of the list could be identified.
    pub(super) all_keyed: bool,
    /// Whether no two items have the same element.
    distinct: bool,
}

impl<'v> Index<'v> {
    fn of(mut entries: Vec<Entry<'v>>, items: usize) -> Self {
        let mut distinct = true;
        // Stable: equal ones keep their order. Any sort compares those that end up as neighbours.
        entries.sort_by(|a, b| {
            let order = a.0.cmp(&b.0);
            distinct &= order.is_ne();
            order
        });
        Self { all_keyed: entries.len() == items, entries, distinct }
    }

    /// Whether no two items have the same element.
    pub(super) const fn is_distinct(&self) -> bool {
        self.distinct
    }

    /// The index itself, unless items could not be identified.
    pub(super) fn complete(self) -> Option<Self> {
        self.all_keyed.then_some(self)
    }

    /// Each element, and its item if the element is unique.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&ElementRef<'v>, Option<&'v Value>)> {
        let mut entries = &self.entries[..];
        std::iter::from_fn(move || {
            let (element, item) = entries.first()?;
            let is_unique = self.take_equal(&mut entries).len() == 1;
            Some((element, is_unique.then_some(*item)))
        })
    }

    /// Calls `each` with each element of either list, and with the items of this list and of
    /// `other` that have the element.
    pub(super) fn zip(
        &self,
        other: &Self,
        mut each: impl FnMut(&ElementRef<'v>, &[Entry<'v>], &[Entry<'v>]),
    ) {
        let (mut a, mut b) = (&self.entries[..], &other.entries[..]);
        loop {
            let order = match (a.first(), b.first()) {
                (Some(a), Some(b)) => a.0.cmp(&b.0),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return,
            };
            let of_a = if order.is_le() { self.take_equal(&mut a) } else { &[] };
            let of_b = if order.is_ge() { other.take_equal(&mut b) } else { &[] };
            if let Some((element, _)) = of_a.first().or(of_b.first()) {
                each(element, of_a, of_b);
            }
        }
    }

    /// Takes the leading entries with the same element.
    fn take_equal<'e>(&self, entries: &mut &'e [Entry<'v>]) -> &'e [Entry<'v>] {
        let is_equal = |entry: &&Entry<'_>| entry.0 == entries[0].0;
        let len = if self.distinct { 1 } else { entries.iter().take_while(is_equal).count() };
        let (equal, rest) = entries.split_at(len);
        *entries = rest;
        equal
    }
}

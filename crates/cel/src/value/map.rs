//! Maps and objects: of a tree, or constructed by an expression.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_value::{Map as Tree, Value};

use super::{Eval, Text, Val, lift};
use crate::error::EvalError;
use crate::types::declaration::{self, Object};

/// A map or object.
#[derive(Clone, Debug)]
pub(crate) enum Map<'a> {
    Tree { members: &'a Tree, declared: Declared<'a> },
    Owned(Arc<Owned<'a>>),
}

/// The declaration of a map in a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Declared<'a> {
    Object(&'a Object),
    Map(&'a declaration::Map),
    /// A map of any JSON values.
    Any,
}

/// Entries that an expression constructed.
pub(crate) type Owned<'a> = BTreeMap<Key<'a>, Val<'a>>;

/// A map's key. Numbers of different types are equal if their values are equal.
#[derive(Clone, Debug)]
pub(crate) struct Key<'a>(Val<'a>);

impl<'a> Key<'a> {
    /// The key for a value, if it can be one.
    pub(crate) fn new(value: Val<'a>) -> Option<Self> {
        let ok = matches!(
            value,
            Val::Bool(_) | Val::Int(_) | Val::Uint(_) | Val::Double(_) | Val::String(_)
        );
        ok.then_some(Self(value))
    }

    pub(crate) fn value(&self) -> &Val<'a> {
        &self.0
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key<'_> {}

impl PartialOrd for Key<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let rank = |key: &Self| match key.0 {
            Val::Bool(_) => 0,
            Val::Int(_) | Val::Uint(_) => 1,
            Val::Double(n) => 1 + u8::from(n.is_nan()),
            _ => 3,
        };
        let same = || super::compare(&self.0, &other.0).unwrap_or(Ordering::Equal);
        rank(self).cmp(&rank(other)).then_with(same)
    }
}

impl<'a> Map<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Tree { members, .. } => members.len(),
            Self::Owned(entries) => entries.len(),
        }
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.len() == 0 && matches!(self, Self::Owned(_))
    }

    /// The value of `key`, if it exists.
    pub(crate) fn get(&self, key: &Val<'a>) -> Result<Option<Val<'a>>, EvalError> {
        match self {
            Self::Tree { declared, .. } => match key {
                Val::String(key) => self.get_text(key),
                _ if matches!(declared, Declared::Any) => Ok(None),
                _ => Err(EvalError::no_such_overload()),
            },
            Self::Owned(entries) => {
                let key = Key::new(key.clone());
                Ok(key.and_then(|key| entries.get(&key)).cloned())
            }
        }
    }

    /// The value of a text key, or of the field with this identifier.
    pub(crate) fn get_text(&self, key: &str) -> Result<Option<Val<'a>>, EvalError> {
        match self {
            Self::Tree { members, declared } => declared.get(members, key),
            Self::Owned(entries) => {
                let key = Key(Val::String(Text::Shared(key.into())));
                Ok(entries.get(&key).cloned())
            }
        }
    }

    /// The keys in order.
    pub(crate) fn keys(&self) -> Vec<Val<'a>> {
        match self {
            Self::Tree { members, declared } => {
                let members: &'a Tree = members;
                let names = members.iter().filter_map(|(name, _)| declared.key(name));
                names.map(|name| Val::String(Text::Borrowed(name))).collect()
            }
            Self::Owned(entries) => entries.keys().map(|key| key.0.clone()).collect(),
        }
    }

    /// Returns an arbitrary entry; `None` for an empty map.
    pub(crate) fn first(&self) -> Option<(Val<'a>, Val<'a>)> {
        let key = match self {
            Self::Tree { members, declared } => {
                let members: &'a Tree = members;
                let name = members.iter().find_map(|(name, _)| declared.key(name))?;
                Val::String(Text::Borrowed(name))
            }
            Self::Owned(entries) => entries.keys().next()?.0.clone(),
        };
        let value = self.get(&key).ok().flatten()?;
        Some((key, value))
    }

    /// The entries ordered by key.
    pub(crate) fn entries(&self) -> Result<Vec<(Val<'a>, Val<'a>)>, EvalError> {
        let value = |key: Val<'a>| {
            // A key without a value is a nullable field that is null.
            let value = self.get(&key)?.unwrap_or(Val::Null);
            Ok((key, value))
        };
        self.keys().into_iter().map(value).collect()
    }
}

impl<'a> Declared<'a> {
    pub(crate) const fn as_object(self) -> Option<&'a Object> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    fn get(self, members: &'a Tree, key: &str) -> Result<Option<Val<'a>>, EvalError> {
        let found = match self {
            Self::Object(object) => {
                let Some(field) = object.field(key) else { return Ok(None) };
                // A nullable field that is null counts as absent.
                let value = members.get(field.name()).filter(|v| !matches!(v, Value::Null));
                value.map(|value| lift(value, field.declaration()))
            }
            Self::Map(map) => members.get(key).map(|value| lift(value, &map.values)),
            Self::Any => members.get(key).map(|value| Ok(super::convert::any(value))),
        };
        found.transpose()
    }

    /// The key by which expressions access a member; `None` if the schema does not declare it.
    fn key(self, name: &'a str) -> Option<&'a str> {
        match self {
            Self::Object(object) => object.field_in_data(name).map(declaration::Field::identifier),
            Self::Map(_) | Self::Any => Some(name),
        }
    }

    pub(super) fn lift_member(self, name: &str, value: &'a Value) -> Option<Eval<'a>> {
        match self {
            Self::Object(object) => {
                object.field_in_data(name).map(|field| lift(value, field.declaration()))
            }
            Self::Map(map) => Some(lift(value, &map.values)),
            Self::Any => Some(Ok(super::convert::any(value))),
        }
    }
}

//! Lists: of a tree, constructed by an expression, or a concatenation of two.

use std::collections::HashMap;
use std::sync::Arc;

use pintle_value::Value;

use super::convert::{any, identity, key_of};
use super::{Eval, Val, lift};
use crate::context::Context;
use crate::types::declaration::{self, Merge};

/// A list.
#[derive(Clone, Debug)]
pub(crate) enum List<'a> {
    /// Items of a tree.
    Tree { items: &'a [Value], declared: Declared<'a> },
    /// Items that an expression constructed; those from a set or a keyed list keep its merge type.
    Owned { items: Arc<Vec<Val<'a>>>, merge: Option<&'a Merge> },
    /// A concatenation. In the cost model, adding lists costs one, so it must not copy items.
    Chain { parts: Arc<(List<'a>, List<'a>)>, len: u64, depth: u32 },
}

/// The declaration of a list in a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Declared<'a> {
    Known(&'a declaration::List),
    /// A list of any JSON values.
    Any,
}

impl<'a> List<'a> {
    pub(crate) fn owned(items: Vec<Val<'a>>) -> Self {
        Self::Owned { items: Arc::new(items), merge: None }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Tree { items, .. } => items.len() as u64,
            Self::Owned { items, .. } => items.len() as u64,
            Self::Chain { len, .. } => *len,
        }
    }

    /// The nesting of concatenations: the steps to find an item by its index.
    pub(crate) const fn depth(&self) -> u32 {
        match self {
            Self::Chain { depth, .. } => *depth,
            _ => 0,
        }
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.len() == 0 && !self.is_of_data()
    }

    /// Whether the list is one of data, a merge of such lists, or a concatenation that begins with
    /// one. Upstream treats these lists differently from those that an expression constructs.
    pub(crate) fn is_of_data(&self) -> bool {
        match self {
            Self::Tree { .. } => true,
            Self::Owned { merge, .. } => merge.is_some(),
            Self::Chain { parts, .. } => parts.0.is_of_data(),
        }
    }

    /// The item at `index`, if it exists.
    pub(crate) fn get(&self, index: u64) -> Option<Eval<'a>> {
        match self {
            Self::Tree { items, declared } => {
                let item = items.get(usize::try_from(index).ok()?)?;
                Some(declared.lift(item))
            }
            Self::Owned { items, .. } => {
                items.get(usize::try_from(index).ok()?).map(|item| Ok(item.clone()))
            }
            Self::Chain { parts, .. } => match index.checked_sub(parts.0.len()) {
                None => parts.0.get(index),
                Some(index) => parts.1.get(index),
            },
        }
    }

    /// The items in order. The parts of a concatenation are visited one by one, instead of indexing
    /// from the whole.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Eval<'a>> + use<'_, 'a> {
        let mut due = vec![self];
        let mut next = 0;
        std::iter::from_fn(move || {
            loop {
                let part = due.pop()?;
                if let Self::Chain { parts, .. } = part {
                    due.push(&parts.1);
                    due.push(&parts.0);
                } else if let Some(item) = part.get(next) {
                    next += 1;
                    due.push(part);
                    return Some(item);
                } else {
                    next = 0;
                }
            }
        })
    }

    /// The merge type: a set, a keyed list, or a plain list.
    pub(crate) fn merge(&self) -> &'a Merge {
        match self {
            Self::Tree { declared: Declared::Known(list), .. } => &list.merge,
            Self::Owned { merge: Some(merge), .. } => merge,
            _ => &Merge::Atomic,
        }
    }

    /// Adds two lists: a concatenation, or a merge if the first list is a set or has keys.
    pub(crate) fn plus(&self, other: &Self, context: &mut Context) -> Eval<'a> {
        let merge = self.merge();
        if *merge == Merge::Atomic {
            return Ok(Val::List(Self::chain(self.clone(), other.clone())));
        }
        let tell = |item: &Val<'a>, context: &mut Context| match merge {
            Merge::Keys(keys) => key_of(item, keys, context),
            _ => identity(item, context),
        };
        context.work((self.len().saturating_add(other.len())).saturating_mul(16))?;
        let mut items: Vec<Val<'a>> = self.iter().collect::<Result<_, _>>()?;
        let mut known = HashMap::new();
        for (at, item) in items.iter().enumerate() {
            known.insert(tell(item, context)?, at);
        }
        for item in other.iter() {
            let item = item?;
            let name = tell(&item, context)?;
            match known.get(&name) {
                // A set has the item already; of two objects with the same keys the later one wins.
                Some(at) if matches!(merge, Merge::Keys(_)) => items[*at] = item,
                Some(_) => {}
                None => {
                    known.insert(name, items.len());
                    items.push(item);
                }
            }
        }
        Ok(Val::List(Self::Owned { items: Arc::new(items), merge: Some(merge) }))
    }

    /// Concatenates two lists.
    fn chain(first: Self, second: Self) -> Self {
        if first.len() == 0 {
            return second;
        }
        if second.len() == 0 {
            return first;
        }
        let len = first.len().saturating_add(second.len());
        let depth = first.depth().max(second.depth()).saturating_add(1);
        Self::Chain { parts: Arc::new((first, second)), len, depth }
    }
}

impl<'a> Declared<'a> {
    fn lift(self, item: &'a Value) -> Eval<'a> {
        match self {
            Self::Known(list) => lift(item, &list.items),
            Self::Any => Ok(any(item)),
        }
    }
}

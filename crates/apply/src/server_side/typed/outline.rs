//! The outline of a new object: everything that decides which fields its creator owns. Those are
//! mostly names; of the values, only the keys of list items count.

use pintle_value::{Map, Str, Value};

use super::created::{Exclusions, is_container};
use super::{Items, Typing, View};
use crate::server_side::fieldset::PathElement;

/// The maximum size of an outline in bytes: enough for an object with a thousand values.
const BYTES_MAX: usize = 64 << 10;

/// The outline of a value.
#[derive(Debug)]
pub(crate) enum Outline {
    /// Any value: it is owned as a whole, or not owned at all.
    Any,
    /// Any value without members.
    NoMembers,
    /// Any value without items.
    NoItems,
    /// Any value with members or items: it is owned as a whole, and the empty object has none there.
    Content,
    /// This value: it is the key of an item, or is compared with that of the empty object.
    Exactly(Value),
    /// An object with these members and no others.
    Members(Box<[(Str, Outline)]>),
    /// A list of as many items.
    Items(Box<[Outline]>),
}

impl Outline {
    /// Returns the outline of an object for which [`created`](super::created()) has a result, and the
    /// outline's size in bytes. Each object that fits the outline has the same result. `None` for a
    /// few objects, such as very large ones.
    pub(crate) fn of(
        ty: Typing<'_>,
        empty: &Value,
        new: &Value,
        without: Exclusions<'_>,
    ) -> Option<(Self, usize)> {
        let mut builder = Builder { bytes: 0 };
        let outline = builder.outline(ty, (Some(empty), new), without)?;
        Some((outline, builder.bytes))
    }

    /// Whether a value has this outline.
    pub(crate) fn fits(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Any, _) => true,
            (Self::NoMembers, Value::Object(members)) => members.is_empty(),

            (Self::NoItems, Value::Array(items)) => items.is_empty(),
            (Self::NoMembers | Self::NoItems, _) => true,
            (Self::Content, _) => is_container(value),
            (Self::Exactly(expected), _) => expected == value,
            (Self::Members(outlines), Value::Object(members)) => {
                let mut pairs = outlines.iter().zip(members.as_slice());
                outlines.len() == members.len()
                    && pairs
                        .all(|((name, outline), (key, value))| name == key && outline.fits(value))
            }
            (Self::Items(outlines), Value::Array(items)) => {
                let mut pairs = outlines.iter().zip(items);
                outlines.len() == items.len() && pairs.all(|(outline, item)| outline.fits(item))
            }
            (Self::Members(_) | Self::Items(_), _) => false,
        }
    }
}

struct Builder {
    /// The size so far.
    bytes: usize,
}

impl Builder {
    /// Counts a value and a text that is copied; `None` if the outline becomes too large.
    fn count(&mut self, text: &str) -> Option<()> {
        self.bytes += size_of::<(Str, Outline)>() + text.len();
        (self.bytes <= BYTES_MAX).then_some(())
    }

    fn outline(
        &mut self,
        ty: Typing<'_>,
        (empty, new): (Option<&Value>, &Value),
        without: Exclusions<'_>,
    ) -> Option<Outline> {
        let (view, compared) = (ty.view(), empty.is_some());
        match (view, new) {
            (View::Leaf, _) if !compared => Some(Outline::Any),
            (View::Leaf, _) if is_container(new) && !empty.is_some_and(is_container) => {
                Some(Outline::Content)
            }
            (View::Items(items), Value::Array(list)) if !list.is_empty() => {
                self.items(items, list, without)
            }
            (View::Members | View::Deduced, Value::Object(members)) if !members.is_empty() => {
                self.members(ty, (empty, members), without)
            }
            _ if compared => self.exactly(new),
            (View::Items(_), _) => Some(Outline::NoItems),
            _ => Some(Outline::NoMembers),
        }
    }

    fn members(
        &mut self,
        ty: Typing<'_>,
        (empty, members): (Option<&Value>, &Map),
        without: Exclusions<'_>,
    ) -> Option<Outline> {
        let member = |(name, new): (&Str, &Value)| {
            self.count(name)?;
            let (element, ty) = (PathElement::field(name), ty.member(name).0);
            let empty = empty.and_then(|empty| empty.get(name));
            let outline = match without.trees.has_member(&element) {
                true => Outline::Any,
                false => self.outline(ty, (empty, new), without.below(&element))?,
            };
            Some((name.clone(), outline))
        };
        members.iter().map(member).collect::<Option<_>>().map(Outline::Members)
    }

    fn items(
        &mut self,
        items: Items<'_>,
        list: &[Value],
        without: Exclusions<'_>,
    ) -> Option<Outline> {
        if !without.is_empty() {
            return None;
        }
        let item = |item: &Value| {
            let Value::Object(members) = item else { return self.exactly(item) };
            self.count("")?;
            let is_leaf = matches!(items.ty.view(), View::Leaf);
            let member = |(name, new): (&Str, &Value)| {
                self.count(name)?;
                let outline = match (items.has_key(name), is_leaf) {
                    (true, _) => self.exactly(new)?,
                    (false, true) => Outline::Any,
                    (false, false) => {
                        self.outline(items.ty.member(name).0, (None, new), without)?
                    }
                };
                Some((name.clone(), outline))
            };
            members.iter().map(member).collect::<Option<_>>().map(Outline::Members)
        };
        // The list is sorted only now, because the bound has left out long ones.
        let outlines = list.iter().map(item).collect::<Option<_>>()?;
        items.index(list).is_distinct().then_some(Outline::Items(outlines))
    }

    /// Returns the outline of a value that is compared.
    fn exactly(&mut self, value: &Value) -> Option<Outline> {
        self.count(value.as_str().unwrap_or_default())?;
        (!is_container(value) && !matches!(value, Value::Raw(_)))
            .then(|| Outline::Exactly(value.clone()))
    }
}

//! Objects as field ownership sees them: which parts are owned as a whole, which have members or
//! items with owners of their own, and how items are told apart.
//!
//! Must not know: managers, versions, metadata.
//!
//! Invariants: a walk over objects that are there never fails for what the schema does not know
//! (such members are taken as their values look); what a client applies is checked first ([`check`]).

mod check;
mod compare;
#[cfg(test)]
mod extract;
mod items;
mod made;
mod merge;
mod reconcile;
mod remove;
#[cfg(test)]
mod tests;
mod walk;

use pintle_schema::{Field, ListType, MapType, Scalar, Schema, Shape, TypeId, Unknown};

pub(crate) use check::check;
pub(crate) use compare::{Comparison, compare};
#[cfg(test)]
pub(crate) use extract::extract;
pub(crate) use items::Items;
pub(crate) use made::{Without, made};
pub(crate) use merge::merge;
pub(crate) use reconcile::reconcile;
pub(crate) use remove::remove;
pub(crate) use walk::{field_set, with_named_fields};

/// What is known of a value's type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Typing<'s> {
    schema: &'s Schema,
    /// `None` below a value that may be anything.
    known: Option<(TypeId, &'s Shape)>,
}

/// How a value is owned.
#[derive(Clone, Copy, Debug)]
pub(crate) enum View<'s> {
    /// As a whole.
    Leaf,
    /// Member by member.
    Members,
    /// Item by item.
    Items(Items<'s>),
    /// Member by member if it is an object, else as a whole.
    Deduced,
}

/// What a type says of one of its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It is a declared field.
    Field,
    /// It is an entry of a map: as an entry it can be owned apart from what is in it.
    Entry,
    /// It should not be there.
    Unknown,
}

impl<'s> Typing<'s> {
    pub(crate) fn new(schema: &'s Schema, ty: TypeId) -> Self {
        Self { schema, known: Some((ty, &schema.get(ty).shape)) }
    }

    pub(crate) fn of(self, ty: TypeId) -> Self {
        Self::new(self.schema, ty)
    }

    const fn deduced(self) -> Self {
        Self { known: None, ..self }
    }

    pub(crate) fn shape(self) -> Option<&'s Shape> {
        self.known.map(|(_, shape)| shape)
    }

    /// The declared field `name`.
    fn field(self, name: &str) -> Option<&'s Field> {
        self.schema.field(self.known?.0, name)
    }

    /// Whether its values have members or items, however they are owned.
    fn is_container(self) -> bool {
        matches!(self.shape(), Some(Shape::List { .. } | Shape::Struct { .. } | Shape::Map { .. }))
    }

    pub(crate) fn view(self) -> View<'s> {
        match self.shape() {
            None | Some(Shape::Scalar(Scalar::Any | Scalar::Fields)) => View::Deduced,
            Some(
                Shape::Scalar(_)
                | Shape::List { list_type: ListType::Atomic, .. }
                | Shape::Struct { map_type: MapType::Atomic, .. }
                | Shape::Map { map_type: MapType::Atomic, .. },
            ) => View::Leaf,
            Some(Shape::Struct { .. } | Shape::Map { .. }) => View::Members,
            Some(Shape::List { item, list_type }) => {
                let keys = match list_type {
                    ListType::Map(keys) => &keys[..],
                    _ => &[],
                };
                View::Items(Items::new(self.of(*item), keys))
            }
        }
    }

    /// The type of the member `name`, and what it is.
    pub(crate) fn member(self, name: &str) -> (Self, Role) {
        match self.shape() {
            Some(Shape::Struct { unknown, .. }) => {
                let other = match unknown {
                    Unknown::Drop => Role::Unknown,
                    Unknown::Keep => Role::Entry,
                };
                self.field(name)
                    .map_or((self.deduced(), other), |field| (self.of(field.ty), Role::Field))
            }
            Some(Shape::Map { value, .. }) => (self.of(*value), Role::Entry),
            _ => (self.deduced(), Role::Entry),
        }
    }
}

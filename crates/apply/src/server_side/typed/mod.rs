//! Objects from the view of field ownership: which values are owned as a whole, which have members
//! or items with their own owners, and how list items are identified.
//!
//! Must not know: managers, versions, metadata.
//!
//! Invariants: walking a live object never fails because of fields that the schema lacks (their
//! types are deduced from their values); an applied configuration is checked first ([`check()`]).

mod check;
mod compare;
mod created;
#[cfg(test)]
mod extract;
mod items;
mod merge;
mod outline;
mod reconcile;
mod remove;
#[cfg(test)]
mod tests;
mod walk;

use pintle_schema::{Field, ListType, MapType, Scalar, Schema, Shape, TypeId, Unknown};

pub(crate) use check::check;
pub(crate) use compare::{Comparison, compare};
pub(crate) use created::{Exclusions, created};
#[cfg(test)]
pub(crate) use extract::extract;
pub(crate) use items::Items;
pub(crate) use merge::merge;
pub(crate) use outline::Outline;
pub(crate) use reconcile::reconcile;
pub(crate) use remove::remove;
pub(crate) use walk::{field_set, with_named_fields};

/// A type in a schema, or an unknown type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Typing<'s> {
    schema: &'s Schema,
    /// `None` for a member that the schema does not declare, and below a value of arbitrary type.
    known: Option<(TypeId, &'s Shape)>,
}

/// The granularity at which a value is owned.
#[derive(Clone, Copy, Debug)]
pub(crate) enum View<'s> {
    /// The value as a whole.
    Leaf,
    /// Each member on its own.
    Members,
    /// Each item on its own.
    Items(Items<'s>),
    /// Deduced from the value: each member on its own if it is an object, else as a whole.
    Deduced,
}

/// The relation of a member to its parent's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A declared field.
    Field,
    /// An entry of a map, or a member that the type keeps without declaring it. Such a member can
    /// be owned independently of its content.
    Entry,
    /// A member that the type neither declares nor keeps.
    Unknown,
}

impl<'s> Typing<'s> {
    pub(crate) fn new(schema: &'s Schema, ty: TypeId) -> Self {
        Self { schema, known: Some((ty, &schema.get(ty).shape)) }
    }

    /// Whether the type is declared by a CustomResourceDefinition.
    pub(super) fn is_structural(self) -> bool {
        self.known.is_some_and(|(ty, _)| self.schema.is_structural(ty))
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

    /// Whether values of the type have members or items, at any granularity of ownership.
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

    /// The type of the member `name`, and its role.
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

//! Values that an update leaves unchanged, for ratcheting (upstream: `apiserver/pkg/cel/common`, CorrelatedObject).

use pintle_value::Value;

use crate::structural::Structural;
use crate::value::lists::is_same;

/// A new value with the old value that it is correlated with. For a value without an old one it is the
/// nearest enclosing value that has one.
#[derive(Clone, Copy)]
pub(super) struct Ratchet<'v> {
    /// Whether it is about the value itself, not an enclosing one.
    pub(super) own: bool,
    pub(super) schema: &'v Structural,
    pub(super) value: &'v Value,
    pub(super) old: &'v Value,
}

impl<'v> Ratchet<'v> {
    /// The same for a member or an item of this value.
    pub(super) fn below(
        self,
        schema: &'v Structural,
        value: &'v Value,
        old: Option<&'v Value>,
    ) -> Self {
        match old {
            Some(old) if self.own => Self { own: true, schema, value, old },
            _ => Self { own: false, ..self },
        }
    }

    /// Whether the new value equals the old one.
    pub(super) fn is_same(self) -> bool {
        is_same(self.schema, self.value, self.old)
    }
}

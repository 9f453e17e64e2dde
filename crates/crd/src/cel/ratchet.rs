//! Values that an update leaves unchanged, for ratcheting (upstream: `apiserver/pkg/cel/common`,
//! CorrelatedObject).

use pintle_value::Value;

use crate::structural::Structural;
use crate::value::lists::is_same;

/// A new value with the old value that it is correlated with. A value without an old value is
/// replaced by the nearest enclosing value that has one.
#[derive(Clone, Copy)]
pub(super) struct Ratchet<'v> {
    /// False if `value` is an enclosing value instead of the value itself.
    pub(super) own: bool,
    pub(super) schema: &'v Structural,
    pub(super) value: &'v Value,
    pub(super) old: &'v Value,
}

impl<'v> Ratchet<'v> {
    /// Returns the ratchet of a member or an item of this value.
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

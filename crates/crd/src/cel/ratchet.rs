//! Values that an update leaves unchanged, for ratcheting (upstream: `apiserver/pkg/cel/common`,
//! CorrelatedObject).

use std::cell::OnceCell;
use std::rc::Rc;

use pintle_value::Value;

use crate::structural::Structural;
use crate::value::lists::is_same;

/// A new value with the old value that it is correlated with. A value without an old value is
/// replaced by the nearest enclosing value that has one.
#[derive(Clone)]
pub(super) struct Ratchet<'v> {
    /// False if `value` is an enclosing value instead of the value itself.
    own: bool,
    schema: &'v Structural,
    value: &'v Value,
    old: &'v Value,
    /// The result of the comparison. All values that this one replaces share it: each item of a
    /// list without keys needs the comparison of the whole list.
    same: Rc<OnceCell<bool>>,
}

impl<'v> Ratchet<'v> {
    /// The ratchet of a whole object.
    pub(super) fn new(schema: &'v Structural, value: &'v Value, old: &'v Value) -> Self {
        Self { own: true, schema, value, old, same: Rc::default() }
    }

    /// Returns the ratchet of a member or an item of this value.
    pub(super) fn below(
        &self,
        schema: &'v Structural,
        value: &'v Value,
        old: Option<&'v Value>,
    ) -> Self {
        match old {
            Some(old) if self.own => Self::new(schema, value, old),
            _ => Self { own: false, ..self.clone() },
        }
    }

    /// Whether the new value equals the old one.
    pub(super) fn is_same(&self) -> bool {
        *self.same.get_or_init(|| is_same(self.schema, self.value, self.old))
    }
}

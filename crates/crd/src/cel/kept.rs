//! What an update leaves as it was (upstream: `apiserver/pkg/cel/common`, CorrelatedObject).

use pintle_value::Value;

use crate::structural::Structural;
use crate::value::lists::is_same;

/// A value that can be told to be another's successor, and that other. For values without a
/// predecessor it is the nearest value around them that has one.
#[derive(Clone, Copy)]
pub(super) struct Kept<'v> {
    /// Whether it is of the value itself.
    pub(super) own: bool,
    pub(super) schema: &'v Structural,
    pub(super) value: &'v Value,
    pub(super) old: &'v Value,
}

impl<'v> Kept<'v> {
    /// The same for a value in this one.
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

    /// Whether it is as it was.
    pub(super) fn is_same(self) -> bool {
        is_same(self.schema, self.value, self.old)
    }
}

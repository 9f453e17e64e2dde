//! Values of Kubernetes' own types.

use std::fmt;

use pintle_meta::Quantity;

use crate::error::EvalError;

/// A value that only its library's functions look into.
#[derive(Clone, Debug)]
pub(crate) enum Opaque {
    Quantity(Quantity),
}

impl Opaque {
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Quantity(_) => "kubernetes.Quantity",
        }
    }

    /// The size that the cost reckons with.
    pub(super) fn size(&self) -> u64 {
        1
    }

    /// The length of a named format's pattern.
    pub(crate) fn pattern_length(&self) -> u64 {
        1
    }

    pub(super) fn equals(&self, other: &Self) -> Result<bool, EvalError> {
        match (self, other) {
            (Self::Quantity(a), Self::Quantity(b)) => Ok(a == b),
        }
    }

    /// Whether this is equal to a value of another type: some types don't even ask.
    pub(super) fn not_equal(&self) -> Result<bool, EvalError> {
        Err(EvalError::no_such_overload())
    }
}

impl fmt::Display for Opaque {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quantity(quantity) => write!(f, "{quantity}"),
        }
    }
}

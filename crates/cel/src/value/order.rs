//! The order of values.

use std::cmp::Ordering;

use super::Val;
use crate::error::EvalError;
use crate::number;

/// Compares two values, if they are ordered.
pub(crate) fn compare(a: &Val<'_>, b: &Val<'_>) -> Result<Ordering, EvalError> {
    let nan = || EvalError::new("NaN values cannot be ordered");
    match (a, b) {
        (Val::Int(a), Val::Int(b)) => Ok(a.cmp(b)),
        (Val::Uint(a), Val::Uint(b)) => Ok(a.cmp(b)),
        (Val::Int(a), Val::Uint(b)) => Ok(i128::from(*a).cmp(&i128::from(*b))),
        (Val::Uint(a), Val::Int(b)) => Ok(i128::from(*a).cmp(&i128::from(*b))),
        (Val::Double(a), Val::Double(b)) => a.partial_cmp(b).ok_or_else(nan),
        (Val::Int(a), Val::Double(b)) => number::compare(i128::from(*a), *b).ok_or_else(nan),
        (Val::Uint(a), Val::Double(b)) => number::compare(i128::from(*a), *b).ok_or_else(nan),
        (Val::Double(a), Val::Int(b)) => {
            number::compare(i128::from(*b), *a).map(Ordering::reverse).ok_or_else(nan)
        }
        (Val::Double(a), Val::Uint(b)) => {
            number::compare(i128::from(*b), *a).map(Ordering::reverse).ok_or_else(nan)
        }
        (Val::String(a), Val::String(b)) => Ok((**a).cmp(&**b)),
        (Val::Bytes(a), Val::Bytes(b)) => Ok(a.cmp(b)),
        (Val::Bool(a), Val::Bool(b)) => Ok(a.cmp(b)),
        (Val::Timestamp(a), Val::Timestamp(b)) => Ok(a.cmp(b)),
        (Val::Duration(a), Val::Duration(b)) => Ok(a.cmp(b)),
        _ => Err(EvalError::no_such_overload()),
    }
}

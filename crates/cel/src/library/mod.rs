//! What functions there are: the language's own and those of Kubernetes' environment, one module a
//! library, each a table of names, overloads and what they do.

mod addresses;
mod authorization;
mod conversions;
mod formats;
mod formatting;
mod lists;
pub(crate) mod operators;
mod optionals;
mod patches;
mod quantities;
pub(crate) mod regex;
mod semvers;
mod strings;
mod times;
mod urls;

use crate::context::Context;
use crate::error::EvalError;
use crate::functions::Row;
use crate::value::{Eval, Val};

pub(crate) use addresses::Cidr;
pub(crate) use formats::Format;
pub(crate) use formatting::check as check_format;
pub(crate) use semvers::Semver;

/// All libraries.
pub(crate) const LIBRARIES: &[&[Row]] = &[
    operators::FUNCTIONS,
    conversions::FUNCTIONS,
    strings::FUNCTIONS,
    lists::FUNCTIONS,
    times::FUNCTIONS,
    optionals::FUNCTIONS,
    quantities::FUNCTIONS,
    regex::FUNCTIONS,
    urls::FUNCTIONS,
    addresses::FUNCTIONS,
    semvers::FUNCTIONS,
    formats::FUNCTIONS,
    authorization::FUNCTIONS,
    patches::FUNCTIONS,
];

/// Whether a function is known only where patches are made.
pub(crate) fn is_of_patches(name: &str) -> bool {
    patches::FUNCTIONS.iter().any(|(own, ..)| *own == name)
}

/// Of functions that the plan does itself.
fn planned<'a>(_: &mut Context, _: &[Val<'a>]) -> Eval<'a> {
    Err(EvalError::no_such_overload())
}

/// No function takes these arguments.
fn no_overload<T>() -> Result<T, EvalError> {
    Err(EvalError::no_such_overload())
}

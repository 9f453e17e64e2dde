//! The functions that expressions can call: those of the language and of Kubernetes' libraries.
//! Each library is a module with a table of names, overloads and implementations.

mod addresses;
mod authorization;
mod conversions;
mod formats;
pub(crate) mod formatting;
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

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::context::Context;
use crate::error::EvalError;
use crate::functions::{Function, Row};
use crate::value::{Eval, Val};

/// All libraries.
const LIBRARIES: &[&[Row]] = &[
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

/// The function `name`.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    static ALL: LazyLock<HashMap<&'static str, Function>> = LazyLock::new(|| {
        let rows = LIBRARIES.iter().flat_map(|rows| rows.iter());
        rows.map(|row| (row.0, Function::from(row))).collect()
    });
    ALL.get(name)
}

/// Whether a function is only declared for patches.
pub(crate) fn is_of_patches(name: &str) -> bool {
    patches::FUNCTIONS.iter().any(|(own, ..)| *own == name)
}

/// The implementation of functions that the plan evaluates itself; it is never called.
fn planned<'a>(_: &mut Context, _: &[Val<'a>]) -> Eval<'a> {
    Err(EvalError::no_such_overload())
}

/// The error that no overload matches the arguments.
fn no_overload<T>() -> Result<T, EvalError> {
    Err(EvalError::no_such_overload())
}

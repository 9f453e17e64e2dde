//! Functions of semantic versions.

use std::sync::Arc;

use super::no_overload;
use crate::context::Context;
use crate::error::EvalError;
use crate::functions::Guard::Typed;
use crate::functions::Row;
use crate::semver::Semver;
use crate::value::{Eval, Opaque, Val};

pub(super) const FUNCTIONS: &[Row] = &[
    (
        "semver",
        Typed,
        semver,
        &[
            ("string_to_semver", "string -> kubernetes.Semver"),
            ("string_bool_to_semver", "string, bool -> kubernetes.Semver"),
        ],
    ),
    (
        "isSemver",
        Typed,
        is_semver,
        &[
            ("is_semver_string", "string -> bool"),
            ("is_semver_string_bool", "string, bool -> bool"),
        ],
    ),
    ("major", Typed, |_, args| part(args, 0), &[("semver_major", ".kubernetes.Semver -> int")]),
    ("minor", Typed, |_, args| part(args, 1), &[("semver_minor", ".kubernetes.Semver -> int")]),
    ("patch", Typed, |_, args| part(args, 2), &[("semver_patch", ".kubernetes.Semver -> int")]),
];

fn read(args: &[Val<'_>]) -> Result<Result<Semver, String>, EvalError> {
    match args {
        [Val::String(text)] | [Val::String(text), Val::Bool(false)] => Ok(Semver::parse(text)),
        [Val::String(text), Val::Bool(true)] => Ok(Semver::parse_loosely(text)),
        _ => no_overload(),
    }
}

fn semver<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    match read(args)? {
        Ok(version) => Ok(Val::Opaque(Arc::new(Opaque::Semver(version)))),
        Err(error) => Err(EvalError::new(error)),
    }
}

fn is_semver<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    Ok(Val::Bool(read(args)?.is_ok()))
}

fn part<'a>(args: &[Val<'a>], index: usize) -> Eval<'a> {
    match args {
        [Val::Opaque(opaque)] => match &**opaque {
            // Go reinterprets the unsigned number as a signed one.
            Opaque::Semver(version) => Ok(Val::Int(version.numbers[index] as i64)),
            _ => no_overload(),
        },
        _ => no_overload(),
    }
}

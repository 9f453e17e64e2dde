//! Regular expressions: the language's `matches`, and Kubernetes' `find` and `findAll`.

use std::sync::Arc;

use super::no_overload;
use crate::context::{Compiled, Context};
use crate::error::EvalError;
use crate::functions::Guard::Own;
use crate::functions::Row;
use crate::pattern::Pattern;
use crate::value::{Eval, Text, Val};

/// The work of compiling a pattern, for each byte of its memory limit; the time grows faster than
/// the memory.
const COMPILED: u64 = 1;
const LARGE_COMPILED: u64 = 4;

/// The memory limit from which a pattern is large.
const LARGE: usize = 128 * 1024;

pub(super) const FUNCTIONS: &[Row] = &[
    (
        "matches",
        Own,
        matches,
        &[("matches", "string, string -> bool"), ("matches_string", ".string, string -> bool")],
    ),
    ("find", Own, find, &[("string_find_string", ".string, string -> string")]),
    (
        "findAll",
        Own,
        find_all,
        &[
            ("string_find_all_string", ".string, string -> list(string)"),
            ("string_find_all_string_int", ".string, string, int -> list(string)"),
        ],
    ),
];

/// Calls one of these functions with a precompiled pattern.
pub(crate) fn with<'a>(
    pattern: &Pattern,
    function: &str,
    args: &[Val<'a>],
    context: &mut Context,
) -> Eval<'a> {
    let text = match args.first() {
        Some(Val::String(text)) => text,
        // Upstream accepts an optional here.
        Some(Val::Optional(Some(inner))) => match &**inner {
            Val::String(text) => text,
            _ => return no_overload(),
        },
        _ => return no_overload(),
    };
    context.work(pattern.work_on(text))?;
    let regex = pattern.regex();
    match (function, args) {
        ("matches", _) => Ok(Val::Bool(regex.is_match(text))),
        ("find", _) => {
            let found = regex.find(text).map_or(0..0, |found| found.range());
            Ok(Val::String(text.slice(found)))
        }
        (_, [_, _]) => all(pattern, text, usize::MAX, context),
        (_, [_, _, Val::Int(limit)]) => {
            let limit = usize::try_from(*limit).unwrap_or(usize::MAX);
            all(pattern, text, limit, context)
        }
        _ => no_overload(),
    }
}

fn all<'a>(pattern: &Pattern, text: &Text<'a>, limit: usize, context: &mut Context) -> Eval<'a> {
    let mut out = Vec::new();
    let mut last_end = None;
    for found in pattern.regex().find_iter(text) {
        // Go skips an empty match directly after another one.
        if found.is_empty() && last_end == Some(found.start()) {
            continue;
        }
        if out.len() == limit {
            break;
        }
        last_end = Some(found.end());
        context.work(4)?;
        out.push(Val::String(text.slice(found.range())));
    }
    Ok(Val::list(out))
}

fn called<'a>(function: &str, context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::String(_), Val::String(pattern), ..] = args else { return no_overload() };
    let pattern = compiled(pattern, context).map_err(|error| match function {
        _ if error.is_cancelled() => error,
        "matches" => error,
        _ => EvalError::new(format!("Illegal regex: {error}")),
    })?;
    with(&pattern, function, args, context)
}

/// Compiles a pattern, or finds it among those that were used last.
fn compiled(pattern: &str, context: &mut Context) -> Compiled {
    if let Some(known) = context.known_pattern(pattern) {
        return known;
    }
    let compiled = Pattern::new(pattern, |size| {
        let work = if size >= LARGE { LARGE_COMPILED } else { COMPILED };
        context.work(size as u64 * work)
    });
    let compiled = compiled.map(Arc::new);
    match &compiled {
        Err(error) if error.is_cancelled() => {}
        _ => context.keep_pattern(pattern, compiled.clone()),
    }
    compiled
}

fn matches<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    called("matches", context, args)
}

fn find<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    called("find", context, args)
}

fn find_all<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    called("findAll", context, args)
}

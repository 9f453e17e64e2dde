//! Functions for constructing patches, declared only in environments with patches.

use super::no_overload;
use crate::context::Context;
use crate::functions::Guard::Typed;
use crate::functions::Row;
use crate::value::{Eval, Val};

pub(super) const FUNCTIONS: &[Row] = &[(
    "jsonpatch.escapeKey",
    Typed,
    escape_key,
    &[("string_jsonpatch_escapeKey_string", "string -> string")],
)];

/// Escapes a key as a segment of a JSON pointer.
fn escape_key<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::String(key)] = args else { return no_overload() };
    context.work(key.len() as u64 * 2)?;
    Ok(Val::string(key.replace('~', "~0").replace('/', "~1")))
}

//! Functions of named formats.

use std::sync::Arc;

use super::no_overload;
use crate::context::Context;
use crate::format;
use crate::functions::Guard::Typed;
use crate::functions::Row;
use crate::value::{Eval, Opaque, Val};

pub(super) const FUNCTIONS: &[Row] = &[
    ("format.byte", Typed, |_, _| constant("byte"), &[("format.byte", NAMED)]),
    ("format.date", Typed, |_, _| constant("date"), &[("format.date", NAMED)]),
    ("format.datetime", Typed, |_, _| constant("datetime"), &[("format.datetime", NAMED)]),
    (
        "format.dns1035Label",
        Typed,
        |_, _| constant("dns1035Label"),
        &[("format.dns1035Label", NAMED)],
    ),
    (
        "format.dns1035LabelPrefix",
        Typed,
        |_, _| constant("dns1035LabelPrefix"),
        &[("format.dns1035LabelPrefix", NAMED)],
    ),
    (
        "format.dns1123Label",
        Typed,
        |_, _| constant("dns1123Label"),
        &[("format.dns1123Label", NAMED)],
    ),
    (
        "format.dns1123LabelPrefix",
        Typed,
        |_, _| constant("dns1123LabelPrefix"),
        &[("format.dns1123LabelPrefix", NAMED)],
    ),
    (
        "format.dns1123Subdomain",
        Typed,
        |_, _| constant("dns1123Subdomain"),
        &[("format.dns1123Subdomain", NAMED)],
    ),
    (
        "format.dns1123SubdomainPrefix",
        Typed,
        |_, _| constant("dns1123SubdomainPrefix"),
        &[("format.dns1123SubdomainPrefix", NAMED)],
    ),
    ("format.labelValue", Typed, |_, _| constant("labelValue"), &[("format.labelValue", NAMED)]),
    (
        "format.qualifiedName",
        Typed,
        |_, _| constant("qualifiedName"),
        &[("format.qualifiedName", NAMED)],
    ),
    ("format.uri", Typed, |_, _| constant("uri"), &[("format.uri", NAMED)]),
    ("format.uuid", Typed, |_, _| constant("uuid"), &[("format.uuid", NAMED)]),
    (
        "format.named",
        Typed,
        named,
        &[("format-named", "string -> optional_type(kubernetes.NamedFormat)")],
    ),
    (
        "validate",
        Typed,
        validate,
        &[("format-validate", ".kubernetes.NamedFormat, string -> optional_type(list(string))")],
    ),
];

const NAMED: &str = "-> kubernetes.NamedFormat";

fn find(key: &str) -> Option<Val<'static>> {
    let found = format::find(key)?;
    Some(Val::Opaque(Arc::new(Opaque::Format(found))))
}

fn constant<'a>(key: &str) -> Eval<'a> {
    find(key).map_or_else(no_overload, Ok)
}

fn named<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::String(key)] = args else { return no_overload() };
    Ok(Val::Optional(find(key).map(Arc::new)))
}

fn validate<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::Opaque(opaque), Val::String(text)] = args else { return no_overload() };
    let Opaque::Format(format) = &**opaque else { return no_overload() };
    context.work(text.len() as u64)?;
    let wrong = (format.wrong)(text);
    if wrong.is_empty() {
        return Ok(Val::none());
    }
    Ok(Val::some(Val::list(wrong.into_iter().map(Val::string).collect())))
}

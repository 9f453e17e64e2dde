//! Functions of URLs.

use std::sync::Arc;

use super::no_overload;
use crate::context::Context;
use crate::error::EvalError;
use crate::functions::Guard::Typed;
use crate::functions::Row;
use crate::url::{self, Url};
use crate::value::{Eval, Key, Map, Opaque, Owned, Val};

pub(super) const FUNCTIONS: &[Row] = &[
    ("url", Typed, read, &[("string_to_url", "string -> kubernetes.URL")]),
    ("isURL", Typed, is_url, &[("is_url_string", "string -> bool")]),
    (
        "getScheme",
        Typed,
        |context, args| part(context, args, |url| url.scheme.clone()),
        &[("url_get_scheme", ".kubernetes.URL -> string")],
    ),
    (
        "getHost",
        Typed,
        |context, args| part(context, args, |url| url.host.clone()),
        &[("url_get_host", ".kubernetes.URL -> string")],
    ),
    (
        "getHostname",
        Typed,
        |context, args| part(context, args, |url| url.hostname().to_owned()),
        &[("url_get_hostname", ".kubernetes.URL -> string")],
    ),
    (
        "getPort",
        Typed,
        |context, args| part(context, args, |url| url.port().to_owned()),
        &[("url_get_port", ".kubernetes.URL -> string")],
    ),
    (
        "getEscapedPath",
        Typed,
        |context, args| part(context, args, Url::escaped_path),
        &[("url_get_escaped_path", ".kubernetes.URL -> string")],
    ),
    (
        "getQuery",
        Typed,
        query,
        &[("url_get_query", ".kubernetes.URL -> map(string, list(string))")],
    ),
];

fn read<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::String(text)] = args else { return no_overload() };
    let url = url::parse_request(text).and_then(|_| url::parse_reference(text));
    match url {
        Ok(url) => Ok(Val::Opaque(Arc::new(Opaque::Url(url)))),
        Err(error) => {
            let message = "URL parse error during conversion from string:";
            Err(EvalError::new(format!("{message} {error}")))
        }
    }
}

fn is_url<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::String(text)] = args else { return no_overload() };
    Ok(Val::Bool(url::parse_request(text).is_ok()))
}

/// The URL of a function that reads all of it.
fn visited<'v>(context: &mut Context, args: &'v [Val<'_>]) -> Result<&'v Url, EvalError> {
    match args {
        [Val::Opaque(opaque)] => match &**opaque {
            Opaque::Url(url) => {
                opaque.visit(context)?;
                Ok(url)
            }
            _ => no_overload(),
        },
        _ => no_overload(),
    }
}

fn part<'a>(context: &mut Context, args: &[Val<'a>], part: impl Fn(&Url) -> String) -> Eval<'a> {
    visited(context, args).map(|url| Val::string(part(url)))
}

fn query<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let mut names: Vec<(String, Vec<Val<'a>>)> = Vec::new();
    let mut pairs = visited(context, args)?.query();
    context.work(pairs.len() as u64 * 16)?;
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
    for (name, value) in pairs {
        match names.last_mut() {
            Some((last, values)) if *last == name => values.push(Val::string(value)),
            _ => names.push((name, vec![Val::string(value)])),
        }
    }
    let entry = |(name, values)| Some((Key::new(Val::string::<String>(name))?, Val::list(values)));
    let entries: Owned<'a> = names.into_iter().filter_map(entry).collect();
    Ok(Val::Map(Map::Owned(Arc::new(entries))))
}

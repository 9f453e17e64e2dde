//! What can be seen of literals before evaluation: durations, times and patterns that are none, and
//! lists and maps of mixed types.

use super::Checked;
use crate::ast::{Call, Entry, Expr, Item, Kind, Literal};
use crate::library::check_format;
use crate::source::Issues;
use crate::time;
use crate::types::Type;

/// Tells what is wrong with literals anywhere in the expression. What is to be formatted may be
/// `mixed`.
pub(super) fn check(expr: &Expr, checked: &Checked, issues: &mut Issues, mixed: bool) {
    let deeper = |e: &Expr, issues: &mut Issues| check(e, checked, issues, mixed);
    match &expr.kind {
        Kind::Literal(_) | Kind::Ident(_) => {}
        Kind::Select(select) => deeper(&select.operand, issues),
        Kind::Call(call) => {
            argument(call, issues);
            let is_format = &*call.function == "format";
            if is_format
                && checked.overloads(expr).iter().any(|o| o.id == "string_format")
                && let (Some(format), [args]) = (&call.target, &call.args[..])
                && let Kind::List(items) = &args.kind
            {
                check_format(expr.at, format, items, checked, issues);
            }
            let deeper = |e: &Expr, issues: &mut Issues| {
                check(e, checked, issues, mixed || is_format);
            };
            call.target.iter().chain(&call.args).for_each(|e| deeper(e, issues));
        }
        Kind::List(items) => {
            if !mixed {
                list(items, checked, issues);
            }
            items.iter().for_each(|item| deeper(&item.value, issues));
        }
        Kind::Map(entries) => {
            if !mixed {
                map(entries, checked, issues);
            }
            entries.iter().for_each(|entry| {
                deeper(&entry.key, issues);
                deeper(&entry.value, issues);
            });
        }
        Kind::Struct(made) => made.fields.iter().for_each(|f| deeper(&f.value, issues)),
        Kind::Comprehension(fold) => {
            let parts = [&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result];
            parts.into_iter().for_each(|e| deeper(e, issues));
        }
    }
}

/// The first argument, where it is a literal that must be well-formed.
fn argument(call: &Call, issues: &mut Issues) {
    let Some(first) = call.args.first() else { return };
    let Some(literal) = first.as_literal() else { return };
    let ok = match (&*call.function, literal) {
        ("duration", Literal::String(text)) => time::parse_duration(text).is_some(),
        ("duration", Literal::Int(_)) => false,
        ("timestamp", Literal::String(text)) => time::parse_timestamp(text).is_ok(),
        ("timestamp", Literal::Int(seconds)) => time::from_seconds(*seconds).is_some(),
        ("matches", Literal::String(pattern)) => crate::pattern::Pattern::new(pattern).is_ok(),
        _ => true,
    };
    if !ok {
        issues.report(Some(first.at), format!("invalid {} argument", call.function));
    }
}

fn list(items: &[Item], checked: &Checked, issues: &mut Issues) {
    let mut wanted = None;
    for item in items {
        let found = inner(checked.type_of(&item.value), item.optional);
        match wanted {
            None => wanted = Some(found),
            Some(wanted) if !wanted.is_exactly(found) => {
                mismatch(&item.value, wanted, found, issues);
                return;
            }
            Some(_) => {}
        }
    }
}

fn map(entries: &[Entry], checked: &Checked, issues: &mut Issues) {
    let mut wanted: Option<(&Type, &Type)> = None;
    for entry in entries {
        let key = checked.type_of(&entry.key);
        let value = inner(checked.type_of(&entry.value), entry.optional);
        let Some((keys, values)) = wanted else {
            wanted = Some((key, value));
            continue;
        };
        if !keys.is_exactly(key) {
            mismatch(&entry.key, keys, key, issues);
        }
        if !values.is_exactly(value) {
            mismatch(&entry.value, values, value, issues);
        }
    }
}

fn inner(t: &Type, optional: bool) -> &Type {
    match t {
        Type::Optional(inner) if optional => inner,
        other => other,
    }
}

fn mismatch(at: &Expr, expected: &Type, found: &Type, issues: &mut Issues) {
    issues.report(Some(at.at), format!("expected type '{expected}' but found '{found}'"));
}

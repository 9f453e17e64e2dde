//! Static checks of literals: invalid durations, timestamps and patterns, and lists and maps of
//! mixed types.

use super::{Checked, format_strings};
use crate::allowance::Allowance;
use crate::ast::{Call, Entry, Expr, Item, Kind, Literal};
use crate::pattern::Pattern;
use crate::source::Issues;
use crate::time;
use crate::types::Type;

/// Reports invalid literals anywhere in the expression.
pub(super) fn check(
    root: &Expr,
    checked: &Checked,
    issues: &mut Issues,
    allowance: &mut Allowance,
) {
    let mut literals = Literals { checked, issues, room: Pattern::ROOM };
    literals.expr(root, false);
    allowance.spend_room(literals.room);
}

struct Literals<'a> {
    checked: &'a Checked,
    issues: &'a mut Issues,
    /// The memory left for patterns.
    room: usize,
}

impl Literals<'_> {
    /// Checks an expression recursively. Arguments of `format` may be `mixed`.
    fn expr(&mut self, expr: &Expr, mixed: bool) {
        match &expr.kind {
            Kind::Literal(_) | Kind::Ident(_) => {}
            Kind::Select(select) => self.expr(&select.operand, mixed),
            Kind::Call(call) => {
                self.argument(call);
                let is_format = &*call.function == "format";
                if is_format
                    && self.checked.overloads(expr).iter().any(|o| o.id == "string_format")
                    && let (Some(format), [args]) = (&call.target, &call.args[..])
                    && let Kind::List(items) = &args.kind
                {
                    format_strings::check(expr.at, format, items, self.checked, self.issues);
                }
                let parts = call.target.iter().chain(&call.args);
                parts.for_each(|e| self.expr(e, mixed || is_format));
            }
            Kind::List(items) => {
                if !mixed {
                    list(items, self.checked, self.issues);
                }
                items.iter().for_each(|item| self.expr(&item.value, mixed));
            }
            Kind::Map(entries) => {
                if !mixed {
                    map(entries, self.checked, self.issues);
                }
                for entry in entries {
                    self.expr(&entry.key, mixed);
                    self.expr(&entry.value, mixed);
                }
            }
            Kind::Struct(made) => made.fields.iter().for_each(|f| self.expr(&f.value, mixed)),
            Kind::Comprehension(fold) => {
                let parts = [&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result];
                parts.into_iter().for_each(|e| self.expr(e, mixed));
            }
        }
    }

    /// Checks the first argument, if it is a literal that must be well-formed.
    fn argument(&mut self, call: &Call) {
        let Some(first) = call.args.first() else { return };
        let Some(literal) = first.as_literal() else { return };
        let ok = match (&*call.function, literal) {
            ("duration", Literal::String(text)) => time::parse_duration(text).is_some(),
            ("duration", Literal::Int(_)) => false,
            ("timestamp", Literal::String(text)) => time::parse_timestamp(text).is_ok(),
            ("timestamp", Literal::Int(seconds)) => time::from_seconds(*seconds).is_some(),
            ("matches", Literal::String(pattern)) => {
                Pattern::new(pattern, Pattern::room(&mut self.room)).is_ok()
            }
            _ => true,
        };
        if !ok {
            self.issues.report(Some(first.at), format!("invalid {} argument", call.function));
        }
    }
}

fn list(items: &[Item], checked: &Checked, issues: &mut Issues) {
    let mut first = None;
    for item in items {
        let found = inner(checked.type_of(&item.value), item.optional);
        match first {
            None => first = Some(found),
            Some(first) if !first.is_exactly(found) => {
                mismatch(&item.value, first, found, issues);
                return;
            }
            Some(_) => {}
        }
    }
}

fn map(entries: &[Entry], checked: &Checked, issues: &mut Issues) {
    let mut first: Option<(&Type, &Type)> = None;
    for entry in entries {
        let key = checked.type_of(&entry.key);
        let value = inner(checked.type_of(&entry.value), entry.optional);
        let Some((keys, values)) = first else {
            first = Some((key, value));
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

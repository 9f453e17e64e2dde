//! Checks of literal format strings before evaluation (upstream: cel-go `ext/formatting.go`).

use super::Checked;
use crate::ast::{Expr, Item, Kind, Literal};
use crate::functions::type_value;
use crate::library::formatting::{Clause, Piece, Pieces};
use crate::source::Issues;

/// Reports errors of a literal format string and its literal list of arguments.
pub(super) fn check(at: u32, format: &Expr, args: &[Item], checked: &Checked, issues: &mut Issues) {
    let Some(Literal::String(format)) = format.as_literal() else { return };
    let mut pieces = Pieces::new(format, args.len(), true);
    loop {
        match pieces.next() {
            Ok(None) => break,
            Ok(Some(Piece::Text(_))) => {}
            Ok(Some(Piece::Argument(clause))) => {
                let arg = &args[pieces.used - 1].value;
                let wrong = match clause {
                    Clause::String => unwritable(arg, checked),
                    clause => Some(arg).filter(|arg| !clause.takes(checked.type_of(arg))),
                };
                if let Some(wrong) = wrong {
                    let name = type_value(checked.type_of(wrong));
                    issues.report(Some(wrong.at), clause.refuses(name));
                    return;
                }
            }
            Err(message) => {
                issues.report(Some(at), message);
                return;
            }
        }
    }
    if args.len() > pieces.used {
        let (expected, got) = (pieces.used, args.len());
        let message = "too many arguments supplied to string.format";
        issues.report(Some(at), format!("{message} (expected {expected}, got {got})"));
    }
}

/// The part of an argument that cannot be written as text.
fn unwritable<'e>(arg: &'e Expr, checked: &Checked) -> Option<&'e Expr> {
    if !Clause::String.takes(checked.type_of(arg)) {
        return Some(arg);
    }
    match &arg.kind {
        Kind::List(items) => items.iter().find_map(|item| unwritable(&item.value, checked)),
        Kind::Map(entries) => entries.iter().find_map(|entry| {
            unwritable(&entry.key, checked).or_else(|| unwritable(&entry.value, checked))
        }),
        _ => None,
    }
}

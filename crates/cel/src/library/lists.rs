//! Lists: Kubernetes' own functions, the list library in version 3, and sets.

use std::cmp::Ordering;

use super::{no_overload, operators};
use crate::context::Context;
use crate::error::EvalError;
use crate::functions::Guard::{Own, Typed};
use crate::functions::Row;
use crate::value::{Eval, List, Val, compare};

pub(super) const FUNCTIONS: &[Row] = &[
    (
        "isSorted",
        Typed,
        is_sorted,
        &[
            ("list_int_is_sorted_bool", ".list(int) -> bool"),
            ("list_uint_is_sorted_bool", ".list(uint) -> bool"),
            ("list_double_is_sorted_bool", ".list(double) -> bool"),
            ("list_bool_is_sorted_bool", ".list(bool) -> bool"),
            ("list_duration_is_sorted_bool", ".list(duration) -> bool"),
            ("list_timestamp_is_sorted_bool", ".list(timestamp) -> bool"),
            ("list_string_is_sorted_bool", ".list(string) -> bool"),
            ("list_bytes_is_sorted_bool", ".list(bytes) -> bool"),
        ],
    ),
    (
        "sum",
        Typed,
        sum,
        &[
            ("list_int_sum_int", ".list(int) -> int"),
            ("list_uint_sum_uint", ".list(uint) -> uint"),
            ("list_double_sum_double", ".list(double) -> double"),
            ("list_duration_sum_duration", ".list(duration) -> duration"),
        ],
    ),
    (
        "min",
        Typed,
        |context, args| extreme(context, args, "min", Ordering::Greater),
        &[
            ("list_int_min_int", ".list(int) -> int"),
            ("list_uint_min_uint", ".list(uint) -> uint"),
            ("list_double_min_double", ".list(double) -> double"),
            ("list_bool_min_bool", ".list(bool) -> bool"),
            ("list_duration_min_duration", ".list(duration) -> duration"),
            ("list_timestamp_min_timestamp", ".list(timestamp) -> timestamp"),
            ("list_string_min_string", ".list(string) -> string"),
            ("list_bytes_min_bytes", ".list(bytes) -> bytes"),
        ],
    ),
    (
        "max",
        Typed,
        |context, args| extreme(context, args, "max", Ordering::Less),
        &[
            ("list_int_max_int", ".list(int) -> int"),
            ("list_uint_max_uint", ".list(uint) -> uint"),
            ("list_double_max_double", ".list(double) -> double"),
            ("list_bool_max_bool", ".list(bool) -> bool"),
            ("list_duration_max_duration", ".list(duration) -> duration"),
            ("list_timestamp_max_timestamp", ".list(timestamp) -> timestamp"),
            ("list_string_max_string", ".list(string) -> string"),
            ("list_bytes_max_bytes", ".list(bytes) -> bytes"),
        ],
    ),
    ("slice", Typed, slice, &[("list_slice", ".list(T), int, int -> list(T)")]),
    (
        "flatten",
        Own,
        flatten,
        &[
            ("list_flatten", ".list(list(T)) -> list(T)"),
            ("list_flatten_int", ".list(dyn), int -> list(dyn)"),
        ],
    ),
    ("lists.range", Typed, range, &[("lists_range", "int -> list(int)")]),
    ("reverse", Typed, reverse, &[("list_reverse", ".list(T) -> list(T)")]),
    ("distinct", Typed, distinct, &[("list_distinct", ".list(T) -> list(T)")]),
    (
        "sort",
        Typed,
        sort,
        &[
            ("list_int_sort", ".list(int) -> list(int)"),
            ("list_uint_sort", ".list(uint) -> list(uint)"),
            ("list_double_sort", ".list(double) -> list(double)"),
            ("list_bool_sort", ".list(bool) -> list(bool)"),
            ("list_google.protobuf.Duration_sort", ".list(duration) -> list(duration)"),
            ("list_google.protobuf.Timestamp_sort", ".list(timestamp) -> list(timestamp)"),
            ("list_string_sort", ".list(string) -> list(string)"),
            ("list_bytes_sort", ".list(bytes) -> list(bytes)"),
        ],
    ),
    (
        "@sortByAssociatedKeys",
        Typed,
        sort_by,
        &[
            ("list_int_sortByAssociatedKeys", ".list(T), list(int) -> list(T)"),
            ("list_uint_sortByAssociatedKeys", ".list(T), list(uint) -> list(T)"),
            ("list_double_sortByAssociatedKeys", ".list(T), list(double) -> list(T)"),
            ("list_bool_sortByAssociatedKeys", ".list(T), list(bool) -> list(T)"),
            (
                "list_google.protobuf.Duration_sortByAssociatedKeys",
                ".list(T), list(duration) -> list(T)",
            ),
            (
                "list_google.protobuf.Timestamp_sortByAssociatedKeys",
                ".list(T), list(timestamp) -> list(T)",
            ),
            ("list_string_sortByAssociatedKeys", ".list(T), list(string) -> list(T)"),
            ("list_bytes_sortByAssociatedKeys", ".list(T), list(bytes) -> list(T)"),
        ],
    ),
    (
        "sets.contains",
        Typed,
        |context, args| sets(args, |a, b| contains_all(a, b, context)),
        &[("list_sets_contains_list", "list(T), list(T) -> bool")],
    ),
    (
        "sets.equivalent",
        Typed,
        |context, args| {
            sets(args, |a, b| Ok(contains_all(a, b, context)? && contains_all(b, a, context)?))
        },
        &[("list_sets_equivalent_list", "list(T), list(T) -> bool")],
    ),
    (
        "sets.intersects",
        Typed,
        |context, args| sets(args, |a, b| intersects(a, b, context)),
        &[("list_sets_intersects_list", "list(T), list(T) -> bool")],
    ),
];

/// The items of a list, to be visited or put into another one.
fn items<'a>(list: &List<'a>, context: &mut Context) -> Result<Vec<Val<'a>>, EvalError> {
    context.work(list.len().saturating_mul(32))?;
    list.iter().collect()
}

/// Accounts for the texts of items that will be compared this many times.
fn read_texts(items: &[Val<'_>], times: usize, context: &mut Context) -> Result<(), EvalError> {
    let text = |item: &Val<'_>| if let Val::String(text) = item { text.len() } else { 0 };
    context.read(items.iter().map(text).fold(0, usize::saturating_add).saturating_mul(times))
}

fn is_sorted<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::List(list)] = args else { return no_overload() };
    let items = items(list, context)?;
    read_texts(&items, 1, context)?;
    for pair in items.windows(2) {
        // Incomparable items are not out of order.
        if compare(&pair[0], &pair[1]).is_ok_and(Ordering::is_gt) {
            return Ok(Val::Bool(false));
        }
    }
    Ok(Val::Bool(true))
}

fn sum<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::List(list)] = args else { return no_overload() };
    let items = items(list, context)?;
    let zero = match (items.first(), context.overload) {
        (Some(Val::Uint(_)), _) | (None, "list_uint_sum_uint") => Val::Uint(0),
        (Some(Val::Double(_)), _) | (None, "list_double_sum_double") => Val::Double(0.0),
        (Some(Val::Duration(_)), _) | (None, "list_duration_sum_duration") => Val::Duration(0),
        _ => Val::Int(0),
    };
    items.into_iter().try_fold(zero, |sum, item| operators::add(context, &[sum, item]))
}

/// The smallest or the largest item, the first of several equal ones. `worse` is the order of an
/// item relative to a better one.
fn extreme<'a>(context: &mut Context, args: &[Val<'a>], name: &str, worse: Ordering) -> Eval<'a> {
    let [Val::List(list)] = args else { return no_overload() };
    let items = items(list, context)?;
    read_texts(&items, 1, context)?;
    let better = |best: Val<'a>, item: Val<'a>| match compare(&best, &item) {
        Ok(order) if order == worse => item,
        _ => best,
    };
    let best = items.into_iter().reduce(better);
    best.ok_or_else(|| EvalError::new(format!("{name} called on empty list")))
}

fn slice<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::List(list), Val::Int(start), Val::Int(end)] = args else { return no_overload() };
    let wrong = |why: String| Err(EvalError::new(format!("cannot slice({start}, {end}), {why}")));
    let (Ok(from), Ok(to)) = (u64::try_from(*start), u64::try_from(*end)) else {
        return wrong("negative indexes not supported".to_owned());
    };
    if from > to {
        return wrong("start index must be less than or equal to end index".to_owned());
    }
    if list.len() < to {
        return wrong(format!("list is length {}", list.len()));
    }
    context.make(to - from)?;
    let items = (from..to).filter_map(|i| list.get(i)).collect::<Result<_, _>>()?;
    Ok(Val::list(items))
}

fn flatten<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let (list, depth) = match args {
        [Val::List(list)] => (list, 1),
        [Val::List(list), Val::Int(depth)] => (list, *depth),
        [other, rest @ ..] => {
            let of = |value: &Val<'_>| match value {
                Val::List(_) => "list(dyn)",
                Val::Map(_) => "map(dyn, dyn)",
                other => other.type_name(),
            };
            let rest: Vec<&str> = rest.iter().map(of).collect();
            let signature = format!("{}.flatten({})", of(other), rest.join(", "));
            return Err(EvalError::new(format!("no such overload: {signature}")));
        }
        [] => return no_overload(),
    };
    if depth < 0 {
        return Err(EvalError::new("level must be non-negative"));
    }
    let mut out = Vec::new();
    flatten_into(&mut out, list, depth, context)?;
    Ok(Val::list(out))
}

fn flatten_into<'a>(
    out: &mut Vec<Val<'a>>,
    list: &List<'a>,
    depth: i64,
    context: &mut Context,
) -> Result<(), EvalError> {
    context.work(list.len().saturating_mul(32))?;
    for item in list.iter() {
        match item? {
            // The nesting of lists is bounded by that of data and expressions.
            Val::List(inner) if depth > 0 => flatten_into(out, &inner, depth - 1, context)?,
            item => out.push(item),
        }
    }
    Ok(())
}

fn range<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::Int(n)] = args else { return no_overload() };
    context.make(u64::try_from(*n).unwrap_or(0))?;
    Ok(Val::list((0..*n).map(Val::Int).collect()))
}

fn reverse<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::List(list)] = args else { return no_overload() };
    let mut items = items(list, context)?;
    items.reverse();
    Ok(Val::list(items))
}

fn distinct<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::List(list)] = args else { return no_overload() };
    let mut out: Vec<Val<'a>> = Vec::new();
    for item in items(list, context)? {
        context.work(out.len() as u64)?;
        let mut seen = false;
        for other in &out {
            seen = seen || item.equals(other, context).or_else(not_cancelled)?;
        }
        if !seen {
            out.push(item);
        }
    }
    Ok(Val::list(out))
}

/// Treats values whose comparison fails as unequal, unless the evaluation was cancelled.
fn not_cancelled(error: EvalError) -> Result<bool, EvalError> {
    if error.is_cancelled() { Err(error) } else { Ok(false) }
}

fn sort<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [list] = args else { return no_overload() };
    sort_by(context, &[list.clone(), list.clone()])
}

fn sort_by<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::List(list), Val::List(keys)] = args else { return no_overload() };
    if list.len() != keys.len() {
        let message = "@sortByAssociatedKeys() expected a list of the same size as the associated \
                       keys list, but got";
        let (a, b) = (list.len(), keys.len());
        return Err(EvalError::new(format!("{message} {a} and {b} elements respectively")));
    }
    let (list, keys) = (items(list, context)?, items(keys, context)?);
    let Some(first) = keys.first() else { return Ok(Val::list(list)) };
    if compare(first, first).is_err() && !matches!(first, Val::Double(_)) {
        return Err(EvalError::new("list elements must be comparable"));
    }
    if keys.len() > 1 && keys.iter().any(|key| key.type_name() != first.type_name()) {
        return Err(EvalError::new("list elements must have the same type"));
    }
    read_texts(&keys, keys.len().ilog2() as usize + 1, context)?;
    let mut pairs: Vec<_> = keys.into_iter().zip(list).collect();
    pairs.sort_by(|(a, _), (b, _)| compare(a, b).unwrap_or_else(|_| is_nan(a).cmp(&is_nan(b))));
    Ok(Val::list(pairs.into_iter().map(|(_, item)| item).collect()))
}

/// NaN has no order: it comes last, because a sort needs an order of all values.
fn is_nan(value: &Val<'_>) -> bool {
    matches!(value, Val::Double(number) if number.is_nan())
}

fn sets<'a>(
    args: &[Val<'a>],
    mut holds: impl FnMut(&List<'a>, &List<'a>) -> Result<bool, EvalError>,
) -> Eval<'a> {
    match args {
        [Val::List(a), Val::List(b)] => holds(a, b).map(Val::Bool),
        _ => no_overload(),
    }
}

fn contains_all<'a>(
    list: &List<'a>,
    part: &List<'a>,
    context: &mut Context,
) -> Result<bool, EvalError> {
    for item in part.iter() {
        if !operators::contains(list, &item?, context)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn intersects<'a>(a: &List<'a>, b: &List<'a>, context: &mut Context) -> Result<bool, EvalError> {
    for item in a.iter() {
        if operators::contains(b, &item?, context).or_else(not_cancelled)? {
            return Ok(true);
        }
    }
    Ok(false)
}

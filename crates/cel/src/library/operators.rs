//! The language's operators.

use std::cmp::Ordering;

use super::{no_overload, planned};
use crate::context::Context;
use crate::error::EvalError;
use crate::functions::Guard::Own;
use crate::functions::Row;
use crate::value::{Eval, List, Map, Val, compare};

pub(super) const FUNCTIONS: &[Row] = &[
    ("_?_:_", Own, planned, &[("conditional", "bool, A, A -> A")]),
    ("_&&_", Own, planned, &[("logical_and", "bool, bool -> bool")]),
    ("_||_", Own, planned, &[("logical_or", "bool, bool -> bool")]),
    ("!_", Own, not, &[("logical_not", "bool -> bool")]),
    ("@not_strictly_false", Own, planned, &[("not_strictly_false", "bool -> bool")]),
    ("_==_", Own, planned, &[("equals", "A, A -> bool")]),
    ("_!=_", Own, planned, &[("not_equals", "A, A -> bool")]),
    (
        "_+_",
        Own,
        add,
        &[
            ("add_bytes", "bytes, bytes -> bytes"),
            ("add_double", "double, double -> double"),
            ("add_duration_duration", "duration, duration -> duration"),
            ("add_duration_timestamp", "duration, timestamp -> timestamp"),
            ("add_timestamp_duration", "timestamp, duration -> timestamp"),
            ("add_int64", "int, int -> int"),
            ("add_list", "list(A), list(A) -> list(A)"),
            ("add_string", "string, string -> string"),
            ("add_uint64", "uint, uint -> uint"),
        ],
    ),
    (
        "_-_",
        Own,
        subtract,
        &[
            ("subtract_double", "double, double -> double"),
            ("subtract_duration_duration", "duration, duration -> duration"),
            ("subtract_int64", "int, int -> int"),
            ("subtract_timestamp_duration", "timestamp, duration -> timestamp"),
            ("subtract_timestamp_timestamp", "timestamp, timestamp -> duration"),
            ("subtract_uint64", "uint, uint -> uint"),
        ],
    ),
    (
        "_*_",
        Own,
        multiply,
        &[
            ("multiply_double", "double, double -> double"),
            ("multiply_int64", "int, int -> int"),
            ("multiply_uint64", "uint, uint -> uint"),
        ],
    ),
    (
        "_/_",
        Own,
        divide,
        &[
            ("divide_double", "double, double -> double"),
            ("divide_int64", "int, int -> int"),
            ("divide_uint64", "uint, uint -> uint"),
        ],
    ),
    (
        "_%_",
        Own,
        modulo,
        &[("modulo_int64", "int, int -> int"), ("modulo_uint64", "uint, uint -> uint")],
    ),
    ("-_", Own, negate, &[("negate_double", "double -> double"), ("negate_int64", "int -> int")]),
    (
        "_<_",
        Own,
        less,
        &[
            ("less_bool", "bool, bool -> bool"),
            ("less_int64", "int, int -> bool"),
            ("less_int64_double", "int, double -> bool"),
            ("less_int64_uint64", "int, uint -> bool"),
            ("less_uint64", "uint, uint -> bool"),
            ("less_uint64_double", "uint, double -> bool"),
            ("less_uint64_int64", "uint, int -> bool"),
            ("less_double", "double, double -> bool"),
            ("less_double_int64", "double, int -> bool"),
            ("less_double_uint64", "double, uint -> bool"),
            ("less_string", "string, string -> bool"),
            ("less_bytes", "bytes, bytes -> bool"),
            ("less_timestamp", "timestamp, timestamp -> bool"),
            ("less_duration", "duration, duration -> bool"),
        ],
    ),
    (
        "_<=_",
        Own,
        less_equals,
        &[
            ("less_equals_bool", "bool, bool -> bool"),
            ("less_equals_int64", "int, int -> bool"),
            ("less_equals_int64_double", "int, double -> bool"),
            ("less_equals_int64_uint64", "int, uint -> bool"),
            ("less_equals_uint64", "uint, uint -> bool"),
            ("less_equals_uint64_double", "uint, double -> bool"),
            ("less_equals_uint64_int64", "uint, int -> bool"),
            ("less_equals_double", "double, double -> bool"),
            ("less_equals_double_int64", "double, int -> bool"),
            ("less_equals_double_uint64", "double, uint -> bool"),
            ("less_equals_string", "string, string -> bool"),
            ("less_equals_bytes", "bytes, bytes -> bool"),
            ("less_equals_timestamp", "timestamp, timestamp -> bool"),
            ("less_equals_duration", "duration, duration -> bool"),
        ],
    ),
    (
        "_>_",
        Own,
        greater,
        &[
            ("greater_bool", "bool, bool -> bool"),
            ("greater_int64", "int, int -> bool"),
            ("greater_int64_double", "int, double -> bool"),
            ("greater_int64_uint64", "int, uint -> bool"),
            ("greater_uint64", "uint, uint -> bool"),
            ("greater_uint64_double", "uint, double -> bool"),
            ("greater_uint64_int64", "uint, int -> bool"),
            ("greater_double", "double, double -> bool"),
            ("greater_double_int64", "double, int -> bool"),
            ("greater_double_uint64", "double, uint -> bool"),
            ("greater_string", "string, string -> bool"),
            ("greater_bytes", "bytes, bytes -> bool"),
            ("greater_timestamp", "timestamp, timestamp -> bool"),
            ("greater_duration", "duration, duration -> bool"),
        ],
    ),
    (
        "_>=_",
        Own,
        greater_equals,
        &[
            ("greater_equals_bool", "bool, bool -> bool"),
            ("greater_equals_int64", "int, int -> bool"),
            ("greater_equals_int64_double", "int, double -> bool"),
            ("greater_equals_int64_uint64", "int, uint -> bool"),
            ("greater_equals_uint64", "uint, uint -> bool"),
            ("greater_equals_uint64_double", "uint, double -> bool"),
            ("greater_equals_uint64_int64", "uint, int -> bool"),
            ("greater_equals_double", "double, double -> bool"),
            ("greater_equals_double_int64", "double, int -> bool"),
            ("greater_equals_double_uint64", "double, uint -> bool"),
            ("greater_equals_string", "string, string -> bool"),
            ("greater_equals_bytes", "bytes, bytes -> bool"),
            ("greater_equals_timestamp", "timestamp, timestamp -> bool"),
            ("greater_equals_duration", "duration, duration -> bool"),
        ],
    ),
    (
        "_[_]",
        Own,
        planned,
        &[
            ("index_list", "list(A), int -> A"),
            ("index_map", "map(A, B), A -> B"),
            ("optional_list_index_int", "optional_type(list(V)), int -> optional_type(V)"),
            ("optional_map_index_value", "optional_type(map(K, V)), K -> optional_type(V)"),
        ],
    ),
    (
        "_[?_]",
        Own,
        planned,
        &[
            ("list_optindex_optional_int", "list(V), int -> optional_type(V)"),
            (
                "optional_list_optindex_optional_int",
                "optional_type(list(V)), int -> optional_type(V)",
            ),
            ("map_optindex_optional_value", "map(K, V), K -> optional_type(V)"),
            (
                "optional_map_optindex_optional_value",
                "optional_type(map(K, V)), K -> optional_type(V)",
            ),
        ],
    ),
    ("_?._", Own, planned, &[("select_optional_field", "dyn, string -> optional_type(V)")]),
    ("@in", Own, is_in, IN),
    // Former names.
    ("in", Own, is_in, IN),
    ("_in_", Own, is_in, IN),
    (
        "size",
        Own,
        size,
        &[
            ("size_bytes", "bytes -> int"),
            ("bytes_size", ".bytes -> int"),
            ("size_list", "list(A) -> int"),
            ("list_size", ".list(A) -> int"),
            ("size_map", "map(A, B) -> int"),
            ("map_size", ".map(A, B) -> int"),
            ("size_string", "string -> int"),
            ("string_size", ".string -> int"),
        ],
    ),
    // The expansion of two-variable macros.
    (
        "cel.@mapInsert",
        Own,
        planned,
        &[
            ("@mapInsert_map_key_value", "map(K, V), K, V -> map(K, V)"),
            ("@mapInsert_map_map", "map(K, V), map(K, V) -> map(K, V)"),
        ],
    ),
];

const IN: &[(&str, &str)] =
    &[("in_list", "A, list(A) -> bool"), ("in_map", "A, map(A, B) -> bool")];

fn overflow(what: &str) -> EvalError {
    EvalError::new(format!("{what} overflow"))
}

fn int<'a>(n: Option<i64>) -> Eval<'a> {
    n.map(Val::Int).ok_or_else(|| overflow("integer"))
}

fn uint<'a>(n: Option<u64>) -> Eval<'a> {
    n.map(Val::Uint).ok_or_else(|| overflow("unsigned integer"))
}

fn duration<'a>(nanos: Option<i64>) -> Eval<'a> {
    // Upstream adds the nanoseconds as integers, and its message says so.
    nanos.map(Val::Duration).ok_or_else(|| overflow("integer"))
}

fn timestamp<'a>(time: Option<crate::time::Timestamp>) -> Eval<'a> {
    time.map(Val::Timestamp).ok_or_else(|| overflow("timestamp"))
}

fn not<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    match args {
        [Val::Bool(b)] => Ok(Val::Bool(!b)),
        _ => no_overload(),
    }
}

pub(super) fn add<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [a, b] = args else { return no_overload() };
    match (a, b) {
        (Val::Int(a), Val::Int(b)) => int(a.checked_add(*b)),
        (Val::Uint(a), Val::Uint(b)) => uint(a.checked_add(*b)),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a + b)),
        (Val::String(a), Val::String(b)) => {
            context.work((a.len() + b.len()) as u64)?;
            Ok(Val::string([&**a, &**b].concat()))
        }
        (Val::Bytes(a), Val::Bytes(b)) => {
            context.work((a.len() + b.len()) as u64)?;
            Ok(Val::Bytes([&**a, &**b].concat().into()))
        }
        (Val::List(a), Val::List(b)) => a.plus(b, context),
        (Val::Duration(a), Val::Duration(b)) => duration(a.checked_add(*b)),
        (Val::Timestamp(t), Val::Duration(d)) | (Val::Duration(d), Val::Timestamp(t)) => {
            timestamp(t.plus(i128::from(*d)))
        }
        (a, _) => operand(a, "_+_", &["int", "uint", "double", "bytes", "list"]),
    }
}

fn subtract<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [a, b] = args else { return no_overload() };
    match (a, b) {
        (Val::Int(a), Val::Int(b)) => int(a.checked_sub(*b)),
        (Val::Uint(a), Val::Uint(b)) => uint(a.checked_sub(*b)),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a - b)),
        (Val::Duration(a), Val::Duration(b)) => duration(a.checked_sub(*b)),
        (Val::Timestamp(t), Val::Duration(d)) => timestamp(t.plus(-i128::from(*d))),
        (Val::Timestamp(a), Val::Timestamp(b)) => duration(a.since(*b)),
        (a, _) => operand(a, "_-_", &["int", "uint", "double", TIMESTAMP, DURATION]),
    }
}

const TIMESTAMP: &str = "google.protobuf.Timestamp";

const DURATION: &str = "google.protobuf.Duration";

/// The error for an operator that cannot be applied to `a` at all, or not with the other operand.
/// Upstream names the operator in the first case, unless the type of `a` has methods.
fn operand<'a>(a: &Val<'a>, operator: &str, types: &[&str]) -> Eval<'a> {
    let name = a.type_name();
    if types.contains(&name) || ["string", TIMESTAMP, DURATION].contains(&name) {
        return no_overload();
    }
    Err(EvalError::new(format!("no such overload: {operator}")))
}

fn multiply<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [a, b] = args else { return no_overload() };
    match (a, b) {
        (Val::Int(a), Val::Int(b)) => int(a.checked_mul(*b)),
        (Val::Uint(a), Val::Uint(b)) => uint(a.checked_mul(*b)),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a * b)),
        (a, _) => operand(a, "_*_", &["int", "uint", "double"]),
    }
}

fn divide<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [a, b] = args else { return no_overload() };
    match (a, b) {
        (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) => {
            Err(EvalError::new("division by zero"))
        }
        (Val::Int(a), Val::Int(b)) => int(a.checked_div(*b)),
        (Val::Uint(a), Val::Uint(b)) => uint(a.checked_div(*b)),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a / b)),
        (a, _) => operand(a, "_/_", &["int", "uint", "double"]),
    }
}

fn modulo<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [a, b] = args else { return no_overload() };
    match (a, b) {
        (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) => {
            Err(EvalError::new("modulus by zero"))
        }
        (Val::Int(a), Val::Int(b)) => int(a.checked_rem(*b)),
        (Val::Uint(a), Val::Uint(b)) => uint(a.checked_rem(*b)),
        (a, _) => operand(a, "_%_", &["int", "uint"]),
    }
}

fn negate<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    match args {
        [Val::Int(n)] => int(n.checked_neg()),
        [Val::Double(n)] => Ok(Val::Double(-n)),
        [Val::Duration(nanos)] => duration(nanos.checked_neg()),
        [a] => operand(a, "-_", &["bool"]),
        _ => no_overload(),
    }
}

fn order<'a>(name: &str, args: &[Val<'a>], holds: impl Fn(Ordering) -> bool) -> Eval<'a> {
    const ORDERED: &[&str] =
        &["int", "uint", "double", "string", "bytes", "bool", TIMESTAMP, DURATION];
    match args {
        [a, b] => match compare(a, b) {
            Ok(order) => Ok(Val::Bool(holds(order))),
            Err(error) if ORDERED.contains(&a.type_name()) => Err(error),
            Err(_) => operand(a, name, ORDERED),
        },
        _ => no_overload(),
    }
}

fn less<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    order("_<_", args, Ordering::is_lt)
}

fn less_equals<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    order("_<=_", args, Ordering::is_le)
}

fn greater<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    order("_>_", args, Ordering::is_gt)
}

fn greater_equals<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    order("_>=_", args, Ordering::is_ge)
}

fn is_in<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    match args {
        [item, Val::List(list)] => contains(list, item, context).map(Val::Bool),
        [key, Val::Map(map)] => map.get(key).map(|found| Val::Bool(found.is_some())),
        _ => no_overload(),
    }
}

/// Whether the list contains `item`. Items whose comparison fails are unequal; in a list of data,
/// they are an error if no item is equal.
pub(crate) fn contains<'a>(
    list: &List<'a>,
    item: &Val<'a>,
    context: &mut Context,
) -> Result<bool, EvalError> {
    context.work(list.len().saturating_mul(4))?;
    let mut wrong = None;
    for other in list.iter() {
        match other.and_then(|other| other.equals(item, context)) {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            Err(error) if error.is_cancelled() => return Err(error),
            Err(_) if list.is_of_data() => {
                wrong = Some(EvalError::no_such_overload());
            }
            Err(_) => {}
        }
    }
    wrong.map_or(Ok(false), Err)
}

fn size<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let size = match args {
        [Val::String(text)] => text.chars_count() as u64,
        [Val::Bytes(bytes)] => bytes.len() as u64,
        [Val::List(list)] => list.len(),
        [Val::Map(map)] => map_size(map),
        [a] => return operand(a, "size", &[]),
        _ => return no_overload(),
    };
    Ok(Val::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}

fn map_size(map: &Map<'_>) -> u64 {
    map.len() as u64
}

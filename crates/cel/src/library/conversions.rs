//! Conversions between types.

use super::no_overload;
use crate::context::Context;
use crate::error::EvalError;
use crate::functions::Guard::{Own, Typed};
use crate::functions::Row;
use crate::value::{Eval, Val};
use crate::{number, time};

pub(super) const FUNCTIONS: &[Row] = &[
    ("type", Own, type_of, &[("type", "A -> type(A)")]),
    ("dyn", Own, same, &[("to_dyn", "A -> dyn")]),
    (
        "bool",
        Typed,
        to_bool,
        &[("bool_to_bool", "bool -> bool"), ("string_to_bool", "string -> bool")],
    ),
    (
        "bytes",
        Typed,
        to_bytes,
        &[("bytes_to_bytes", "bytes -> bytes"), ("string_to_bytes", "string -> bytes")],
    ),
    (
        "double",
        Typed,
        to_double,
        &[
            ("double_to_double", "double -> double"),
            ("int64_to_double", "int -> double"),
            ("string_to_double", "string -> double"),
            ("uint64_to_double", "uint -> double"),
        ],
    ),
    (
        "duration",
        Typed,
        to_duration,
        &[
            ("duration_to_duration", "duration -> duration"),
            ("int64_to_duration", "int -> duration"),
            ("string_to_duration", "string -> duration"),
        ],
    ),
    (
        "int",
        Typed,
        to_int,
        &[
            ("int64_to_int64", "int -> int"),
            ("double_to_int64", "double -> int"),
            ("duration_to_int64", "duration -> int"),
            ("string_to_int64", "string -> int"),
            ("timestamp_to_int64", "timestamp -> int"),
            ("uint64_to_int64", "uint -> int"),
        ],
    ),
    (
        "string",
        Typed,
        to_string,
        &[
            ("string_to_string", "string -> string"),
            ("bool_to_string", "bool -> string"),
            ("bytes_to_string", "bytes -> string"),
            ("double_to_string", "double -> string"),
            ("duration_to_string", "duration -> string"),
            ("int64_to_string", "int -> string"),
            ("timestamp_to_string", "timestamp -> string"),
            ("uint64_to_string", "uint -> string"),
            ("ip_to_string", "net.IP -> string"),
            ("cidr_to_string", "net.CIDR -> string"),
        ],
    ),
    (
        "timestamp",
        Typed,
        to_timestamp,
        &[
            ("timestamp_to_timestamp", "timestamp -> timestamp"),
            ("int64_to_timestamp", "int -> timestamp"),
            ("string_to_timestamp", "string -> timestamp"),
        ],
    ),
    (
        "uint",
        Typed,
        to_uint,
        &[
            ("uint64_to_uint64", "uint -> uint"),
            ("double_to_uint64", "double -> uint"),
            ("int64_to_uint64", "int -> uint"),
            ("string_to_uint64", "string -> uint"),
        ],
    ),
];

fn type_of<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    match args {
        [value] => Ok(Val::Type(value.type_name())),
        _ => no_overload(),
    }
}

fn same<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    match args {
        [value] => Ok(value.clone()),
        _ => no_overload(),
    }
}

/// The error for a text that does not represent a value of the type.
fn wrong(to: &str) -> EvalError {
    EvalError::new(format!("type conversion error from 'string' to '{to}'"))
}

/// Accounts for parsing a text, which takes longer than reading it.
fn parsed(text: &str, context: &mut Context) -> Result<(), EvalError> {
    context.work(text.len() as u64 / 2)
}

fn to_bool<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    match args {
        [Val::Bool(b)] => Ok(Val::Bool(*b)),
        [Val::String(text)] => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Val::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Val::Bool(false)),
            _ => Err(wrong("bool")),
        },
        _ => no_overload(),
    }
}

fn to_bytes<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    match args {
        [Val::Bytes(bytes)] => Ok(Val::Bytes(bytes.clone())),
        [Val::String(text)] => {
            context.work(text.len() as u64)?;
            Ok(Val::Bytes(text.as_bytes().into()))
        }
        _ => no_overload(),
    }
}

fn to_double<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    match args {
        [Val::Double(n)] => Ok(Val::Double(*n)),
        [Val::Int(n)] => Ok(Val::Double(*n as f64)),
        [Val::Uint(n)] => Ok(Val::Double(*n as f64)),
        [Val::String(text)] => {
            parsed(text, context)?;
            number::parse(text).map(Val::Double).ok_or_else(|| wrong("double"))
        }
        _ => no_overload(),
    }
}

fn to_duration<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    match args {
        [Val::Duration(nanos)] => Ok(Val::Duration(*nanos)),
        // The overload is declared, but upstream cannot convert integers.
        [Val::Int(_)] => {
            let message = "type conversion error from 'int' to 'google.protobuf.Duration'";
            Err(EvalError::new(message))
        }
        [Val::String(text)] => {
            parsed(text, context)?;
            let nanos = time::parse_duration(text).map(Val::Duration);
            nanos.ok_or_else(|| wrong("google.protobuf.Duration"))
        }
        _ => no_overload(),
    }
}

fn to_int<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let overflow = || EvalError::new("integer overflow");
    match args {
        [Val::Int(n) | Val::Duration(n)] => Ok(Val::Int(*n)),
        [Val::Double(n)] => number::to_int(*n).map(Val::Int).ok_or_else(overflow),
        [Val::Uint(n)] => i64::try_from(*n).map(Val::Int).map_err(|_| overflow()),
        [Val::Timestamp(t)] => Ok(Val::Int(t.seconds)),
        [Val::String(text)] => {
            parsed(text, context)?;
            text.parse().map(Val::Int).map_err(|_| wrong("int"))
        }
        _ => no_overload(),
    }
}

fn to_string<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    match args {
        [Val::String(text)] => Ok(Val::String(text.clone())),
        [Val::Bytes(bytes)] => {
            context.work(bytes.len() as u64)?;
            let text = std::str::from_utf8(bytes)
                .map_err(|_| EvalError::new("invalid UTF-8 in bytes, cannot convert to string"))?;
            Ok(Val::string(text))
        }
        [value] => Ok(Val::string(value.to_string())),
        _ => no_overload(),
    }
}

fn to_timestamp<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let overflow = || EvalError::new("timestamp overflow");
    match args {
        [Val::Timestamp(t)] => Ok(Val::Timestamp(*t)),
        [Val::Int(n)] => time::from_seconds(*n).map(Val::Timestamp).ok_or_else(overflow),
        [Val::String(text)] => {
            parsed(text, context)?;
            time::parse_timestamp(text).map(Val::Timestamp).map_err(|error| match error {
                time::TimeError::Syntax => wrong("google.protobuf.Timestamp"),
                time::TimeError::Range => overflow(),
            })
        }
        _ => no_overload(),
    }
}

fn to_uint<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let overflow = || EvalError::new("unsigned integer overflow");
    match args {
        [Val::Uint(n)] => Ok(Val::Uint(*n)),
        [Val::Int(n)] => u64::try_from(*n).map(Val::Uint).map_err(|_| overflow()),
        [Val::Double(n)] => number::to_uint(*n).map(Val::Uint).ok_or_else(overflow),
        [Val::String(text)] => {
            parsed(text, context)?;
            // Go does not accept a plus sign here.
            let parsed = (!text.starts_with('+')).then(|| text.parse().ok()).flatten();
            parsed.map(Val::Uint).ok_or_else(|| wrong("uint"))
        }
        _ => no_overload(),
    }
}

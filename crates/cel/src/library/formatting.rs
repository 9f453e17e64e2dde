//! Formatting: `"%s is %d".format([a, b])`.

use pintle_meta::quote::quote;

use super::no_overload;
use crate::context::Context;
use crate::error::EvalError;
use crate::types::Type;
use crate::value::{Eval, Map, Val};

/// The number of digits after the decimal point if a clause specifies none.
const PRECISION: usize = 6;

/// The maximum number of digits after the decimal point.
const PRECISION_MAX: usize = 1000;

/// The format of an argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Clause {
    String,
    Decimal,
    Fixed(usize),
    Scientific(usize),
    Binary,
    Hex { upper: bool },
    Octal,
}

/// A piece of a format: literal text, or an argument.
#[derive(Debug)]
pub(crate) enum Piece<'f> {
    Text(&'f str),
    Argument(Clause),
}

/// Parses a format piece by piece, and counts its arguments.
pub(crate) struct Pieces<'f> {
    rest: &'f str,
    /// The number of arguments given, and of those used.
    given: usize,
    pub(crate) used: usize,
    /// Whether the format is checked before evaluation. Then a `%` at the end of the format is
    /// reported as an unexpected end even if its argument is missing, too.
    checking: bool,
}

impl<'f> Pieces<'f> {
    pub(crate) const fn new(format: &'f str, given: usize, checking: bool) -> Self {
        Self { rest: format, given, used: 0, checking }
    }

    pub(crate) fn next(&mut self) -> Result<Option<Piece<'f>>, String> {
        let rest = self.rest;
        if rest.is_empty() {
            return Ok(None);
        }
        let Some(clause) = rest.strip_prefix('%') else {
            let end = rest.find('%').unwrap_or(rest.len());
            self.rest = &rest[end..];
            return Ok(Some(Piece::Text(&rest[..end])));
        };
        if let Some(behind) = clause.strip_prefix('%') {
            self.rest = behind;
            return Ok(Some(Piece::Text("%")));
        }
        if clause.is_empty() && (self.checking || self.used < self.given) {
            return Err("unexpected end of string".to_owned());
        }
        if self.used >= self.given {
            return Err(format!("index {} out of range", self.used));
        }
        self.used += 1;
        let (clause, len) =
            parse(clause).map_err(|e| format!("could not parse formatting clause: {e}"))?;
        self.rest = &rest[1 + len..];
        Ok(Some(Piece::Argument(clause)))
    }
}

/// Parses the clause at the beginning, and returns its length.
fn parse(text: &str) -> Result<(Clause, usize), String> {
    let (precision, digits) = match text.strip_prefix('.') {
        None => (PRECISION, 0),
        Some(rest) => {
            let len = rest.bytes().take_while(u8::is_ascii_digit).count();
            if len == rest.len() {
                let message = "could not find end of precision specifier";
                return Err(format!("error while parsing precision: {message}"));
            }
            let number = rest[..len].parse::<usize>().map_err(|_| {
                let why = if len == 0 { "invalid syntax" } else { "value out of range" };
                let message = "error while parsing precision: error while converting precision to \
                               integer: strconv.Atoi: parsing";
                format!("{message} {}: {why}", quote(&rest[..len]))
            })?;
            (number, 1 + len)
        }
    };
    let clause = match text.as_bytes()[digits] {
        b's' => Clause::String,
        b'd' => Clause::Decimal,
        b'f' => Clause::Fixed(precision),
        b'e' => Clause::Scientific(precision),
        b'b' => Clause::Binary,
        b'x' => Clause::Hex { upper: false },
        b'X' => Clause::Hex { upper: true },
        b'o' => Clause::Octal,
        other => {
            // Go reads a byte here.
            return Err(format!("unrecognized formatting clause \"{}\"", char::from(other)));
        }
    };
    Ok((clause, digits + 1))
}

impl Clause {
    /// The error for a value that the clause does not support.
    pub(crate) fn refuses(self, type_name: &str) -> String {
        let what = match self {
            Self::String => {
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, \
                 lists, types, durations, and timestamps"
            }
            Self::Decimal => "decimal clause can only be used on integers",
            Self::Fixed(_) => "fixed-point clause can only be used on doubles",
            Self::Scientific(_) => "scientific clause can only be used on doubles",
            Self::Binary => "only integers and bools can be formatted as binary",
            Self::Hex { .. } => "only integers, byte buffers, and strings can be formatted as hex",
            Self::Octal => "octal clause can only be used on integers",
        };
        format!("error during formatting: {what}, was given {type_name}")
    }

    /// Whether the clause supports values of a type, as far as the type tells.
    pub(crate) fn takes(self, t: &Type) -> bool {
        let int = matches!(t, Type::Int | Type::Uint);
        matches!(t, Type::Dyn)
            || match self {
                Self::String => !matches!(
                    t,
                    Type::Object(_) | Type::Struct(_) | Type::Opaque(_) | Type::Optional(_)
                ),
                Self::Decimal | Self::Octal => int,
                Self::Fixed(_) | Self::Scientific(_) => matches!(t, Type::Double | Type::String),
                Self::Binary => int || matches!(t, Type::Bool),
                Self::Hex { .. } => int || matches!(t, Type::String | Type::Bytes),
            }
    }

    fn write(self, value: &Val<'_>, context: &mut Context) -> Result<String, EvalError> {
        let refused = || EvalError::new(self.refuses(value.type_name()));
        Ok(match (self, value) {
            (Self::String, value) => return string(value, context),
            (Self::Decimal, Val::Int(_) | Val::Uint(_)) => value.to_string(),
            (Self::Fixed(precision), value) => {
                fixed(double(value).ok_or_else(refused)?, precision.min(PRECISION_MAX))
            }
            (Self::Scientific(precision), value) => {
                scientific(double(value).ok_or_else(refused)?, precision.min(PRECISION_MAX))
            }
            (Self::Binary, Val::Bool(b)) => u8::from(*b).to_string(),
            (Self::Binary, Val::Uint(n)) => format!("{n:b}"),
            (Self::Octal, Val::Uint(n)) => format!("{n:o}"),
            (Self::Binary, Val::Int(n)) => format!("{}{:b}", sign(*n), n.unsigned_abs()),
            (Self::Octal, Val::Int(n)) => format!("{}{:o}", sign(*n), n.unsigned_abs()),
            (Self::Hex { upper }, value) => {
                let text = hex(value).ok_or_else(refused)?;
                if upper { text.to_uppercase() } else { text }
            }
            _ => return Err(refused()),
        })
    }
}

const fn sign(n: i64) -> &'static str {
    if n < 0 { "-" } else { "" }
}

/// A double, or the text of a special one.
fn double(value: &Val<'_>) -> Option<f64> {
    match value {
        Val::Double(n) => Some(*n),
        Val::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn hex(value: &Val<'_>) -> Option<String> {
    let bytes = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    Some(match value {
        Val::String(text) => bytes(text.as_bytes()),
        Val::Bytes(b) => bytes(b),
        Val::Int(n) => format!("{}{:x}", sign(*n), n.unsigned_abs()),
        Val::Uint(n) => format!("{n:x}"),
        _ => return None,
    })
}

/// A special number in English notation.
fn unusual(n: f64) -> Option<&'static str> {
    match n {
        n if n.is_nan() => Some("NaN"),
        f64::INFINITY => Some("∞"),
        f64::NEG_INFINITY => Some("-∞"),
        _ => None,
    }
}

/// A number in English notation: commas between thousands.
fn fixed(n: f64, precision: usize) -> String {
    if let Some(unusual) = unusual(n) {
        return unusual.to_owned();
    }
    let plain = format!("{:.precision$}", n.abs());
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let mut out = String::new();
    if n < 0.0 {
        out.push('-');
    }
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// A number in English scientific notation: `1.5×10⁰³`. Upstream treats the precision as the
/// minimum width.
fn scientific(n: f64, width: usize) -> String {
    if let Some(unusual) = unusual(n) {
        return format!("{unusual:>width$}");
    }
    let n = if n == 0.0 { 0.0 } else { n };
    let plain = format!("{n:.PRECISION$e}");
    let (digits, exponent) = plain.split_once('e').unwrap_or((&plain, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let raised: String = format!("{:02}", exponent.abs())
        .bytes()
        .map(|digit| ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][usize::from(digit - b'0')])
        .collect();
    let minus = if exponent < 0 { "⁻" } else { "" };
    format!("{:>width$}", format!("{digits}×10{minus}{raised}"))
}

/// A top-level value as text.
fn string(value: &Val<'_>, context: &mut Context) -> Result<String, EvalError> {
    match value {
        Val::List(_) | Val::Map(_) => nested(value, context),
        Val::Bytes(bytes) => {
            context.work(bytes.len() as u64)?;
            match std::str::from_utf8(bytes) {
                Ok(text) => Ok(text.to_owned()),
                Err(_) => Err(EvalError::new(
                    "error during formatting: could not convert argument \"invalid UTF-8 in \
                     bytes, cannot convert to string\" to string",
                )),
            }
        }
        Val::Optional(_) | Val::Opaque(_) | Val::Made(_) => {
            Err(EvalError::new(Clause::String.refuses(value.type_name())))
        }
        other => {
            context.work(other.size())?;
            Ok(other.to_string())
        }
    }
}

/// A nested value as text. Its length counts as work, at each level: every level copies it.
fn nested(value: &Val<'_>, context: &mut Context) -> Result<String, EvalError> {
    context.work(1)?;
    let text = match value {
        Val::String(text) => {
            context.work(text.len() as u64)?;
            quote(text)
        }
        Val::Bytes(_) => format!("b{}", quote(&string(value, context)?)),
        Val::Timestamp(_) => format!("timestamp({})", quote(&value.to_string())),
        Val::Duration(_) => format!("duration({})", quote(&value.to_string())),
        Val::Double(n) if n.is_finite() => format!("{n:.PRECISION$}"),
        Val::Double(_) => quote(&value.to_string()),
        Val::List(list) => {
            let mut out = String::from("[");
            for (at, item) in list.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                out.push_str(&nested(&item?, context)?);
            }
            out.push(']');
            out
        }
        Val::Map(map) => entries(map, context)?,
        Val::Optional(_) | Val::Opaque(_) | Val::Made(_) => {
            let message = "error during formatting: no formatting function for";
            return Err(EvalError::new(format!("{message} {}", value.type_name())));
        }
        other => other.to_string(),
    };
    context.work(text.len() as u64)?;
    Ok(text)
}

/// A map as text, ordered by the text of its keys.
fn entries(map: &Map<'_>, context: &mut Context) -> Result<String, EvalError> {
    let mut parts = Vec::new();
    for (key, value) in map.entries()? {
        if !matches!(key, Val::String(_) | Val::Bool(_) | Val::Int(_) | Val::Uint(_)) {
            let message = "error during formatting: no formatting function for map key of type";
            return Err(EvalError::new(format!("{message} {}", key.type_name())));
        }
        parts.push((nested(&key, context)?, nested(&value, context)?));
    }
    parts.sort_by(|a, b| a.0.cmp(&b.0));
    let parts: Vec<String> = parts.into_iter().map(|(k, v)| format!("{k}:{v}")).collect();
    Ok(format!("{{{}}}", parts.join(", ")))
}

pub(super) fn format<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::String(format), Val::List(list)] = args else { return no_overload() };
    let given = usize::try_from(list.len()).unwrap_or(usize::MAX);
    let mut pieces = Pieces::new(format, given, false);
    let mut out = String::new();
    let mut at = 0;
    while let Some(piece) = pieces.next().map_err(EvalError::new)? {
        match piece {
            Piece::Text(text) => {
                context.work(text.len() as u64)?;
                out.push_str(text);
            }
            Piece::Argument(clause) => {
                let value = list.get(at).unwrap_or_else(no_overload)?;
                at += 1;
                let text = clause.write(&value, context)?;
                context.work(text.len() as u64)?;
                out.push_str(&text);
            }
        }
    }
    Ok(Val::string(out))
}

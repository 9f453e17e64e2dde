//! Functions of strings: the language's own, and the string library in version 2. Positions are in
//! characters.

use super::no_overload;
use crate::context::Context;
use crate::error::EvalError;
use crate::functions::Guard::{Own, Typed};
use crate::functions::Row;
use crate::value::{Eval, List, Text, Val};

pub(super) const FUNCTIONS: &[Row] = &[
    ("contains", Own, contains, &[("contains_string", ".string, string -> bool")]),
    ("startsWith", Own, starts_with, &[("starts_with_string", ".string, string -> bool")]),
    ("endsWith", Own, ends_with, &[("ends_with_string", ".string, string -> bool")]),
    ("charAt", Typed, char_at, &[("string_char_at_int", ".string, int -> string")]),
    (
        "indexOf",
        Typed,
        index_of,
        &[
            ("string_index_of_string", ".string, string -> int"),
            ("string_index_of_string_int", ".string, string, int -> int"),
            ("list_a_index_of_int", ".list(A), A -> int"),
        ],
    ),
    (
        "lastIndexOf",
        Typed,
        last_index_of,
        &[
            ("string_last_index_of_string", ".string, string -> int"),
            ("string_last_index_of_string_int", ".string, string, int -> int"),
            ("list_a_last_index_of_int", ".list(A), A -> int"),
        ],
    ),
    ("lowerAscii", Typed, lower, &[("string_lower_ascii", ".string -> string")]),
    ("upperAscii", Typed, upper, &[("string_upper_ascii", ".string -> string")]),
    (
        "replace",
        Typed,
        replace,
        &[
            ("string_replace_string_string", ".string, string, string -> string"),
            ("string_replace_string_string_int", ".string, string, string, int -> string"),
        ],
    ),
    (
        "split",
        Typed,
        split,
        &[
            ("string_split_string", ".string, string -> list(string)"),
            ("string_split_string_int", ".string, string, int -> list(string)"),
        ],
    ),
    (
        "substring",
        Typed,
        substring,
        &[
            ("string_substring_int", ".string, int -> string"),
            ("string_substring_int_int", ".string, int, int -> string"),
        ],
    ),
    ("trim", Typed, trim, &[("string_trim", ".string -> string")]),
    (
        "join",
        Typed,
        join,
        &[
            ("list_join", ".list(string) -> string"),
            ("list_join_string", ".list(string), string -> string"),
        ],
    ),
    ("strings.quote", Typed, quote, &[("strings_quote", "string -> string")]),
    (
        "format",
        Typed,
        super::formatting::format,
        &[("string_format", ".string, list(dyn) -> string")],
    ),
];

fn both<'a>(args: &[Val<'a>], holds: impl Fn(&str, &str) -> bool) -> Eval<'a> {
    match args {
        [Val::String(a), Val::String(b)] => Ok(Val::Bool(holds(a, b))),
        _ => no_overload(),
    }
}

fn contains<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    both(args, |text, part| text.contains(part))
}

fn starts_with<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    both(args, |text, prefix| text.starts_with(prefix))
}

fn ends_with<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    both(args, |text, suffix| text.ends_with(suffix))
}

fn out_of_range<T>(index: i64) -> Result<T, EvalError> {
    Err(EvalError::new(format!("index out of range: {index}")))
}

/// The byte offset of a character; the end for the index after the last.
fn byte_of(text: &str, index: i64) -> Result<usize, EvalError> {
    let Ok(number) = usize::try_from(index) else { return out_of_range(index) };
    if text.is_ascii() {
        return if number <= text.len() { Ok(number) } else { out_of_range(index) };
    }
    let mut starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    starts.nth(number).map_or_else(|| out_of_range(index), Ok)
}

fn char_at<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::String(text), Val::Int(index)] = args else { return no_overload() };
    let at = byte_of(text, *index)?;
    let len = text[at..].chars().next().map_or(0, char::len_utf8);
    Ok(Val::String(text.slice(at..at + len)))
}

fn index_of<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let (text, part, from) = match args {
        [Val::List(list), item] => return position(list, item, context, false),
        [Val::String(text), Val::String(part)] => (text, part, 0),
        [Val::String(text), Val::String(part), Val::Int(from)] => (text, part, *from),
        _ => return no_overload(),
    };
    if part.is_empty() {
        return Ok(Val::Int(from));
    }
    if from < 0 {
        return out_of_range(from);
    }
    context.work(text.len() as u64)?;
    let Ok(start) = byte_of(text, from) else { return Ok(Val::Int(-1)) };
    let found = text[start..].find(&**part);
    let index = found.map(|at| from + text[start..start + at].chars().count() as i64);
    Ok(Val::Int(index.unwrap_or(-1)))
}

fn last_index_of<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let (text, part, from) = match args {
        [Val::List(list), item] => return position(list, item, context, true),
        [Val::String(text), Val::String(part)] => (text, part, None),
        [Val::String(text), Val::String(part), Val::Int(from)] => (text, part, Some(*from)),
        _ => return no_overload(),
    };
    let count = text.chars_count() as i64;
    if part.is_empty() {
        return Ok(Val::Int(from.unwrap_or(count)));
    }
    if from.is_none() && text.len() < part.len() {
        return Ok(Val::Int(-1));
    }
    let from = from.unwrap_or(count - 1);
    if from < 0 {
        return out_of_range(from);
    }
    if from >= count {
        return Ok(Val::Int(-1));
    }
    context.work(text.len() as u64)?;
    // The last occurrence that begins at `from` or before.
    let end = byte_of(text, from)?.saturating_add(part.len()).min(text.len());
    let end = (end..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let found = text[..end].rmatch_indices(&**part).map(|(at, _)| at);
    let mut indices = found.map(|at| text[..at].chars().count() as i64);
    Ok(Val::Int(indices.find(|index| *index <= from).unwrap_or(-1)))
}

/// The first or last index of an item in a list. Incomparable items are unequal.
fn position<'a>(list: &List<'a>, item: &Val<'a>, context: &mut Context, last: bool) -> Eval<'a> {
    let len = list.len();
    context.work(len.saturating_mul(1 + u64::from(list.depth())))?;
    for step in 0..len {
        let index = if last { len - 1 - step } else { step };
        let Some(Ok(other)) = list.get(index) else { continue };
        match other.equals(item, context) {
            Ok(true) => return Ok(Val::Int(index as i64)),
            Err(error) if error.is_cancelled() => return Err(error),
            _ => {}
        }
    }
    Ok(Val::Int(-1))
}

fn one<'a>(context: &mut Context, args: &[Val<'a>], change: impl Fn(&str) -> String) -> Eval<'a> {
    match args {
        [Val::String(text)] => {
            context.work(text.len() as u64)?;
            Ok(Val::string(change(text)))
        }
        _ => no_overload(),
    }
}

fn lower<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    one(context, args, str::to_ascii_lowercase)
}

fn upper<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    one(context, args, str::to_ascii_uppercase)
}

fn replace<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let (text, from, to, limit) = match args {
        [Val::String(text), Val::String(from), Val::String(to)] => (text, from, to, -1),
        [Val::String(text), Val::String(from), Val::String(to), Val::Int(limit)] => {
            (text, from, to, *limit)
        }
        _ => return no_overload(),
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    // The size of the result is checked before it is produced.
    context.work(text.len() as u64)?;
    let count = text.matches(&**from).take(limit).count() as u64;
    context.work(count.saturating_mul(to.len() as u64))?;
    Ok(Val::string(text.replacen(&**from, to, limit)))
}

fn split<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let (text, separator, limit) = match args {
        [Val::String(text), Val::String(separator)] => (text, separator, -1),
        [Val::String(text), Val::String(separator), Val::Int(limit)] => (text, separator, *limit),
        _ => return no_overload(),
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if limit == 0 {
        return Ok(Val::list(Vec::new()));
    }
    let cuts = cuts(text, separator, limit, context)?;
    let mut parts = Vec::with_capacity(cuts.len());
    for range in cuts {
        context.work(4)?;
        parts.push(Val::String(text.slice(range)));
    }
    Ok(Val::list(parts))
}

/// The positions of the parts of a text; an empty separator separates all characters.
fn cuts(
    text: &Text<'_>,
    separator: &str,
    limit: usize,
    context: &mut Context,
) -> Result<Vec<std::ops::Range<usize>>, EvalError> {
    context.work(text.len() as u64)?;
    let mut cuts = Vec::new();
    let mut start = 0;
    if separator.is_empty() {
        let inner = text.char_indices().map(|(at, _)| at).skip(1);
        for at in inner.take(limit - 1) {
            cuts.push(start..at);
            start = at;
        }
        if start < text.len() {
            cuts.push(start..text.len());
        }
        return Ok(cuts);
    }
    for (at, _) in text.match_indices(separator).take(limit - 1) {
        cuts.push(start..at);
        start = at + separator.len();
    }
    cuts.push(start..text.len());
    Ok(cuts)
}

fn substring<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    match args {
        [Val::String(text), Val::Int(start)] => {
            let start = byte_of(text, *start)?;
            Ok(Val::String(text.slice(start..text.len())))
        }
        [Val::String(text), Val::Int(start), Val::Int(end)] => {
            if start > end {
                let message = format!("invalid substring range. start: {start}, end: {end}");
                return Err(EvalError::new(message));
            }
            let start = byte_of(text, *start)?;
            let end = byte_of(text, *end)?;
            Ok(Val::String(text.slice(start..end)))
        }
        _ => no_overload(),
    }
}

fn trim<'a>(_: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let [Val::String(text)] = args else { return no_overload() };
    let start = text.len() - text.trim_start().len();
    let end = start + text[start..].trim_end().len();
    Ok(Val::String(text.slice(start..end)))
}

fn join<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    let (list, separator) = match args {
        [Val::List(list)] => (list, ""),
        [Val::List(list), Val::String(separator)] => (list, &**separator),
        _ => return no_overload(),
    };
    let mut out = String::new();
    for (at, item) in list.iter().enumerate() {
        if at > 0 {
            context.work(separator.len() as u64)?;
            out.push_str(separator);
        }
        match item? {
            Val::String(text) => {
                context.work(16 + text.len() as u64)?;
                out.push_str(&text);
            }
            other => return Err(EvalError::new(format!("join: invalid input: {other}"))),
        }
    }
    Ok(Val::string(out))
}

fn quote<'a>(context: &mut Context, args: &[Val<'a>]) -> Eval<'a> {
    one(context, args, |text| {
        let mut out = String::with_capacity(text.len() + 2);
        out.push('"');
        for c in text.chars() {
            match c {
                '\u{7}' => out.push_str("\\a"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{b}' => out.push_str("\\v"),
                '\\' => out.push_str("\\\\"),
                '"' => out.push_str("\\\""),
                c => out.push(c),
            }
        }
        out.push('"');
        out
    })
}

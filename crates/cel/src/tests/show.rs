//! Values in the notation of rows: with types, maps ordered by the text of their keys.

use crate::value::Val;

pub(super) fn show(value: &Val<'_>) -> String {
    let join = |parts: Vec<String>| parts.join(", ");
    match value {
        Val::Uint(n) => format!("{n}u"),
        Val::Double(n) => format!("double({})", crate::number::shortest(*n)),
        Val::String(text) => quote(text),
        Val::Bytes(bytes) => {
            let hex: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
            format!("bytes({})", hex.concat())
        }
        Val::Timestamp(t) => format!("timestamp({t})"),
        Val::Duration(_) => format!("duration({value})"),
        Val::Optional(None) => "optional.none()".to_owned(),
        Val::Optional(Some(inner)) => format!("optional({})", show(inner)),
        Val::Type("list") => "type(list(dyn))".to_owned(),
        Val::Type("map") => "type(map(dyn, dyn))".to_owned(),
        Val::Type(name) => format!("type({name})"),
        Val::List(list) => {
            let items = list.iter().map(|item| match item {
                Ok(item) => show(&item),
                Err(error) => format!("error({error})"),
            });
            format!("[{}]", join(items.collect()))
        }
        Val::Map(map) => {
            let entries = map.entries().unwrap_or_default();
            let mut parts: Vec<String> =
                entries.iter().map(|(k, v)| format!("{}: {}", show(k), show(v))).collect();
            parts.sort();
            format!("{{{}}}", join(parts))
        }
        Val::Opaque(opaque) => format!("{}({opaque})", value.type_name()),
        other => other.to_string(),
    }
}

/// Quotes text as Go's JSON encoder does.
fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04x}", c as u32));
            }
            c if (c as u32) < 32 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

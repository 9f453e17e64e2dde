//! Values that stay text until something is changed or compared in them, as in upstream's library
//! for JSON patches and merge patches.

use pintle_value::{
    Error, Map, Str, Value, json,
    token::{Token, Tokens},
};

/// Reads a value as compact text, or null if it is malformed.
pub(crate) fn raw(json: &[u8]) -> Value {
    let text = json::text(json);
    json::Reader::new(&text).json().map(Value::raw).unwrap_or_default()
}

/// Makes raw JSON the object or list that it is, with raw parts. Other values are unchanged. The
/// parts are copied, so the cost is their length.
pub(crate) fn open(value: &mut Value) {
    if let Value::Raw(text) = value
        && text.starts_with(['{', '['])
        && let Ok(opened) = opened(&mut json::Reader::of_valid(text))
    {
        *value = opened;
    }
}

fn opened(tokens: &mut json::Reader<'_>) -> Result<Value, Error> {
    match tokens.value()? {
        Token::Array => {
            let mut items = Vec::new();
            while tokens.item()? {
                items.push(Value::raw(tokens.json()?));
            }
            Ok(Value::Array(items))
        }
        Token::Object => {
            let mut members = Vec::new();
            while let Some(key) = tokens.key()?.map(Str::from) {
                members.push((key, Value::raw(tokens.json()?)));
            }
            Ok(Value::Object(Map::from_unsorted(members, |_| {})))
        }
        scalar => scalar.scalar(),
    }
}

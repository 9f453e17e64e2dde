//! The texts that cells of several kinds share.

use std::borrow::Cow;
use std::collections::BTreeSet;

use pintle_meta::quantity;
use pintle_registry::table::{Cell, UnixSeconds};
use pintle_value::Value;

use super::read::{items_at, str_at};

/// A text, or another one if it is empty.
pub(super) fn filled<'a>(text: &'a str, empty: &'a str) -> &'a str {
    if text.is_empty() { empty } else { text }
}

/// Texts with commas between them.
pub(super) fn joined<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    joined_with(texts, ",")
}

/// Texts with a separator between them.
pub(super) fn joined_with<T: AsRef<str>>(
    texts: impl IntoIterator<Item = T>,
    separator: &str,
) -> String {
    let mut all = String::new();
    for (index, text) in texts.into_iter().enumerate() {
        if index > 0 {
            all.push_str(separator);
        }
        all.push_str(text.as_ref());
    }
    all
}

/// How many texts of a long list a cell shows.
pub(super) const SHOWN_MAX: usize = 3;

/// The first texts of a list with commas between, and how many more there are.
pub(super) fn first_few<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    let mut texts = texts.into_iter();
    let shown = joined(texts.by_ref().take(SHOWN_MAX));
    with_more(shown, texts.count())
}

/// A list's shown part, and how many more there are.
pub(super) fn with_more(shown: String, more: usize) -> String {
    if more > 0 { format!("{shown} + {more} more...") } else { shown }
}

/// A kind or resource with its group, if that is not the core group: `daemonset.apps`.
pub(super) fn qualified(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

/// How long ago a time was.
pub(super) fn age(time: Option<UnixSeconds>) -> Cell {
    time.map_or_else(|| "<unknown>".into(), Cell::since)
}

/// Labels as `key=value`, sorted as whole texts, `<none>` without any.
pub(super) fn label_text(labels: Option<&Value>) -> String {
    let Some(labels) = labels.and_then(Value::as_object).filter(|labels| !labels.is_empty()) else {
        return "<none>".to_owned();
    };
    let texts = labels.iter().map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default()));
    joined(texts.collect::<BTreeSet<_>>())
}

/// Access modes of a volume, abbreviated, each once and in a fixed order.
pub(super) fn access_modes(modes: &[Value]) -> String {
    const ABBREVIATIONS: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let present = |mode: &str| modes.iter().any(|m| m.as_str() == Some(mode));
    joined(ABBREVIATIONS.iter().filter(|(mode, _)| present(mode)).map(|(_, short)| short))
}

/// The addresses of a load balancer: each entry's IP address or else its host name, sorted, each
/// once.
pub(super) fn load_balancer(object: &Value) -> String {
    let entries = items_at(object, "status.loadBalancer.ingress").iter();
    let fields = entries.map(|entry| filled(str_at(entry, "ip"), str_at(entry, "hostname")));
    joined(fields.filter(|field| !field.is_empty()).collect::<BTreeSet<_>>())
}

/// A quantity in its canonical form.
pub(super) fn amount(value: &Value) -> String {
    match value {
        Value::String(text) => quantity::canonical(text).map_or("0".to_owned(), Cow::into_owned),
        Value::Int(number) => number.to_string(),
        _ => "0".to_owned(),
    }
}

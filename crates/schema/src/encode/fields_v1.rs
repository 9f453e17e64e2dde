//! The fields that a manager owns, in the order of paths: members of objects, then items by their keys, by
//! their values, by their places; numbers by size. A tree has them in the order of their texts, and upstream
//! keeps the text that it once wrote.

use std::cmp::Ordering;

use pintle_value::{
    Map, Str, Value,
    json::{self, Layout},
    order,
};

pub(super) fn write<L: Layout>(fields: &Map, layout: &mut L, out: &mut Vec<u8>) {
    let entries = fields.as_slice();
    // The order of texts is that of members already.
    let items = entries.iter().filter(|(key, _)| sort(key) > Sort::Member).count();
    if items < 2 {
        return json::write_map(entries, layout, out, entry);
    }
    let mut sorted: Vec<(Step<'_>, &(Str, Value))> =
        entries.iter().map(|entry| (Step::of(&entry.0), entry)).collect();
    sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
    json::write_map(&sorted, layout, out, |(_, field), layout, out| entry(field, layout, out));
}

fn entry<L: Layout>((key, below): &(Str, Value), layout: &mut L, out: &mut Vec<u8>) {
    json::write_key(key, layout, out);
    match below {
        Value::Object(below) => write(below, layout, out),
        other => json::write_as(other, layout, out),
    }
}

/// The sorts of steps, in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sort {
    /// The path itself, `.`, and whatever is not known.
    Itself,
    Member,
    Key,
    Value,
    Index,
}

fn sort(key: &str) -> Sort {
    match key.get(..2) {
        Some("f:") => Sort::Member,
        Some("k:") => Sort::Key,
        Some("v:") => Sort::Value,
        Some("i:") => Sort::Index,
        _ => Sort::Itself,
    }
}

/// One step of a path, as far as its order goes.
struct Step<'k> {
    sort: Sort,
    text: &'k str,
    /// What a key, a value or a place is; null where it cannot be read.
    value: Value,
}

impl<'k> Step<'k> {
    fn of(text: &'k str) -> Self {
        let sort = sort(text);
        let value = match sort {
            Sort::Itself | Sort::Member => Value::Null,
            _ => json::parse(&text.as_bytes()[2..]).unwrap_or_default(),
        };
        Self { sort, text, value }
    }

    fn cmp(&self, other: &Self) -> Ordering {
        let by_value = || order::values(&self.value, &other.value);
        self.sort.cmp(&other.sort).then_with(by_value).then_with(|| self.text.cmp(other.text))
    }
}

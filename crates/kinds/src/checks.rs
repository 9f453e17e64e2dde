//! Small checks that validation functions share, with upstream's messages.
//!
//! The table of types checks what it declares (required members, enums, immutable members); rules
//! that rows can express are in [`crate::rules`].

use std::collections::BTreeSet;

use pintle_meta::field::{Error, Errors};
pub(crate) use pintle_meta::object::same;
use pintle_value::{Map, Path, Value};

/// Upstream's message for a changed immutable field.
pub(crate) const IMMUTABLE: &str = "field is immutable";

/// Upstream's message for a negative number.
pub(crate) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// The most warnings about one object; the headers of a response hold far fewer.
pub(crate) const WARNINGS_MAX: usize = 100;

/// A member that may not change once the object exists.
pub(crate) struct Frozen {
    /// The path of the member.
    pub path: &'static [&'static str],
    /// The message, if upstream reports the change as forbidden; `None` if it reports an invalid
    /// value.
    pub forbidden: Option<&'static str>,
    /// Whether Go has a string here and not a pointer: an absent value is shown as an empty one.
    pub is_text: bool,
}

/// A member whose new value is called invalid: `field is immutable`.
pub(crate) const fn frozen(path: &'static [&'static str]) -> Frozen {
    Frozen { path, forbidden: None, is_text: false }
}

/// An immutable text. Go has no absent texts, so an absent one counts as empty.
pub(crate) const fn frozen_text(path: &'static [&'static str]) -> Frozen {
    Frozen { path, forbidden: None, is_text: true }
}

/// An immutable member whose change is reported as forbidden with this message.
pub(crate) const fn forbidden(path: &'static [&'static str], words: &'static str) -> Frozen {
    Frozen { path, forbidden: Some(words), is_text: false }
}

/// Returns an error for each frozen member that has changed.
pub(crate) fn unchanged(new: &Value, old: Option<&Value>, frozen: &[Frozen]) -> Errors {
    let Some(old) = old else { return Errors::new() };
    let changed = frozen.iter().filter(|member| !same(new.at(member.path), old.at(member.path)));
    changed
        .map(|member| match member.forbidden {
            Some(words) => Error::forbidden(&path(member.path), words),
            None => {
                let absent = if member.is_text { Value::from("") } else { Value::Null };
                let value = new.at(member.path).unwrap_or(&absent);
                Error::invalid(&path(member.path), value, IMMUTABLE)
            }
        })
        .collect()
}

/// A path of members.
pub(crate) fn path(members: &[&str]) -> Path {
    let mut path = Path::root();
    members.iter().for_each(|member| path.push_field(member));
    path
}

/// Errors of a name at a path, as rules of [`pintle_meta::names`] give them.
pub(crate) fn invalid_text(path: &Path, text: &str, wrong: Vec<String>, errors: &mut Errors) {
    errors.extend(wrong.into_iter().map(|words| Error::invalid(path, &Value::from(text), words)));
}

/// The texts that occurred so far.
#[derive(Default)]
pub(crate) struct Seen<'a> {
    /// The first texts: a few are compared faster than they are put into a set.
    few: Vec<&'a str>,
    more: BTreeSet<&'a str>,
}

impl<'a> Seen<'a> {
    const FEW: usize = 16;

    /// Adds a text; returns whether it is new.
    pub(crate) fn insert(&mut self, text: &'a str) -> bool {
        if self.few.contains(&text) {
            return false;
        }
        if self.few.len() < Self::FEW {
            self.few.push(text);
            return true;
        }
        self.more.insert(text)
    }
}

/// The items of a list; empty if there is no list.
pub(crate) fn items<'a>(object: &'a Value, at: &[&str]) -> &'a [Value] {
    object.at(at).and_then(Value::as_array).unwrap_or_default()
}

/// The members of a map; empty if there is no map.
pub(crate) fn members<'a>(object: &'a Value, at: &[&str]) -> &'a Map {
    static NONE: Map = Map::new();
    object.at(at).and_then(Value::as_object).unwrap_or(&NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seen_texts_are_not_new() {
        let texts: Vec<String> = (0..100).map(|n| (n * n % 61).to_string()).collect();
        let (mut seen, mut set) = (Seen::default(), BTreeSet::new());
        for text in &texts {
            assert_eq!(seen.insert(text), set.insert(text), "{text}");
        }
    }
}

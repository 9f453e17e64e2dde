//! A field of an object: its value and its path.
//!
//! Validation functions walk an object by its fields. Reading never fails: a value that is absent
//! or of another type reads as Go's zero value. The path is written out only when an error needs
//! it.

use pintle_meta::field::Error;
pub(crate) use pintle_meta::field::Errors;
use pintle_value::{Map, Path, Str, Value};

/// The most bytes of a map's key in a path.
const KEY_BYTES_MAX: usize = 4096;

/// The value of an absent field.
const ABSENT: &Value = &Value::Null;

/// A value within an object, and the path to it.
#[derive(Clone, Copy)]
pub(crate) struct Field<'a> {
    value: &'a Value,
    parent: Option<&'a Field<'a>>,
    step: Step<'a>,
}

/// How a field is reached from its parent.
#[derive(Clone, Copy)]
enum Step<'a> {
    /// It is the object itself.
    Same,
    Members(&'a [&'a str]),
    Member(&'a str),
    Item(&'a str, usize),
    Key(&'a str),
}

impl<'a> Field<'a> {
    /// The object itself.
    pub(crate) const fn root(object: &'a Value) -> Self {
        Self { value: object, parent: None, step: Step::Same }
    }

    /// The member of that name; a field with the value null if it is absent.
    pub(crate) fn get<'s>(&'s self, member: &'s str) -> Field<'s> {
        self.step(self.value.get(member), Step::Member(member))
    }

    /// The member at the end of a path of members.
    pub(crate) fn at<'s>(&'s self, members: &'s [&'s str]) -> Field<'s> {
        self.step(self.value.at(members), Step::Members(members))
    }

    /// The member of that name, if it is present.
    pub(crate) fn find<'s>(&'s self, member: &'s str) -> Option<Field<'s>> {
        Some(self.get(member)).filter(Field::is_set)
    }

    /// The items of the list of that name.
    pub(crate) fn items<'s>(
        &'s self,
        member: &'s str,
    ) -> impl ExactSizeIterator<Item = Field<'s>> + DoubleEndedIterator {
        let items = self.value.get(member).and_then(Value::as_array).unwrap_or_default();
        let step = move |(i, item)| self.step(Some(item), Step::Item(member, i));
        items.iter().enumerate().map(step)
    }

    /// The entries of this map, sorted by key. Upstream iterates over maps in random order.
    pub(crate) fn pairs<'s>(&'s self) -> impl Iterator<Item = (&'a str, Field<'s>)> {
        let members = self.value.as_object().into_iter().flat_map(Map::iter);
        members.map(|(key, value)| (key.as_str(), self.step(Some(value), Step::Key(key))))
    }

    /// The entry of this map of that key; where it is absent, a field whose value is null.
    pub(crate) fn entry<'s>(&'s self, key: &'s str) -> Field<'s> {
        self.step(self.value.get(key), Step::Key(key))
    }

    /// This value under the path of a map's entry.
    pub(crate) fn key<'s>(&'s self, key: &'s str) -> Field<'s> {
        self.step(Some(self.value), Step::Key(key))
    }

    /// This value under a sibling's name: some of upstream's error paths name the wrong field.
    pub(crate) fn called<'s>(&'s self, name: &'s str) -> Field<'s> {
        Field { step: Step::Member(name), ..*self }
    }

    /// This value under a path that is one member longer.
    pub(crate) fn under<'s>(&'s self, name: &'s str) -> Field<'s> {
        self.step(Some(self.value), Step::Member(name))
    }

    /// Another value under this field's path, which errors will name.
    pub(crate) fn of<'s>(&'s self, value: &'s Value) -> Field<'s> {
        Field { value, ..*self }
    }

    fn step<'s>(&'s self, value: Option<&'s Value>, step: Step<'s>) -> Field<'s> {
        Field { value: value.unwrap_or(ABSENT), parent: Some(self), step }
    }

    /// The value; null if absent.
    pub(crate) const fn value(&self) -> &'a Value {
        self.value
    }

    /// The value, if there is one.
    pub(crate) fn some(&self) -> Option<&'a Value> {
        Some(self.value).filter(|value| !value.is_null())
    }

    /// The text; `""` if absent.
    pub(crate) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    /// The text of a member; `""` if absent.
    pub(crate) fn str(&self, member: &str) -> &'a str {
        self.value.get(member).and_then(Value::as_str).unwrap_or_default()
    }

    /// The number, if there is one.
    pub(crate) const fn int(&self) -> Option<i64> {
        self.value.as_int()
    }

    /// Whether it is `true`.
    pub(crate) fn is_true(&self) -> bool {
        self.value.as_bool() == Some(true)
    }

    /// Whether it is `false`, and not just absent.
    pub(crate) fn is_false(&self) -> bool {
        self.value.as_bool() == Some(false)
    }

    /// Whether there is a value, even an empty one: not nil in Go.
    pub(crate) const fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Whether there is a member of that name.
    pub(crate) fn has(&self, member: &str) -> bool {
        self.value.get(member).is_some_and(|value| !value.is_null())
    }

    /// The rows of a table whose members are present, in the order of the table, which has fewer
    /// than 64 rows. Objects have few members, so these are looked up in the table.
    pub(crate) fn present<'t, T>(
        &self,
        table: &'t [T],
        member: fn(&T) -> &str,
    ) -> impl Iterator<Item = &'t T> {
        let members = self.value.as_object().into_iter().flat_map(Map::iter);
        let members = members.filter(|(_, value)| !value.is_null());
        let row = |(key, _): (&Str, _)| table.iter().position(|row| member(row) == key.as_str());
        let mut rows = members.filter_map(row).fold(0_u64, |rows, row| rows | 1 << row);
        std::iter::from_fn(move || {
            let row = rows.trailing_zeros() as usize;
            rows &= rows.wrapping_sub(1);
            table.get(row)
        })
    }

    /// Whether the value is absent, or an empty text, list or map.
    pub(crate) fn is_empty(&self) -> bool {
        match self.value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.is_empty(),
            _ => false,
        }
    }

    /// The map of that name; empty if absent.
    pub(crate) fn map(&self, member: &str) -> &'a Map {
        static NONE: Map = Map::new();
        self.value.get(member).and_then(Value::as_object).unwrap_or(&NONE)
    }

    /// The path from the object's root.
    pub(crate) fn path(&self) -> Path {
        let mut path = self.parent.map_or_else(Path::root, Field::path);
        match self.step {
            Step::Same => {}
            Step::Members(members) => members.iter().for_each(|member| path.push_field(member)),
            Step::Member(member) => path.push_field(member),
            Step::Item(list, i) => {
                path.push_field(list);
                path.push_index(i);
            }
            // Errors show no longer paths, and a long key may be part of many.
            Step::Key(key) => path.push_key(&key[..key.floor_char_boundary(KEY_BYTES_MAX)]),
        }
        path
    }

    /// The error for a missing required value.
    pub(crate) fn required(&self, words: &str) -> Error {
        Error::required(&self.path(), words)
    }

    /// The error for an invalid value.
    pub(crate) fn invalid(&self, words: impl Into<String>) -> Error {
        Error::invalid(&self.path(), self.value, words)
    }

    /// The error for an invalid value, with another value in the message.
    pub(crate) fn invalid_as(&self, value: impl Into<Value>, words: impl Into<String>) -> Error {
        Error::invalid(&self.path(), &value.into(), words)
    }

    /// The error for an invalid value, without the value in the message.
    pub(crate) fn invalid_without_value(&self, words: impl Into<String>) -> Error {
        Error { value: None, ..self.invalid(words) }
    }

    /// The error for a forbidden value.
    pub(crate) fn forbidden(&self, words: impl Into<String>) -> Error {
        Error::forbidden(&self.path(), words)
    }

    /// The error for a text that is not one of `allowed`, which the message lists in this order.
    pub(crate) fn not_supported(&self, allowed: &[&str]) -> Error {
        Error::not_supported(&self.path(), self.or_empty(), allowed)
    }

    /// The error that the text or number is a duplicate.
    pub(crate) fn duplicate(&self) -> Error {
        Error::duplicate(&self.path(), self.or_empty())
    }

    /// The error that the text names something that does not exist.
    pub(crate) fn not_found(&self) -> Error {
        Error::not_found(&self.path(), self.or_empty())
    }

    /// Adds an error about the text for each message in `wrong`.
    pub(crate) fn all_invalid(&self, wrong: Vec<String>, errors: &mut Errors) {
        self.all_invalid_as(self.text(), wrong, errors);
    }

    /// Adds an error about `text` under this field's path for each message in `wrong`.
    pub(crate) fn all_invalid_as(&self, text: &str, wrong: Vec<String>, errors: &mut Errors) {
        if !wrong.is_empty() {
            errors.extend(wrong.into_iter().map(|words| self.invalid_as(text, words)));
        }
    }

    /// The value, or an empty text where it is null: messages show it so.
    fn or_empty(&self) -> &'a Value {
        static EMPTY: Value = Value::String(pintle_value::Str::const_new(""));
        if self.value.is_null() { &EMPTY } else { self.value }
    }
}

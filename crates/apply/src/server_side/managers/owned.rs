//! The fields of one manager. They are decoded on first use: most writes do not concern most
//! managers, whose entries then stay as they are.

use std::cell::OnceCell;

use pintle_value::Str;

use super::FieldSet;

/// The fields that a manager owns, decoded lazily.
#[derive(Clone, Debug)]
pub(crate) struct Owned {
    /// The version of the fields.
    pub(crate) api_version: Str,
    /// The time of the manager's last change.
    pub(crate) unix_micros: Option<i64>,
    /// The decoded fields; unset until they are needed.
    fields: OnceCell<FieldSet>,
    /// The fields as FieldsV1; unset until it is needed, and after each change.
    encoded: OnceCell<Box<str>>,
}

/// Two values with equal fields are equal, in whichever form they are held.
impl PartialEq for Owned {
    fn eq(&self, other: &Self) -> bool {
        (&self.api_version, self.fields(), self.unix_micros)
            == (&other.api_version, other.fields(), other.unix_micros)
    }
}

impl Owned {
    pub(crate) fn new(api_version: Str, fields: FieldSet, unix_micros: Option<i64>) -> Self {
        Self { api_version, unix_micros, fields: fields.into(), encoded: OnceCell::new() }
    }

    /// Creates the value from FieldsV1 that this server wrote.
    pub(crate) fn from_json(api_version: Str, fields: Box<str>, unix_micros: Option<i64>) -> Self {
        Self { api_version, unix_micros, fields: OnceCell::new(), encoded: fields.into() }
    }

    /// The decoded fields. Invalid FieldsV1 counts as no fields.
    pub(crate) fn fields(&self) -> &FieldSet {
        self.fields.get_or_init(|| {
            let encoded = self.encoded.get().map(|text| FieldSet::from_json(text));
            encoded.and_then(Result::ok).unwrap_or_default()
        })
    }

    /// The fields as FieldsV1.
    pub(crate) fn json(&self) -> &str {
        self.encoded.get_or_init(|| self.fields().to_json().into())
    }

    /// Converts the fields to FieldsV1.
    pub(crate) fn into_json(self) -> Box<str> {
        self.json();
        self.encoded.into_inner().unwrap_or_default()
    }

    /// Whether there are no fields.
    pub(crate) fn is_empty(&self) -> bool {
        match (self.fields.get(), self.encoded.get()) {
            (None, Some(encoded)) => &**encoded == "{}",
            _ => self.fields().is_empty(),
        }
    }

    /// Adds fields.
    pub(crate) fn add(&mut self, set: FieldSet) {
        let encoded = self.encoded.get().filter(|_| self.fields.get().is_none());
        match encoded.and_then(|encoded| set.added_to(encoded)) {
            Some(encoded) => self.encoded = OnceCell::from(Box::from(encoded)),
            None => self.change(|before| set.union(before)),
        }
    }

    /// Replaces the fields.
    pub(crate) fn change(&mut self, change: impl FnOnce(FieldSet) -> FieldSet) {
        self.fields();
        self.fields = change(self.fields.take().unwrap_or_default()).into();
        self.encoded.take();
    }

    /// Changes the fields in place. `change` returns whether it changed anything.
    pub(crate) fn change_in_place(&mut self, change: impl FnOnce(&mut FieldSet) -> bool) {
        self.fields();
        if self.fields.get_mut().is_some_and(change) {
            self.encoded.take();
        }
    }

    /// Whether both have the same fields of the same version.
    pub(crate) fn has_same_fields(&self, other: &Self) -> bool {
        let same = match (self.fields.get(), other.fields.get()) {
            (Some(own), Some(others)) => own == others,
            _ => self.json() == other.json(),
        };
        same && self.api_version == other.api_version
    }

    /// Whether all paths of the set are among these fields.
    pub(crate) fn contains_all(&self, set: &FieldSet) -> bool {
        match (self.fields.get(), self.encoded.get()) {
            (None, Some(encoded)) => set.is_contained_in(encoded),
            _ => set.is_subset(self.fields()),
        }
    }

    /// Whether a path of the set, or a path below one, may be among these fields. If not, the
    /// manager owns nothing of the set, also after the fields are adapted to a changed schema.
    pub(crate) fn may_intersect(&self, set: &FieldSet) -> bool {
        // Most changes only add, modify or remove fields: nothing is searched for the empty sets.
        if set.is_empty() {
            return false;
        }
        match (self.fields.get(), self.encoded.get()) {
            (None, Some(encoded)) => set.may_intersect(encoded),
            _ => true,
        }
    }
}

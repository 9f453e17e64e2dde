//! What one manager owns. The fields of an entry are read when they are first asked for: most writes
//! have nothing to do with most managers, and leave their entries as they are.

use std::cell::OnceCell;

use pintle_value::Str;

use super::FieldSet;

/// What a manager owns.
#[derive(Clone, Debug)]
pub(crate) struct Owned {
    /// The version that the fields are of.
    pub(crate) api_version: Str,
    /// When it last changed something.
    pub(crate) unix_micros: Option<i64>,
    /// Unset until they are asked for.
    fields: OnceCell<FieldSet>,
    /// The fields as FieldsV1, while it is known to say the same; unset until it is asked for.
    written: OnceCell<Box<str>>,
}

/// How the fields are kept does not count.
impl PartialEq for Owned {
    fn eq(&self, other: &Self) -> bool {
        (&self.api_version, self.fields(), self.unix_micros)
            == (&other.api_version, other.fields(), other.unix_micros)
    }
}

impl Owned {
    pub(crate) fn new(api_version: Str, fields: FieldSet, unix_micros: Option<i64>) -> Self {
        Self { api_version, unix_micros, fields: fields.into(), written: OnceCell::new() }
    }

    /// Fields as they were written here.
    pub(crate) fn written(api_version: Str, fields: Box<str>, unix_micros: Option<i64>) -> Self {
        Self { api_version, unix_micros, fields: OnceCell::new(), written: fields.into() }
    }

    /// The fields. Nothing is owned by what cannot be read.
    pub(crate) fn fields(&self) -> &FieldSet {
        self.fields.get_or_init(|| {
            let written = self.written.get().map(|text| FieldSet::from_json(text));
            written.and_then(Result::ok).unwrap_or_default()
        })
    }

    /// The fields as FieldsV1.
    pub(crate) fn json(&self) -> &str {
        self.written.get_or_init(|| self.fields().to_json().into())
    }

    /// The fields as FieldsV1.
    pub(crate) fn into_json(self) -> Box<str> {
        self.json();
        self.written.into_inner().unwrap_or_default()
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        match (self.fields.get(), self.written.get()) {
            (None, Some(written)) => &**written == "{}",
            _ => self.fields().is_empty(),
        }
    }

    /// Makes the fields others.
    pub(crate) fn change(&mut self, change: impl FnOnce(FieldSet) -> FieldSet) {
        self.fields();
        self.fields = change(self.fields.take().unwrap_or_default()).into();
        self.written.take();
    }

    /// Changes the fields in place, if `change` says that it did.
    pub(crate) fn change_if(&mut self, change: impl FnOnce(&mut FieldSet) -> bool) {
        self.fields();
        if self.fields.get_mut().is_some_and(change) {
            self.written.take();
        }
    }

    /// Whether another one has the same fields of the same version.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let same = match (self.fields.get(), other.fields.get()) {
            (Some(own), Some(others)) => own == others,
            _ => self.json() == other.json(),
        };
        same && self.api_version == other.api_version
    }

    /// Whether all paths of the set are of these.
    pub(crate) fn has_all(&self, set: &FieldSet) -> bool {
        match (self.fields.get(), self.written.get()) {
            (None, Some(written)) => set.is_within(written),
            _ => set.is_subset(self.fields()),
        }
    }

    /// Whether a path of the set may be one of these, or on the way to one: if not, nothing of the set
    /// is owned, whatever the types make of the fields.
    pub(crate) fn may_meet(&self, set: &FieldSet) -> bool {
        match (self.fields.get(), self.written.get()) {
            (None, Some(written)) => set.may_meet(written),
            _ => !set.is_empty(),
        }
    }
}

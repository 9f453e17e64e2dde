//! What one manager owns. The fields of an entry are read when they are first asked for: most writes
//! have nothing to do with most managers, and leave their entries as they are.

use std::cell::OnceCell;

use pintle_value::{Map, Str, Value};

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
    /// The fields as FieldsV1, while they are known to be the same.
    written: Option<Value>,
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
        Self { api_version, unix_micros, fields: fields.into(), written: None }
    }

    /// Fields as they were written here.
    pub(crate) const fn written(api_version: Str, fields: Value, unix_micros: Option<i64>) -> Self {
        Self { api_version, unix_micros, fields: OnceCell::new(), written: Some(fields) }
    }

    /// The fields. Nothing is owned by what cannot be read.
    pub(crate) fn fields(&self) -> &FieldSet {
        self.fields.get_or_init(|| {
            let written = self.written.as_ref().map(FieldSet::from_value);
            written.and_then(Result::ok).unwrap_or_default()
        })
    }

    /// The fields as FieldsV1.
    pub(crate) fn into_value(self) -> Value {
        self.written.unwrap_or_else(|| self.fields.into_inner().unwrap_or_default().to_value())
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        match (self.fields.get(), &self.written) {
            (None, Some(Value::Object(written))) => written.is_empty(),
            _ => self.fields().is_empty(),
        }
    }

    /// Makes the fields others.
    pub(crate) fn change(&mut self, change: impl FnOnce(FieldSet) -> FieldSet) {
        self.fields();
        self.fields = change(self.fields.take().unwrap_or_default()).into();
        self.written = None;
    }

    /// Changes the fields in place, if `change` says that it did.
    pub(crate) fn change_if(&mut self, change: impl FnOnce(&mut FieldSet) -> bool) {
        self.fields();
        if self.fields.get_mut().is_some_and(change) {
            self.written = None;
        }
    }

    /// Whether another one has the same fields of the same version.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let same = match (self.fields.get(), &self.written) {
            (None, Some(written)) => other.fields().is_written(written),
            _ => self.fields() == other.fields(),
        };
        same && self.api_version == other.api_version
    }

    /// Whether a path of the set may be one of these, or on the way to one: if not, nothing of the set
    /// is owned, whatever the types make of the fields.
    pub(crate) fn may_meet(&self, set: &FieldSet) -> bool {
        match (self.fields.get(), &self.written) {
            (None, Some(Value::Object(written))) => may_meet(written, set),
            _ => !set.is_empty(),
        }
    }
}

fn may_meet(written: &Map, set: &FieldSet) -> bool {
    set.any_node(|element, member, below| match written.get(&element.to_text()) {
        Some(Value::Object(written)) => member || may_meet(written, below),
        found => found.is_some(),
    })
}

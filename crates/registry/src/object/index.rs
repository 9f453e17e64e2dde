//! The values of an object that selectors match.

use pintle_value::{Str, Value};

use crate::SelectableField;

/// The values that selectors match, apart from name and namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// Labels, sorted by key.
    pub labels: Vec<(Str, Str)>,
    /// The values of the resource's selectable fields, in the order of `Strategy::fields`.
    pub fields: Vec<Str>,
    /// Identifies these fields ([`Resource::fields_id`]), because a definition's fields can change.
    pub(crate) fields_id: u64,
    /// See [`Object::is_view_of`]; 0 if unknown.
    pub(crate) view_of: u64,
}

impl Index {
    /// Reads the index out of an object of the stored form, or out of an excerpt with the same
    /// members.
    pub fn of(object: &Value, fields: &[SelectableField]) -> Self {
        let labels = pintle_meta::object::labels(object);
        Self {
            labels: labels
                .into_iter()
                .flat_map(pintle_value::Map::iter)
                .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().into()))
                .collect(),
            fields: fields.iter().map(|field| field.value.of(object)).collect(),
            fields_id: 0,
            view_of: 0,
        }
    }

    /// Returns the value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(k, _)| k.as_str().cmp(key)).ok()?;
        Some(&self.labels[at].1)
    }
}

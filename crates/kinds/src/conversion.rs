//! Conversions between versions of a kind, without loss (DEP-03).
//!
//! Every kind has one stored form. A version in another form has two conversion functions here; a
//! version in the same form only needs another `apiVersion`.

pub(crate) mod autoscaler;
pub(crate) mod device;
pub(crate) mod event;

use pintle_value::{Map, Value};

/// The [`crate::kind::Form`] of a version with the same members as the stored form.
macro_rules! renamed {
    ($version:literal, $own:expr => $stored:expr) => {
        crate::kind::Form {
            version: $version,
            to_stored: |object| crate::conversion::set_api_version(object, $stored),
            from_stored: |object| crate::conversion::set_api_version(object, $own),
        }
    };
}
pub(crate) use renamed;

/// Sets the `apiVersion` of an object.
pub(crate) fn set_api_version(object: &mut Value, api_version: &str) {
    object.make_object().insert("apiVersion", api_version);
}

/// Renames members.
pub(crate) fn rename(
    object: &mut Map,
    names: impl IntoIterator<Item = (&'static str, &'static str)>,
) {
    for (from, to) in names {
        if let Some(value) = object.remove(from) {
            object.insert(to, value);
        }
    }
}

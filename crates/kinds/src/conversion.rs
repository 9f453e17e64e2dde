//! How objects of one version become objects of another, losing nothing (DEP-03).
//!
//! Every kind has one stored form; a version in another form has a pair of functions, given here. A
//! version of the stored form's shape needs only another `apiVersion`.

pub(crate) mod autoscaler;
pub(crate) mod device;
pub(crate) mod event;

use pintle_value::{Map, Value};

/// The [`crate::kind::Form`] of a version that has the shape of the stored form.
macro_rules! renamed {
    ($version:literal, $own:expr => $stored:expr) => {
        Form {
            version: $version,
            to_stored: |object| crate::conversion::set_api_version(object, $stored),
            from_stored: |object| crate::conversion::set_api_version(object, $own),
        }
    };
}
pub(crate) use renamed;

/// Says of an object that it is of another version.
pub(crate) fn set_api_version(object: &mut Value, api_version: &str) {
    object.make_object().insert("apiVersion", api_version);
}

/// Gives members other names.
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

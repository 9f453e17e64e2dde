//! Settings of a v1beta1 definition, which either hold for all versions or are set for each one.
//! The conversion to v1 leaves in the spec the settings that v1 cannot express
//! (`crate::v1beta1::to_v1`).

use pintle_meta::field::{Error, Errors};
use pintle_value::{Path, Value};

use crate::definition::Crd;

/// The settings: their name in the spec, and upstream's name for those of single versions.
const SETTINGS: [(&str, &str); 3] = [
    ("validation", "schemas"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
];

/// Validates the members that the conversion has left in the spec.
pub(super) fn validate(crd: Crd<'_>, spec: &Path) -> Errors {
    let mut errors = Errors::new();
    for (top, per_version) in SETTINGS {
        match crd.0.at(&["spec", top]) {
            None => {}
            Some(Value::Null) => {
                let words = format!(
                    "per-version {per_version} may not all be set to identical values (top-level {top} \
                     should be used instead)"
                );
                let versions = crd.0.at(&["spec", "versions"]).unwrap_or(&Value::Null);
                errors.push(Error::invalid(&spec.field("versions"), versions, words));
            }
            Some(_) => {
                let words =
                    format!("top-level and per-version {per_version} are mutually exclusive");
                errors.push(Error::forbidden(&spec.field(top), words));
            }
        }
    }
    if let Some(version) = crd.0.at(&["spec", "version"]) {
        let words = "must match the first version in spec.versions";
        errors.push(Error::invalid(&spec.field("version"), version, words));
    }
    errors
}

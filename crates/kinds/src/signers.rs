//! Signers of certificates: their names, the lifetime of a pod's certificate, and the annotations
//! for its user.

use pintle_meta::{field::Error, names, validation};

use crate::field::{Errors, Field};

pub(crate) const SECONDS_MIN: i64 = 3600;
/// The longest lifetime of a certificate: a day for Kubernetes' own signers, 91 days for others.
const KUBERNETES_SECONDS_MAX: i64 = 86_400;
const SECONDS_MAX: i64 = 7_862_400;

/// Checks a signer's name, such as `example.com/signer`.
pub(crate) fn signer_name(signer: &Field<'_>, errors: &mut Errors) {
    const DOMAIN_LENGTH_MAX: usize = 253;
    const LENGTH_MAX: usize = 253 + 1 + 253 + 1 + 63;
    let text = signer.text();
    if text.is_empty() {
        return errors.push(signer.required(""));
    }
    let (domain, path) = match text.split_once('/') {
        Some((domain, path)) if !path.contains('/') => (domain, path),
        _ => {
            let words =
                "must be a fully qualified domain and path of the form 'example.com/signer-name'";
            return errors.push(signer.invalid(words));
        }
    };
    if domain.len() > DOMAIN_LENGTH_MAX {
        errors.push(Error::too_long(&signer.path(), DOMAIN_LENGTH_MAX));
    }
    check_labels(signer, domain, names::dns1123_label, errors);
    if !domain.contains('.') {
        let words = "should be a domain with at least two segments separated by dots";
        errors.push(signer.invalid_as(domain, words));
    }
    check_labels(signer, path, names::dns1123_subdomain, errors);
    if text.len() > LENGTH_MAX {
        errors.push(Error::too_long(&signer.path(), LENGTH_MAX));
    }
}

/// Checks the labels between dots. Only the first invalid label is reported.
fn check_labels(field: &Field<'_>, text: &str, rule: fn(&str) -> Vec<String>, errors: &mut Errors) {
    let wrong = text.split('.').map(|label| (label, rule(label))).find(|(_, w)| !w.is_empty());
    if let Some((label, wrong)) = wrong {
        for words in wrong {
            errors.push(field.invalid_as(text, format!("validating label {label:?}: {words}")));
        }
    }
}

/// The longest lifetime of a certificate of a signer, in seconds.
pub(crate) fn seconds_max(signer: &str) -> i64 {
    let domain = signer.split('/').next().unwrap_or_default();
    let is_own = domain == "kubernetes.io" || domain.ends_with(".kubernetes.io");
    if is_own { KUBERNETES_SECONDS_MAX } else { SECONDS_MAX }
}

/// Checks the annotations of a certificate's user. Errors of keys have the path of the map.
pub(crate) fn user_annotations(map: &Field<'_>, errors: &mut Errors) {
    let mut length = 0;
    for (key, value) in map.pairs() {
        length += key.len() + value.text().len();
        // Upstream checks keys in lower case.
        let lower = key.to_lowercase();
        let wrong = names::qualified_name(&lower);
        if lower.is_empty() {
            errors.push(map.required(""));
        } else if !wrong.is_empty() {
            map.all_invalid_as(&lower, wrong, errors);
        } else if !lower.contains('/') {
            let words = "must be a domain-prefixed key (such as \"acme.io/foo\")";
            errors.push(map.invalid_as(lower, words));
        }
    }
    if length > validation::ANNOTATIONS_LENGTH_MAX {
        errors.push(Error::too_long(&map.path(), validation::ANNOTATIONS_LENGTH_MAX));
    }
}

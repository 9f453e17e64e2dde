//! Counts the certificates whose requests name a validity, and those of them that are valid for
//! about as long as requested (upstream: `countCSRDurationMetric`).

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use pintle_meta::GroupVersionResource;
use pintle_registry::Observer;
use pintle_value::Value;
use x509_parser::pem::Pem;

use crate::Measures;

/// The first part of the permitted deviation from the requested validity, in seconds: signers date
/// certificates back.
const BACKDATING: i64 = 5 * 60;
/// The second part is the requested validity divided by this number.
const PART: i64 = 20;
/// The metrics name signers with this prefix, and count all other signers as [`OTHER`].
const NAMED: &str = "kubernetes.io/";
const OTHER: &str = "other";

/// Whether this resource is a certificate signing request.
pub(crate) fn applies_to(resource: &GroupVersionResource) -> bool {
    resource.group == "certificates.k8s.io" && resource.resource == "certificatesigningrequests"
}

/// Counts the certificates that are issued for signing requests with a validity.
pub(crate) struct Issuance {
    pub(crate) measures: Arc<Measures>,
}

impl Observer for Issuance {
    fn updated(&self, old: &Value, new: &Value) {
        let Some(wanted) = old.at(&["spec", "expirationSeconds"]).and_then(Value::as_int) else {
            return;
        };
        let certificate = |request| Value::str_at(request, &["status", "certificate"]);
        if certificate(old).is_some_and(|text| !text.is_empty()) {
            return;
        }
        let Some(issued) = certificate(new).filter(|text| !text.is_empty()) else { return };
        let signer = old.str_at(&["spec", "signerName"]).unwrap_or_default();
        let signer = if signer.starts_with(NAMED) { signer } else { OTHER };
        self.measures.requested_validities.with([signer]).add(1);
        if validity(issued).is_some_and(|validity| honors(wanted, validity)) {
            self.measures.honored_validities.with([signer]).add(1);
        }
    }
}

/// The validity in seconds of the first certificate of a chain in base64-encoded PEM.
fn validity(chain: &str) -> Option<i64> {
    let pem = BASE64.decode(chain).ok()?;
    let blocks = Pem::iter_from_buffer(&pem).filter_map(Result::ok);
    let block = blocks.into_iter().find(|block| block.label == "CERTIFICATE")?;
    let validity = block.parse_x509().ok()?.validity().clone();
    validity.not_after.timestamp().checked_sub(validity.not_before.timestamp())
}

fn honors(wanted: i64, validity: i64) -> bool {
    wanted.abs_diff(validity) < (BACKDATING + wanted / PART).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_validity_is_honored_within_five_minutes_and_a_twentieth() {
        for (wanted, validity, honored) in [
            (3600, 3600, true),
            (3600, 3600 + 479, true),
            (3600, 3600 + 480, false),
            (3600, 3600 - 479, true),
            (3600, 3600 - 480, false),
            (i64::from(i32::MAX), 86_400, false),
        ] {
            assert_eq!(honors(wanted, validity), honored, "{wanted} {validity}");
        }
    }

    #[test]
    fn an_invalid_certificate_has_no_validity() {
        for chain in [
            "",
            "?",
            "AAAA",
            "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCkFBQUEKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=",
        ] {
            assert_eq!(validity(chain), None, "{chain}");
        }
    }
}

//! certificates.k8s.io.

use pintle_meta::duration;
use pintle_value::Value;

use super::column::Cell::{By, FilledOr, Labels, Text};
use super::column::Description::{Field, Words};
use super::column::{AGE, NAME, string};
use super::read::{at, items_at, str_at};
use super::{Columns, Kind};

const GROUP: &str = "certificates.k8s.io";

pub(super) const KINDS: &[Kind] = &[
    Kind::new(GROUP, "CertificateSigningRequest", CERTIFICATE_SIGNING_REQUEST),
    Kind::new(GROUP, "ClusterTrustBundle", CLUSTER_TRUST_BUNDLE),
    Kind::new(GROUP, "PodCertificateRequest", POD_CERTIFICATE_REQUEST),
];

const CERTIFICATE_SIGNING_REQUEST: Columns = &[
    NAME,
    AGE,
    string(
        "SignerName",
        FilledOr("spec.signerName", "<none>"),
        Field("certificates.v1.CertificateSigningRequestSpec", "signerName"),
    ),
    string("Requestor", Text("spec.username"), Words("Base64-encoded PKCS#10 CSR data")),
    string(
        "RequestedDuration",
        By(requested_duration),
        Field("certificates.v1.CertificateSigningRequestSpec", "expirationSeconds"),
    ),
    string(
        "Condition",
        By(signing_condition),
        Words("Conditions applied to the request, such as approval or denial."),
    ),
];

const CLUSTER_TRUST_BUNDLE: Columns = &[
    NAME,
    string(
        "SignerName",
        FilledOr("spec.signerName", "<none>"),
        Field("certificates.v1beta1.ClusterTrustBundleSpec", "signerName"),
    ),
];

const POD_CERTIFICATE_REQUEST: Columns = &[
    NAME,
    string(
        "PodName",
        Text("spec.podName"),
        Field("certificates.v1beta1.PodCertificateRequestSpec", "podName"),
    ),
    string(
        "ServiceAccountName",
        Text("spec.serviceAccountName"),
        Field("certificates.v1beta1.PodCertificateRequestSpec", "serviceAccountName"),
    ),
    string(
        "NodeName",
        Text("spec.nodeName"),
        Field("certificates.v1beta1.PodCertificateRequestSpec", "nodeName"),
    ),
    string(
        "SignerName",
        Text("spec.signerName"),
        Field("certificates.v1beta1.PodCertificateRequestSpec", "signerName"),
    ),
    string(
        "State",
        By(pod_certificate_state),
        Words("Is the request Pending, Issued, Denied, or Failed?"),
    ),
    string(
        "UnverifiedUserAnnotations",
        Labels("spec.unverifiedUserAnnotations"),
        Field("certificates.v1beta1.PodCertificateRequestSpec", "unverifiedUserAnnotations"),
    ),
];

fn requested_duration(request: &Value) -> Value {
    match at(request, "spec.expirationSeconds").and_then(Value::as_int) {
        Some(seconds) => duration::human(seconds).into(),
        None => "<none>".into(),
    }
}

/// Only the types of conditions decide here, because the status of these conditions is always
/// `True`.
fn signing_condition(request: &Value) -> Value {
    let conditions = items_at(request, "status.conditions");
    let is = |kind: &str| conditions.iter().any(|condition| str_at(condition, "type") == kind);
    let mut text = match () {
        () if is("Denied") => "Denied",
        () if is("Approved") => "Approved",
        () => "Pending",
    }
    .to_owned();
    if is("Failed") {
        text.push_str(",Failed");
    }
    if !str_at(request, "status.certificate").is_empty() {
        text.push_str(",Issued");
    }
    text.into()
}

fn pod_certificate_state(request: &Value) -> Value {
    let kinds = items_at(request, "status.conditions").iter().map(|c| str_at(c, "type"));
    let state = kinds.rev().find(|kind| matches!(*kind, "Issued" | "Denied" | "Failed"));
    state.unwrap_or("Pending").into()
}

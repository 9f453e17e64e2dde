//! certificates.k8s.io.

use pintle_meta::duration;
use pintle_value::Value;

use super::column::Cell::{By, FilledOr, Labels, Text};
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
    string("SignerName", FilledOr("spec.signerName", "<none>"), "Who is asked to sign."),
    string("Requestor", Text("spec.username"), "Who asks."),
    string("RequestedDuration", By(requested_duration), "How long it should be valid."),
    string("Condition", By(signing_condition), "What has been decided and done."),
];

const CLUSTER_TRUST_BUNDLE: Columns = &[
    NAME,
    string("SignerName", FilledOr("spec.signerName", "<none>"), "Whose certificates it trusts."),
];

const POD_CERTIFICATE_REQUEST: Columns = &[
    NAME,
    string("PodName", Text("spec.podName"), "The pod that the certificate is for."),
    string("ServiceAccountName", Text("spec.serviceAccountName"), "The pod's service account."),
    string("NodeName", Text("spec.nodeName"), "The pod's node."),
    string("SignerName", Text("spec.signerName"), "Who is asked to sign."),
    string("State", By(pod_certificate_state), "What has been decided."),
    string(
        "UnverifiedUserAnnotations",
        Labels("spec.unverifiedUserAnnotations"),
        "What the pod's author tells the signer.",
    ),
];

fn requested_duration(request: &Value) -> Value {
    match at(request, "spec.expirationSeconds").and_then(Value::as_int) {
        Some(seconds) => duration::human(seconds).into(),
        None => "<none>".into(),
    }
}

/// Conditions count by their type alone here: they are set once and never taken back.
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

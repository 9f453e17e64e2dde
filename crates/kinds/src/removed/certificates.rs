//! Signing requests, in v1beta1 (MIG-24 … MIG-27).
//!
//! A request without a signer name gets a kubelet signer if it has the form of a kubelet's
//! request, else the legacy signer. Rules that v1 added do not apply (upstream:
//! `pkg/apis/certificates/v1beta1/defaults.go`, and `getValidationOptions` of v1.21).

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use pintle_meta::field::{Error, Errors};
use pintle_value::{Map, Value};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer;

use super::{Removed, lenient, same};
use crate::{
    defaults::{
        Constant::{Text, Texts},
        Defaults,
        Row::{At, Do, Each, Empty, In, Unset},
        is_set, set,
    },
    groups::certificates::{LEGACY_SIGNER, May, keep_approval, validate_part},
    strategy::{Part, Strategy, part},
};

pub(super) const ROWS: &[Removed] = &[Removed {
    strategy: |today| Strategy {
        default: |request| set(request, DEFAULTS),
        validate: |new, old| {
            let kind = ("certificates.k8s.io", "certificatesigningrequests");
            lenient(kind, new, old, |field, words| {
                let usage = field.starts_with("spec.usages[");
                let legacy = field == "spec.signerName" && words.starts_with("the legacy ");
                usage || legacy
            })
        },
        parts: PARTS,
        ..today.clone()
    },
    ..same!(
        "certificates.k8s.io" / "v1beta1",
        "certificates",
        "certificatesigningrequests",
        "CertificateSigningRequest",
        "certificates.k8s.io" / "v1",
        19..22
    )
}];

const DEFAULTS: Defaults = &[
    In(
        "spec",
        &[Unset("usages", Texts(&["digital signature", "key encipherment"])), Do(name_signer)],
    ),
    At("status", &[Each("conditions", &[Empty("status", Text("True"))])]),
];

const PARTS: &[Part] = &[
    Part {
        prepare: keep_verdict,
        validate: |new, old| forgiven(validate_part(new, old, May::Issue)),
        ..part("status")
    },
    Part {
        validate: |new, old| forgiven(validate_part(new, old, May::Approve)),
        ..part("approval")
    },
];

/// Discards all changes of conditions if a write of `status` adds or removes a verdict.
fn keep_verdict(new: &mut Value, old: &Value) {
    let verdicts = |object: &Value, kind: &str| {
        let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array);
        let conditions = conditions.unwrap_or_default().iter();
        conditions.filter(|one| one.str_at(&["type"]) == Some(kind)).count()
    };
    let is_unchanged = |kind| verdicts(new, kind) == verdicts(old, kind);
    if is_unchanged("Approved") && is_unchanged("Denied") {
        return keep_approval(new, old);
    }
    let status = new.object_entry("status");
    match old.at(&["status", "conditions"]) {
        Some(conditions) => status.insert("conditions", conditions.clone()),
        None => status.remove("conditions"),
    };
}

/// Drops the errors that v1beta1 does not have: it allows duplicate conditions, conditions without
/// a type, and any certificate at any time.
fn forgiven(errors: Errors) -> Errors {
    let is_forgiven = |error: &Error| {
        let of_type = error.field.starts_with("status.conditions[")
            && error.field.ends_with("].type")
            && !error.detail.contains("mutually exclusive");
        let of_certificate = error.field == "status.certificate"
            && error.detail != "updates may not set certificate content";
        of_type || of_certificate
    };
    errors.into_iter().filter(|error| !is_forgiven(error)).collect()
}

fn name_signer(spec: &mut Map) {
    if is_set(spec, "signerName") {
        return;
    }
    let usages = spec.get("usages").and_then(Value::as_array).unwrap_or_default();
    let mut usages: Vec<&str> = usages.iter().filter_map(Value::as_str).collect();
    usages.sort_unstable();
    usages.dedup();
    let request = spec.get("request").and_then(Value::as_str).unwrap_or_default();
    let signer = kubelet_signer(request, &usages).unwrap_or(LEGACY_SIGNER);
    spec.insert("signerName", signer);
}

/// Returns the signer for a request of a kubelet's form; `request` is base64, and `usages` are
/// sorted (upstream: `pkg/apis/certificates/helpers.go`). The signer itself verifies the whole
/// request.
fn kubelet_signer(request: &str, usages: &[&str]) -> Option<&'static str> {
    let text = BASE64.decode(request).ok()?;
    let (_, pem) = parse_x509_pem(&text).ok().filter(|(_, pem)| pem.label == REQUEST)?;
    let (_, request) = X509CertificationRequest::from_der(&pem.contents).ok()?;
    let subject = &request.certification_request_info.subject;
    let organizations: Vec<_> = subject.iter_organization().map(|o| o.as_str()).collect();
    let name = subject.iter_common_name().last()?.as_str().ok()?;
    if organizations != [Ok("system:nodes")] || !name.starts_with("system:node:") {
        return None;
    }
    let requested = request.requested_extensions().into_iter().flatten();
    let names = requested.filter_map(|extension| match extension {
        ParsedExtension::SubjectAlternativeName(names) => Some(&names.general_names),
        _ => None,
    });
    let names: Vec<&GeneralName<'_>> = names.flatten().collect();
    let is_host = |name: &&&GeneralName<'_>| {
        matches!(name, GeneralName::DNSName(_) | GeneralName::IPAddress(_))
    };
    let is_refused =
        |name: &&GeneralName<'_>| matches!(name, GeneralName::RFC822Name(_) | GeneralName::URI(_));
    let hosts = names.iter().filter(is_host).count();
    if names.iter().any(is_refused) {
        None
    } else if hosts == 0 && usages == ["client auth", "digital signature", "key encipherment"] {
        Some("kubernetes.io/kube-apiserver-client-kubelet")
    } else if hosts > 0 && usages == ["digital signature", "key encipherment", "server auth"] {
        Some("kubernetes.io/kubelet-serving")
    } else {
        None
    }
}

const REQUEST: &str = "CERTIFICATE REQUEST";

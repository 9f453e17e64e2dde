//! The rules for CertificateSigningRequests, in upstream's order: the request, its approval
//! (`approval`), and its certificate (`status`).

use std::collections::{BTreeMap, BTreeSet};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use pintle_meta::time;
use pintle_registry::request::Now;
use pintle_value::Value;

use crate::{
    checks::items,
    field::{Errors, Field},
    pem,
    signers::signer_name,
};

pub(crate) const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
const EXPIRATION_SECONDS_MIN: i64 = 600;
/// Conditions whose only allowed status is `True`.
const FINAL: &[&str] = &["Approved", "Denied", "Failed"];
const VERDICTS: &[&str] = &["Approved", "Denied"];

const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// Sets the times of conditions whose writers omit them.
pub(super) fn note_time(new: &mut Value, old: Option<&Value>, now: Now) {
    let Some(old) = old else { return };
    let now = Value::from(time::format(now.unix_seconds() * time::SECOND));
    let same =
        |one: &Value| ["type", "status"].map(|member| one.str_at(&[member]).map(str::to_owned));
    // Of several stored conditions with the same type and status, the first decides.
    let stored: BTreeMap<_, &Value> =
        items(old, &["status", "conditions"]).iter().rev().map(|one| (same(one), one)).collect();
    let list = new.object_entry("status").get_mut("conditions").and_then(Value::as_array_mut);
    for condition in list.into_iter().flatten() {
        let since = stored.get(&same(condition)).and_then(|other| other.get("lastTransitionTime"));
        let since = since.filter(|time| !time.is_null()).cloned().unwrap_or_else(|| now.clone());
        let Some(condition) = condition.as_object_mut() else { continue };
        for (member, time) in [("lastUpdateTime", now.clone()), ("lastTransitionTime", since)] {
            if condition.get(member).is_none_or(Value::is_null) {
                condition.insert(member, time);
            }
        }
    }
}

/// Validates a new request.
pub(super) fn validate(request: &Value) -> Errors {
    let mut errors = Errors::new();
    let request = Field::root(request);
    let spec = request.get("spec");
    let pem = decoded(&spec.get("request"));
    if pem::kinds(&pem).first().is_none_or(|kind| *kind != "CERTIFICATE REQUEST") {
        let words = "PEM block type must be CERTIFICATE REQUEST";
        errors.push(spec.get("request").invalid(words));
    }
    let usages = spec.get("usages");
    if usages.is_empty() {
        errors.push(usages.required(""));
    }
    for usage in spec.items("usages").filter(|usage| !USAGES.contains(&usage.text())) {
        errors.push(usage.not_supported(USAGES));
    }
    let mut seen = BTreeSet::new();
    for usage in spec.items("usages") {
        if !seen.insert(usage.text().to_owned()) {
            errors.push(usage.duplicate());
        }
    }
    let signer = spec.get("signerName");
    if signer.text() == LEGACY_SIGNER {
        let words = "the legacy signerName is not allowed via this API version";
        errors.push(signer.invalid(words));
    } else {
        signer_name(&signer, &mut errors);
    }
    let seconds = spec.get("expirationSeconds");
    if seconds.int().is_some_and(|seconds| seconds < EXPIRATION_SECONDS_MIN) {
        let words = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(seconds.invalid(words));
    }
    errors
}

/// Validates a trust bundle, except the contents of its certificates.
pub(super) fn validate_bundle(bundle: &Value) -> Errors {
    let mut errors = Errors::new();
    let bundle = Field::root(bundle);
    let metadata = bundle.get("metadata");
    let spec = bundle.get("spec");
    let (name, signer) = (metadata.get("name"), spec.get("signerName"));
    if signer.is_empty() {
        if name.text().contains(':') {
            let words = r#"ClusterTrustBundle without signer name must not have ":" in its name"#;
            errors.push(name.invalid(words));
        }
    } else {
        let prefix = format!("{}:", signer.text().replace('/', ":"));
        if !name.text().starts_with(&prefix) {
            let signer = signer.text();
            let words = format!(
                "ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"
            );
            errors.push(name.invalid(words));
        }
        signer_name(&signer, &mut errors);
    }
    let anchors = spec.get("trustBundle");
    let text = anchors.text();
    if pem::kinds(text).is_empty() {
        let words = "must contain at least one trust anchor";
        errors.push(anchors.invalid_as("<value omitted>", words));
    }
    errors
}

/// The changes that writers of a subresource may make.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum May {
    /// Approve or deny: writers of `approval`.
    Approve,
    /// Set the certificate: writers of `status`.
    Issue,
}

/// Restores the stored approval: writers of `status` cannot change it.
pub(crate) fn keep_approval(new: &mut Value, old: &Value) {
    let of = |object: &Value, kind: &str| -> Vec<Value> {
        let list = items(object, &["status", "conditions"]).iter();
        list.filter(|one| one.str_at(&["type"]) == Some(kind)).cloned().collect()
    };
    for kind in VERDICTS {
        let stored = of(old, kind);
        if stored.len() != of(new, kind).len() {
            continue;
        }
        let mut stored = stored.into_iter();
        let list = new.object_entry("status").get_mut("conditions").and_then(Value::as_array_mut);
        for condition in list.into_iter().flatten() {
            if condition.str_at(&["type"]) == Some(kind)
                && let Some(before) = stored.next()
            {
                *condition = before;
            }
        }
    }
}

/// Validates an update of a subresource.
pub(crate) fn validate_part(new: &Value, old: &Value, may: May) -> Errors {
    let mut errors = Errors::new();
    let request = Field::root(new);
    let status = request.get("status");
    check_conditions(&status, old, &mut errors);
    let certificate = status.get("certificate");
    let stored = old.at(&["status", "certificate"]);
    let is_new = certificate.some() != stored;
    if is_new && let Some(words) = wrong_certificate(&decoded(&certificate)) {
        errors.push(certificate.invalid_as("<certificate data>", words));
    }
    let list = status.get("conditions");
    let of = |object: &Value, kind: &str| -> Vec<Value> {
        let list = items(object, &["status", "conditions"]).iter();
        list.filter(|one| one.str_at(&["type"]) == Some(kind)).cloned().collect()
    };
    for kind in FINAL.iter().filter(|kind| of(new, kind).len() < of(old, kind).len()) {
        let words = format!("updates may not remove a condition of type {kind:?}");
        errors.push(list.forbidden(words));
    }
    for kind in VERDICTS.iter().filter(|_| may != May::Approve) {
        if of(new, kind).len() > of(old, kind).len() {
            let words = format!("updates may not add a condition of type {kind:?}");
            errors.push(list.forbidden(words));
        }
    }
    if is_new && may != May::Issue {
        errors.push(certificate.forbidden("updates may not set certificate content"));
    } else if is_new && stored.and_then(Value::as_str).is_some_and(|text| !text.is_empty()) {
        errors.push(certificate.forbidden("updates may not modify existing certificate content"));
    }
    errors
}

fn check_conditions(status: &Field<'_>, old: &Value, errors: &mut Errors) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for kind in items(old, &["status", "conditions"]).iter().filter_map(|one| one.str_at(&["type"]))
    {
        *counts.entry(kind).or_default() += 1;
    }
    let stored = |kind: &str| counts.get(kind).copied().unwrap_or_default();
    let were_both = VERDICTS.iter().all(|kind| stored(kind) > 0);
    let mut seen = BTreeSet::new();
    for condition in status.items("conditions") {
        let (kind, state) = (condition.get("type"), condition.get("status"));
        if kind.is_empty() && stored("") == 0 {
            errors.push(kind.required(""));
        }
        let allowed: &[&str] =
            if FINAL.contains(&kind.text()) { &["True"] } else { &["False", "True", "Unknown"] };
        crate::rules::choice(&state, allowed, errors);
        let has = |other: &str| seen.contains(other);
        let is_split = match kind.text() {
            "Approved" => has("Denied"),
            "Denied" => has("Approved"),
            _ => false,
        };
        if is_split && !were_both {
            let words = "Approved and Denied conditions are mutually exclusive";
            errors.push(status.get("conditions").of(kind.value()).invalid(words));
        }
        if !seen.insert(kind.text().to_owned()) && stored(kind.text()) < 2 {
            errors.push(kind.duplicate());
        }
    }
}

/// Decodes base64 text.
fn decoded(field: &Field<'_>) -> String {
    let bytes = BASE64.decode(field.text()).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

fn wrong_certificate(pem: &str) -> Option<String> {
    if pem.is_empty() {
        return None;
    }
    let kinds = pem::kinds(pem);
    if let Some(other) = kinds.iter().find(|kind| **kind != "CERTIFICATE") {
        return Some(format!("only CERTIFICATE PEM blocks are allowed, found {other:?}"));
    }
    kinds.is_empty().then(|| "must contain at least one CERTIFICATE PEM block".to_owned())
}

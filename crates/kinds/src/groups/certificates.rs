//! `certificates.k8s.io`: signing requests; trust bundles and pod certificates are off by default.

mod pods;
mod signing;

use pintle_meta::User;
use pintle_registry::{NameRule, Owned, SelectableField};
use pintle_value::Value;

use crate::{
    checks::{frozen, unchanged},
    conversion::renamed,
    field::{Errors, Field},
    kind::{Kind, kind},
    strategy::{
        AS_UPDATE, AS_UPDATE_AND_NEW, PLAIN, Part, Strategy, WITH_STATUS, keep_metadata, part,
        selectable,
    },
};

pub(crate) use signing::{LEGACY_SIGNER, May, keep_approval, validate_part};

const CERTIFICATES: &str = "certificates.k8s.io";

pub(crate) const KINDS: &[Kind] = &[
    kind(CERTIFICATES, "certificatesigningrequests", SIGNING_REQUEST),
    Kind {
        conversions: &[renamed!(
            "v1alpha1",
            "certificates.k8s.io/v1alpha1" => "certificates.k8s.io/v1beta1"
        )],
        ..kind(CERTIFICATES, "clustertrustbundles", TRUST_BUNDLE)
    },
    kind(CERTIFICATES, "podcertificaterequests", POD_REQUEST),
];

const SIGNER: SelectableField = selectable!("spec.signerName" at "spec"."signerName");

const SIGNING_REQUEST: Strategy = Strategy {
    owned: &[
        ("", Owned::Except(&[&["spec"], &["status"]])),
        ("approval", Owned::Except(&[&["spec"], &["status", "certificate"]])),
        ("status", Owned::Except(&[&["spec"], &["status", "conditions"]])),
    ],
    name: NameRule::PathSegment,
    fields: &[SIGNER],
    note_origin: |request, origin| note_requester(request, origin.author),
    // After the create only the metadata of a request can change.
    prepare_update: |new, old| {
        let spec = old.get("spec").cloned().unwrap_or_default();
        new.make_object().insert("spec", spec);
    },
    note_time: signing::note_time,
    validate: |new, old| match old {
        None => signing::validate(new),
        Some(_) => Errors::new(),
    },
    declared_rules: false,
    parts: &[
        Part {
            metadata: Some(AS_UPDATE_AND_NEW),
            prepare: signing::keep_approval,
            validate: |new, old| signing::validate_part(new, old, signing::May::Issue),
            ..part("status")
        },
        Part {
            metadata: Some(AS_UPDATE_AND_NEW),
            validate: |new, old| signing::validate_part(new, old, signing::May::Approve),
            ..part("approval")
        },
    ],
    ..WITH_STATUS
};

/// Sets the requesting user, on whom signers base their decision.
fn note_requester(request: &mut Value, user: &User) {
    let spec = request.object_entry("spec");
    for member in ["username", "uid", "groups", "extra"] {
        spec.remove(member);
    }
    for (member, text) in [("username", &user.name), ("uid", &user.uid)] {
        if !text.is_empty() {
            spec.insert(member, text.as_str());
        }
    }
    if !user.groups.is_empty() {
        spec.insert("groups", user.groups.clone());
    }
    for (key, values) in &user.extra {
        spec.entry_object("extra").insert(key.as_str(), values.clone());
    }
}

const TRUST_BUNDLE: Strategy = Strategy {
    name: NameRule::Custom(trust_bundle_rule),
    unconditional_update: false,
    fields: &[SIGNER],
    validate: |new, old| {
        let mut errors = signing::validate_bundle(new);
        errors.extend(unchanged(new, old, &[frozen(&["spec", "signerName"])]));
        errors
    },
    ..PLAIN
};

/// Checks the subdomain in a bundle's name: `<signer with colons for slashes>:<subdomain>`, or only
/// a subdomain if there is no signer.
fn trust_bundle_rule(name: &str, prefix: bool) -> Vec<String> {
    let last = name.rsplit_once(':').map_or(name, |(_, last)| last);
    pintle_meta::names::subdomain_rule(last, prefix)
}

const POD_REQUEST: Strategy = Strategy {
    metadata: AS_UPDATE,
    unconditional_update: false,
    declared_rules: false,
    fields: &[
        SIGNER,
        selectable!("spec.podName" at "spec"."podName"),
        selectable!(selective "spec.nodeName" at "spec"."nodeName"),
    ],
    validate: |new, old| match old {
        None => pods::validate(&Field::root(new).get("spec")),
        Some(_) => unchanged(new, old, &[frozen(&["spec"])]),
    },
    parts: &[Part { prepare: keep_metadata, validate: pods::validate_status, ..part("status") }],
    ..WITH_STATUS
};

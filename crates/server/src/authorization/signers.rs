//! The admission plugins of certificate signers (`CertificateApproval`, `CertificateSigning`,
//! `CertificateSubjectRestriction`, `ClusterTrustBundleAttest`).

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pintle_admission::forbidden;
use pintle_auth::certificate_request::{API_CLIENT, CertificateRequest};
use pintle_auth::{Attributes, Authorizer, Objects, Subject, User};
use pintle_meta::Status;
use pintle_meta::quote::quote;
use pintle_registry::Registry;
use pintle_registry::admission::{self, Admission, Hook, Hooks, Operation, Waited};
use pintle_value::Value;

pub(super) const GROUP: &str = "certificates.k8s.io";

/// A plugin that authorizes the writer for a signer.
pub(crate) struct Signers {
    authorizer: Arc<dyn Authorizer>,
    /// Returns the signer's name, the verb, and the noun of the refusal's text; `None` if the write
    /// needs no permission.
    required: fn(&admission::Attributes<'_>) -> Option<(String, &'static str, &'static str)>,
}

/// The plugins by name.
pub(crate) fn plugins(authorizer: &Arc<dyn Authorizer>) -> [(&'static str, Box<dyn Admission>); 4] {
    let signers = |required| Box::new(Signers { authorizer: authorizer.clone(), required });
    [
        ("CertificateApproval", signers(approves)),
        ("CertificateSigning", signers(signs)),
        ("ClusterTrustBundleAttest", signers(attests)),
        ("CertificateSubjectRestriction", Box::new(SubjectRestriction)),
    ]
}

impl Admission for Signers {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::ValidateRegistered])
    }

    fn validate_registered<'a>(
        &'a self,
        write: &'a admission::Attributes<'a>,
        _: &'a Registry,
    ) -> Option<Waited<'a, ()>> {
        let (signer, verb, what) = (self.required)(write)?;
        Some(Box::pin(async move {
            if may_act(&*self.authorizer, write.user, verb, &signer).await {
                return Ok(());
            }
            let signer = quote(&signer);
            let why = format!("user not permitted to {verb} {what} with signerName {signer}");
            Err(forbidden(write, write.object.unwrap_or(&Value::Null), &why))
        }))
    }
}

/// Authorizes a verb on a signer, by its name or on all signers of its domain (`example.com/*`).
pub(super) async fn may_act(
    authorizer: &dyn Authorizer,
    user: &User,
    verb: &str,
    signer: &str,
) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    for name in [signer, &format!("{domain}/*")] {
        let subject = Subject::Resource(Objects {
            group: GROUP,
            version: "*",
            resource: "signers",
            name,
            ..Objects::default()
        });
        if authorizer.authorize(&Attributes { user, verb, subject }).await.allowed() {
            return true;
        }
    }
    false
}

/// Decodes the request of a CertificateSigningRequest.
pub(super) fn requested(request: &Value) -> Result<CertificateRequest, pintle_auth::Error> {
    let text = request.str_at(&["spec", "request"]).unwrap_or_default();
    CertificateRequest::from_pem(&STANDARD.decode(text).unwrap_or_default())
}

fn signer(object: &Value) -> String {
    object.str_at(&["spec", "signerName"]).unwrap_or_default().to_owned()
}

/// The stored request, if the write updates its subresource `part`. The writer cannot change the
/// stored signer.
fn request_before<'a>(write: &admission::Attributes<'a>, part: &str) -> Option<&'a Value> {
    let of = &write.resource.resource;
    let is_it = of.group == GROUP && of.resource == "certificatesigningrequests";
    let updates = write.operation == Operation::Update && write.subresource == part;
    if is_it && updates { write.old() } else { None }
}

fn approves(write: &admission::Attributes<'_>) -> Option<(String, &'static str, &'static str)> {
    Some((signer(request_before(write, "approval")?), "approve", "requests"))
}

fn signs(write: &admission::Attributes<'_>) -> Option<(String, &'static str, &'static str)> {
    let old = request_before(write, "status")?;
    let changes = ["certificate", "conditions"].into_iter().any(|member| {
        write.object.and_then(|new| new.at(&["status", member])) != old.at(&["status", member])
    });
    changes.then(|| (signer(old), "sign", "requests"))
}

fn attests(write: &admission::Attributes<'_>) -> Option<(String, &'static str, &'static str)> {
    let of = &write.resource.resource;
    let is_it = of.group == GROUP && of.resource == "clustertrustbundles";
    let bundle = write.object.filter(|_| is_it)?;
    let signer = signer(bundle);
    // An update that changes only metadata needs no new attestation.
    let same = write.old().is_some_and(|old| old.get("spec") == bundle.get("spec"));
    (!signer.is_empty() && !same).then_some((signer, "attest", "bundles"))
}

/// CertificateSubjectRestriction: refuses client certificates in `system:masters`.
struct SubjectRestriction;

impl Admission for SubjectRestriction {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::Validate])
    }

    fn validate(&self, write: &admission::Attributes<'_>, _: &Registry) -> Result<(), Status> {
        let of = &write.resource.resource;
        let is_it = of.group == GROUP && of.resource == "certificatesigningrequests";
        let creates = write.operation == Operation::Create && write.subresource.is_empty();
        let Some(request) = write.object.filter(|_| is_it && creates) else {
            return Ok(());
        };
        if signer(request) != API_CLIENT {
            return Ok(());
        }
        let parsed = requested(request).map_err(|why| {
            forbidden(
                write,
                write.object.unwrap_or(&Value::Null),
                &format!("failed to parse CSR: {why}"),
            )
        })?;
        if parsed.subject.organizations().any(|group| group == pintle_auth::MASTERS) {
            let why =
                format!("use of {API_CLIENT} signer with system:masters group is not allowed");
            return Err(forbidden(write, write.object.unwrap_or(&Value::Null), &why));
        }
        Ok(())
    }
}

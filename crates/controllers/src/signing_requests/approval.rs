//! Approval of nodes' requests for client certificates, if the requester may `create`
//! `certificatesigningrequests/nodeclient`, or `selfnodeclient` for a certificate of its own name.

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_auth::certificate_request::{CertificateRequest, KUBELET_CLIENT};
use pintle_auth::{Attributes, Authorizer, Decision, Objects, Subject, User};
use pintle_meta::Status;
use pintle_registry::Resource;
use pintle_value::{Map, Value};

use super::{add_condition, current, has, pem, requests, usages, write};
use crate::reconcile::{Progress, Reconciler, Source, itself, work};
use crate::{Environment, until};

/// Approves requests until shutdown.
pub async fn run(
    environment: Environment,
    authorizer: Arc<dyn Authorizer>,
    shutdown: impl Future<Output = ()>,
) {
    let Some(requests) = requests(&environment) else { return };
    let approver = Approver { environment: &environment, authorizer, requests };
    until(shutdown, work(&environment, &approver)).await;
}

struct Approver<'e> {
    environment: &'e Environment,
    authorizer: Arc<dyn Authorizer>,
    requests: Arc<Resource>,
}

impl Reconciler for Approver<'_> {
    fn purpose(&self) -> &'static str {
        "approve a signing request"
    }

    fn queue(&self) -> &'static str {
        "certificate"
    }

    fn sources(&self) -> Vec<Source> {
        let of_kubelets = format!("spec.signerName={KUBELET_CLIENT}");
        vec![Source::new(&self.requests, itself).with_fields(of_kubelets)]
    }

    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Progress, Status>> {
        Box::pin(self.decide(name))
    }
}

impl Approver<'_> {
    async fn decide(&self, name: &str) -> Result<Progress, Status> {
        let current = current(self.environment, &self.requests, name)?;
        let Some(mut request) = current.filter(is_open) else { return Ok(Progress::Done) };
        let Some(whose) = recognize(&request) else { return Ok(Progress::Done) };
        let user = requester(&request);
        for (subresource, message) in whose {
            if self.may_have(&user, subresource).await {
                add_condition(&mut request, "Approved", "AutoApproved", message);
                write(self.environment, &self.requests, "approval", &request).await?;
                break;
            }
        }
        Ok(Progress::Done)
    }

    async fn may_have(&self, user: &User, subresource: &str) -> bool {
        let subject = Subject::Resource(Objects {
            group: "certificates.k8s.io",
            resource: "certificatesigningrequests",
            subresource,
            version: "*",
            ..Objects::default()
        });
        let attributes = Attributes { user, verb: "create", subject };
        let ruling = self.authorizer.authorize(&attributes).await;
        ruling.decision == Decision::Allow
    }
}

/// Whether the request is neither approved, denied nor signed.
fn is_open(request: &Value) -> bool {
    let certificate = request.str_at(&["status", "certificate"]).unwrap_or_default();
    certificate.is_empty() && !has(request, "Approved") && !has(request, "Denied")
}

/// Returns the subresources of which the requester must be allowed one, each with the message of
/// the approval; `None` for other requests.
fn recognize(request: &Value) -> Option<&'static [(&'static str, &'static str)]> {
    const WHOSE: &[(&str, &str)] = &[
        (
            "selfnodeclient",
            "Auto approving self kubelet client certificate after SubjectAccessReview.",
        ),
        ("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview."),
    ];
    // The field selector admits unreadable requests, too, so the signer is checked here.
    if request.str_at(&["spec", "signerName"]) != Some(KUBELET_CLIENT) {
        return None;
    }
    let wanted = CertificateRequest::from_pem(&pem(request, &["spec", "request"])).ok()?;
    wanted.check(KUBELET_CLIENT, &usages(request))?.ok()?;
    let is_its_own = request.str_at(&["spec", "username"]) == Some(wanted.subject.common_name());
    Some(if is_its_own { WHOSE } else { &WHOSE[1..] })
}

/// Returns the requester.
fn requester(request: &Value) -> User {
    let text = |member| request.str_at(&["spec", member]).unwrap_or_default().to_owned();
    let texts = |list: &Value| {
        let list = list.as_array().unwrap_or_default();
        list.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let extra = request.at(&["spec", "extra"]).and_then(Value::as_object);
    User {
        name: text("username"),
        uid: text("uid"),
        groups: request.at(&["spec", "groups"]).map(texts).unwrap_or_default(),
        extra: extra
            .into_iter()
            .flat_map(Map::iter)
            .map(|(key, values)| (key.to_string(), texts(values)))
            .collect(),
    }
}

//! Requests that are approved get their certificates from the known signers.

use std::future::Future;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::future::BoxFuture;
use pintle_auth::certificate_request::CertificateRequest;
use pintle_meta::Status;
use pintle_registry::Resource;
use pintle_registry::request::Now;
use pintle_value::Value;

use super::{add_condition, current, has, pem, requests, usages, write};
use crate::reconcile::{Progress, Reconciler, Source, itself, work};
use crate::{Environment, until};

/// How long a certificate lives if nothing is said, and at most.
const SECONDS_MAX: i64 = 365 * 24 * 60 * 60;
/// And at least.
const SECONDS_MIN: i64 = 10 * 60;

/// Makes certificates.
pub trait Signer: Send + Sync {
    /// A certificate as PEM, or why there is none.
    fn sign(&self, order: &Order<'_>) -> Result<String, String>;
}

/// A certificate to be made.
pub struct Order<'a> {
    /// What was asked for.
    pub request: &'a CertificateRequest,
    /// For what it may be used.
    pub usages: &'a [&'a str],
    /// How long it lives.
    pub seconds: i64,
    /// When it is made.
    pub now: Now,
}

/// Signs what is approved until told to stop.
pub async fn run(
    environment: Environment,
    signer: Arc<dyn Signer>,
    shutdown: impl Future<Output = ()>,
) {
    let Some(requests) = requests(&environment) else { return };
    let signing = Signing { environment: &environment, signer, requests };
    until(shutdown, work(&environment, &signing)).await;
}

struct Signing<'e> {
    environment: &'e Environment,
    signer: Arc<dyn Signer>,
    requests: Arc<Resource>,
}

impl Reconciler for Signing<'_> {
    fn purpose(&self) -> &'static str {
        "sign a signing request"
    }

    fn queue(&self) -> &'static str {
        "certificate"
    }

    fn sources(&self) -> Vec<Source> {
        vec![Source::new(&self.requests, itself)]
    }

    fn settle<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Progress, Status>> {
        Box::pin(self.look_at(name))
    }
}

impl Signing<'_> {
    async fn look_at(&self, name: &str) -> Result<Progress, Status> {
        let current = current(self.environment, &self.requests, name)?;
        let Some(mut request) = current.filter(is_due) else { return Ok(Progress::Done) };
        match self.outcome(&request) {
            None => return Ok(Progress::Done),
            Some(Ok(certificate)) => {
                let certificate = BASE64.encode(certificate);
                request.object_entry("status").insert("certificate", certificate);
            }
            Some(Err(why)) => {
                add_condition(&mut request, "Failed", "SignerValidationFailure", &why);
            }
        }
        write(self.environment, &self.requests, "status", &request).await?;
        Ok(Progress::Done)
    }

    /// The certificate, or why it is refused; `None` where that is another signer's to say, or where
    /// nothing can be said.
    fn outcome(&self, request: &Value) -> Option<Result<String, String>> {
        let usages = usages(request);
        let signer = request.str_at(&["spec", "signerName"]).unwrap_or_default();
        // Neither can change while the request is there, so there is no use in trying again.
        let unusable = |why: String| {
            tracing::warn!(name = pintle_meta::object::name(request), why, "cannot sign a request");
        };
        let wanted = CertificateRequest::from_pem(&pem(request, &["spec", "request"]));
        let wanted = wanted.map_err(|why| unusable(why.to_string())).ok()?;
        if let Err(why) = wanted.check(signer, &usages)? {
            return Some(Err(why));
        }
        let asked = request.at(&["spec", "expirationSeconds"]).and_then(Value::as_int);
        let seconds = asked.unwrap_or(SECONDS_MAX).clamp(SECONDS_MIN, SECONDS_MAX);
        let now = (self.environment.clock)();
        let order = Order { request: &wanted, usages: &usages, seconds, now };
        self.signer.sign(&order).map_err(unusable).ok().map(Ok)
    }
}

/// Whether it is approved, and has neither its certificate nor failed.
fn is_due(request: &Value) -> bool {
    let certificate = request.str_at(&["status", "certificate"]).unwrap_or_default();
    certificate.is_empty()
        && has(request, "Approved")
        && !has(request, "Denied")
        && !has(request, "Failed")
}

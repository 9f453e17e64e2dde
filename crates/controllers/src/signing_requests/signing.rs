//! Signing of approved requests by the known signers.

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

/// The default and longest lifetime of a certificate.
const SECONDS_MAX: i64 = 365 * 24 * 60 * 60;
/// The shortest lifetime of a certificate.
const SECONDS_MIN: i64 = 10 * 60;

/// Signs certificates.
pub trait Signer: Send + Sync {
    /// Returns the certificate as PEM, or why it cannot be made.
    fn sign(&self, order: &Order<'_>) -> Result<String, String>;
}

/// An order for a certificate.
pub struct Order<'a> {
    /// The request.
    pub request: &'a CertificateRequest,
    /// The usages of the key.
    pub usages: &'a [&'a str],
    /// The lifetime in seconds.
    pub seconds: i64,
    /// The time of signing.
    pub now: Now,
}

/// Signs approved requests until shutdown.
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

    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Progress, Status>> {
        Box::pin(self.sign(name))
    }
}

impl Signing<'_> {
    async fn sign(&self, name: &str) -> Result<Progress, Status> {
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

    /// Returns the certificate, or why it is refused; `None` if another signer is responsible, or
    /// if the request is unusable.
    fn outcome(&self, request: &Value) -> Option<Result<String, String>> {
        let usages = usages(request);
        let signer = request.str_at(&["spec", "signerName"]).unwrap_or_default();
        // Neither the request nor the signer changes during the request's life, so there is no
        // retry.
        let unusable = |why: String| {
            tracing::warn!(
                name = pintle_meta::object::name(request),
                why,
                "cannot sign a certificate request; it stays unsigned"
            );
        };
        let wanted = CertificateRequest::from_pem(&pem(request, &["spec", "request"]));
        let wanted = wanted.map_err(|why| unusable(why.to_string())).ok()?;
        if let Err(why) = wanted.check(signer, &usages)? {
            return Some(Err(why));
        }
        let requested = request.at(&["spec", "expirationSeconds"]).and_then(Value::as_int);
        let seconds = requested.unwrap_or(SECONDS_MAX).clamp(SECONDS_MIN, SECONDS_MAX);
        let now = (self.environment.clock)();
        let order = Order { request: &wanted, usages: &usages, seconds, now };
        self.signer.sign(&order).map_err(unusable).ok().map(Ok)
    }
}

/// Whether a request is approved, and neither signed nor failed.
fn is_due(request: &Value) -> bool {
    let certificate = request.str_at(&["status", "certificate"]).unwrap_or_default();
    certificate.is_empty()
        && has(request, "Approved")
        && !has(request, "Denied")
        && !has(request, "Failed")
}

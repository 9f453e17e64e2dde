//! Probes the availability of extension API servers.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::Request;
use http::header::HOST;
use http_body_util::Empty;
use pintle_auth::{MASTERS, User};
use pintle_controllers::availability::Prober;
use pintle_value::Value;

use super::{Aggregation, ApiService, identity};

/// Upstream's timeout.
const TIMEOUT: Duration = Duration::from_secs(5);

impl Prober for Aggregation {
    fn probe<'a>(&'a self, api_service: &'a Value) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            match ApiService::read(api_service) {
                None => Ok(()), // served by this server itself
                Some(service) => self.ask(&service).await,
            }
        })
    }
}

impl Aggregation {
    /// Requests the version's discovery document, which every server has, as a superuser.
    async fn ask(&self, service: &ApiService) -> Result<(), String> {
        let backend = self.backend(service).map_err(|why| why.to_string())?;
        let path = match service.group.as_str() {
            "" => format!("/api/{}", service.version),
            group => format!("/apis/{group}/{}", service.version),
        };
        let url = format!("https://{}{path}", backend.authority);
        let failed = |why: String| format!("failing or missing response from {url}: {why}");
        let request = Request::get(&path).header(HOST, &backend.authority);
        let mut request =
            request.body(Empty::<Bytes>::new()).map_err(|why| failed(why.to_string()))?;
        identity::write(&Self::itself(), request.headers_mut()).map_err(failed)?;
        let unanswered = |why: &str| failed(format!("Get \"{url}\": {why}"));
        match tokio::time::timeout(TIMEOUT, self.extensions.ask(&backend, request)).await {
            Err(_) => Err(unanswered(
                "context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
            )),
            Ok(Err(failure)) => Err(unanswered(&failure.to_string())),
            Ok(Ok(answer)) if answer.status().is_success() => Ok(()),
            Ok(Ok(answer)) => {
                Err(failed(format!("bad status from {url}: {}", answer.status().as_u16())))
            }
        }
    }

    /// The user of this server's own requests.
    pub(super) fn itself() -> User {
        User {
            name: "system:kube-aggregator".into(),
            groups: vec![MASTERS.into()],
            ..User::default()
        }
    }
}

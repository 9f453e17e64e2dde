//! Relays upgrades: the backend's 101 goes to the client, and then bytes in both directions.
//!
//! If a backend does not switch protocols, its response is relayed like any other, and the
//! connection to the backend ends. Neither side ever gets the other's connection then
//! (CVE-2018-1002105).

use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, StatusCode};
use http_body_util::Empty;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use pintle_streams::{Coupling, Pipe};

use super::{Session, headers};
use crate::backends::{self, Backend, Failure};
use crate::body::{Body, UpgradedSession};
use crate::lifecycle::Stopping;
use crate::respond::Response;

/// The time for reading the response of a backend that does not switch (upstream's value).
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of such a response that are relayed.
const REFUSAL_BYTES_MAX: usize = 1 << 20;

/// A backend's response to an upgrade.
pub(crate) enum UpgradeResponse {
    /// The backend switches protocols.
    Switched(backends::Response),
    /// The backend does not switch; the response is for the client.
    Refused(Response),
}

/// The connection of a client that requests an upgrade.
pub(crate) fn client(head: &Parts) -> Option<OnUpgrade> {
    let client = head.extensions.get::<OnUpgrade>().cloned();
    client.filter(|_| headers::requests_upgrade(&head.headers))
}

/// Forwards the client's own upgrade. The error text is upstream's.
pub(crate) async fn forward(
    client: OnUpgrade,
    backend: &Backend,
    request: Request<Empty<Bytes>>,
    stopping: Stopping,
) -> Result<Response, String> {
    Ok(match ask(backend, request).await? {
        UpgradeResponse::Switched(answer) => switch(client, answer, stopping),
        UpgradeResponse::Refused(response) => response,
    })
}

/// Requests an upgrade from a backend. The error text is upstream's.
pub(crate) async fn ask(
    backend: &Backend,
    request: Request<Empty<Bytes>>,
) -> Result<UpgradeResponse, String> {
    let answer = backend.ask(request).await.map_err(|failure| match failure {
        failure @ (Failure::Exchange(_) | Failure::Reset) => failure.to_string(),
        failure => format!("error dialing backend: {failure}"),
    })?;
    match answer.status() {
        StatusCode::SWITCHING_PROTOCOLS => Ok(UpgradeResponse::Switched(answer)),
        code if code.as_u16() < 400 => {
            Err(format!("invalid upgrade response: status code {}", code.as_u16()))
        }
        _ => Ok(UpgradeResponse::Refused(refusal(answer).await)),
    }
}

/// Reads the response of a backend that does not switch, within the time limit.
async fn refusal(answer: backends::Response) -> Response {
    let (mut head, body) = answer.into_parts();
    let mut text = Vec::new();
    let read = backends::read_start(body, &mut text, REFUSAL_BYTES_MAX);
    let _late = tokio::time::timeout(REFUSAL_TIMEOUT, read).await.is_err();
    headers::remove_hop_by_hop(&mut head.headers);
    headers::remove_body_length(&mut head.headers);
    let mut response = Response::new(Body::full(text));
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers;
    response
}

/// Relays the backend's 101 to the client; later bytes pass unchanged.
fn switch(client: OnUpgrade, answer: backends::Response, stopping: Stopping) -> Response {
    let mut headers = answer.headers().clone();
    headers::remove_body_length(&mut headers);
    let session = run(client, answer, Pipe::default(), stopping);
    let mut response = Response::new(Body::upgraded(session));
    response.body_mut().begin_session();
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.headers_mut() = headers;
    response
}

/// The session after a switch of protocols: relays bytes between client and backend through a
/// coupling.
fn run(
    client: OnUpgrade,
    answer: backends::Response,
    coupling: impl Coupling + 'static,
    stopping: Stopping,
) -> UpgradedSession {
    Box::pin(async move {
        match client.await {
            Ok(client) => couple(TokioIo::new(client), answer, coupling, stopping).await,
            Err(error) => tracing::debug!(%error, "the client did not switch protocols"),
        }
    })
}

/// Moves bytes between a client and a backend after the upgrade.
pub(crate) async fn couple(
    client: TokioIo<hyper::upgrade::Upgraded>,
    mut answer: backends::Response,
    mut coupling: impl Coupling,
    mut stopping: Stopping,
) {
    match hyper::upgrade::on(&mut answer).await {
        Ok(backend) => {
            let mut session = Session::new(client, TokioIo::new(backend));
            session.run(&mut coupling, &mut stopping).await;
            session.finish(&mut coupling, &mut stopping).await;
        }
        Err(error) => tracing::debug!(%error, "a backend did not switch protocols"),
    }
}

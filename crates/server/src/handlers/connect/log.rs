//! The log of a container, read from its kubelet.

mod options;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::header::{CONTENT_TYPE, HOST, HeaderValue, LOCATION};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use pintle_effects::{Destination, Kubelet, destination};
use pintle_meta::{GroupResource, Reason, Status};

use crate::backends::{self, Failure, Verification};
use crate::body::{Body, Frames};
use crate::handlers::Call;
use crate::header_text::lossy;
use crate::lifecycle::Stopping;
use crate::respond::Response;
use crate::target::Found;
use crate::websocket::{self, Handshake, Opcode};
use options::LogOptions;

/// The maximum number of bytes that are read of a kubelet's error response (upstream's bound).
const REFUSAL_BYTES_MAX: usize = 50_000;
/// The subprotocols in which a log is sent over a WebSocket.
const SUBPROTOCOLS: &[&str] = &["", "binary.k8s.io", BASE64];
const BASE64: &str = "base64.binary.k8s.io";

/// Serves GET of a pod's `log`.
pub(super) async fn log(call: &Call<'_>, found: &Found) -> Result<Response, Status> {
    let options = LogOptions::read(call.query)?;
    let verification =
        if options.insecure { Verification::Skipped } else { Verification::Configured };
    call.api.metrics.streams.log(verification);
    options.check(&found.target.name)?;
    let container = call.query.text("container");
    let preferred = &call.api.kubelets.preferred_address_types;
    let to = destination(&call.api.registry, &found.target, container, preferred)?;
    let Destination::Kubelet { kubelet, container } = to else {
        // A pod without a node has no log.
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        return Ok(response);
    };
    let (namespace, pod) = (&found.target.namespace, &found.target.name);
    let path = format!("/containerLogs/{namespace}/{pod}/{container}{}", options.query());
    let log = ask(call, &kubelet, verification, &path).await?;
    if !(200..=206).contains(&log.status().as_u16()) {
        return Err(refusal(log, pod).await);
    }
    answer(call, pieces(log, call.api.lifecycle.stopping()))
}

/// Requests the log from the kubelet.
async fn ask(
    call: &Call<'_>,
    kubelet: &Kubelet,
    verification: Verification,
    path: &str,
) -> Result<backends::Response, Status> {
    let authority = kubelet.authority();
    let failed = |why: &dyn std::fmt::Display| {
        let why = format!("Get \"https://{authority}{path}\": {why}");
        Status::failure(Reason::Unknown, why)
    };
    let request = Request::get(path).header(HOST, &authority).body(Empty::<Bytes>::new());
    let request = request.map_err(|why| failed(&why))?;
    let backend = call.api.kubelets.backend(kubelet, verification).await;
    let answer = backend.ask(request).await.map_err(|failure| {
        if matches!(failure, Failure::Certificate(_)) {
            call.api.metrics.streams.untrusted_log();
        }
        failed(&failure)
    })?;
    if answer.status().is_redirection() && answer.headers().contains_key(LOCATION) {
        return Err(failed(&"redirects forbidden"));
    }
    Ok(answer)
}

/// Returns the error of a kubelet's response.
async fn refusal(answer: backends::Response, pod: &str) -> Status {
    let code = answer.status().as_u16();
    let mut text = Vec::new();
    let _cut = backends::read_start(answer.into_body(), &mut text, REFUSAL_BYTES_MAX).await;
    let text = lossy(&text);
    match code {
        500 => Status::internal(text),
        400 => Status::bad_request(text),
        _ => Status::relayed(code, &GroupResource::new("", "pods/log"), pod, &text),
    }
}

/// The log as it arrives. It ends where the kubelet's connection breaks, as upstream's does, and
/// when the server stops.
fn pieces(log: backends::Response, stopping: Stopping) -> Frames {
    let pieces = stream::unfold((log.into_body(), stopping), |(mut body, mut stopping)| async {
        loop {
            let frame = tokio::select! {
                frame = body.frame() => frame?.ok()?,
                () = stopping.wait() => return None,
            };
            if let Ok(piece) = frame.into_data() {
                return Some((piece, (body, stopping)));
            }
        }
    });
    Box::pin(pieces)
}

/// Sends the log as a body, or on a WebSocket if the client asks for one. The first message on the
/// WebSocket is empty.
fn answer(call: &Call<'_>, pieces: Frames) -> Result<Response, Status> {
    if !websocket::is_asked_for(&call.head.headers) {
        let mut response = Response::new(Body::frames(pieces));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        return Ok(response);
    }
    let handshake = Handshake::read(call.head)?;
    let subprotocol = handshake.choose(SUBPROTOCOLS)?;
    let messages = stream::once(async { Bytes::new() }).chain(pieces);
    let (messages, opcode): (Frames, _) = match subprotocol {
        BASE64 => (Box::pin(messages.map(|piece| STANDARD.encode(piece).into())), Opcode::Text),
        _ => (Box::pin(messages), Opcode::Binary),
    };
    let session = move |stream| websocket::send_messages(stream, messages, opcode);
    Ok(handshake.accept(subprotocol, session))
}

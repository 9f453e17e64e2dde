//! WebSockets (RFC 6455), as far as watches need them (WS-08): the handshake, messages out, and control
//! frames in.
//!
//! Must not know: what the messages are.
//!
//! Invariants: nothing that a client sends is kept. Data is passed over, as upstream does, and control
//! frames are short.

mod frame;
#[cfg(test)]
mod tests;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use futures_util::StreamExt;
use http::header::{
    CONNECTION, HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::request::Parts;
use http::{Method, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use pintle_auth::Error;
use pintle_meta::Status;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::body::{Body, Frames};
use crate::header_text;
use crate::respond::Response;
pub(crate) use frame::Opcode;
use frame::{Control, Incoming, Violation};

/// What the server adds to a client's key to show that it read it.
const KEY_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// A subprotocol that is none but the client's token: browsers cannot send other headers.
const BEARER_PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// Why a connection is closed.
mod close_code {
    pub(super) const NORMAL: u16 = 1000;
    pub(super) const PROTOCOL_ERROR: u16 = 1002;
}

/// Whether a client wants a WebSocket rather than an answer.
pub(crate) fn is_asked_for(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(header_text::text).unwrap_or_default();
    let upgrades = text(&CONNECTION).split(',').any(|w| w.trim().eq_ignore_ascii_case("upgrade"));
    upgrades && text(&UPGRADE).eq_ignore_ascii_case("websocket")
}

/// Answers a request for a WebSocket on which `messages` are sent, each in a frame of the kind
/// `opcode`. Upstream demands an `Origin`, whatever it is; it protects nothing, and is not asked for.
pub(crate) fn accept(head: &Parts, messages: Frames, opcode: Opcode) -> Result<Response, Status> {
    let upgrade = head.extensions.get::<OnUpgrade>().filter(|_| head.method == Method::GET);
    let upgrade = upgrade.cloned().ok_or_else(|| Status::bad_request("not websocket protocol"))?;
    let key = head.headers.get(SEC_WEBSOCKET_KEY).filter(|key| !key.is_empty());
    let key = key.ok_or_else(|| Status::bad_request("mismatch challenge/response"))?;
    if head.headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        return Err(Status::bad_request("missing or bad WebSocket Version"));
    }
    let mut offered = subprotocols(&head.headers);
    offered.retain(|name| !name.starts_with(BEARER_PREFIX));
    let mut response = Response::new(Body::successor(Box::pin(async move {
        match upgrade.await {
            Ok(connection) => run(TokioIo::new(connection), messages, opcode).await,
            Err(error) => tracing::debug!(%error, "the connection did not become a WebSocket"),
        }
    })));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept_key(key.as_bytes()));
    match offered.as_slice() {
        [] => {}
        [one] => {
            let one =
                HeaderValue::from_str(one).expect("parts of headers have no control characters");
            headers.insert(SEC_WEBSOCKET_PROTOCOL, one);
        }
        // Watches know none, and so cannot choose.
        _ => return Err(Status::bad_request("missing or bad WebSocket-Protocol")),
    }
    Ok(response)
}

/// The token that stands among the subprotocols, if one does. Another subprotocol must stand beside
/// it, for the server to repeat.
pub(crate) fn bearer_token(headers: &HeaderMap) -> Result<Option<String>, Error> {
    if !headers.contains_key(SEC_WEBSOCKET_PROTOCOL) || !is_asked_for(headers) {
        return Ok(None);
    }
    let (mut token, mut others) = (None, 0);
    for name in subprotocols(headers) {
        match name.strip_prefix(BEARER_PREFIX) {
            None => others += 1,
            Some(_) if token.is_some() => return Err(Error::Token),
            Some(encoded) => {
                let bytes = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| Error::Token)?;
                token = Some(String::from_utf8(bytes).map_err(|_| Error::Token)?);
            }
        }
    }
    let token = token.filter(|token| !token.is_empty());
    if token.is_some() && others == 0 { Err(Error::Token) } else { Ok(token) }
}

fn subprotocols(headers: &HeaderMap) -> Vec<String> {
    let mut names = Vec::new();
    for line in headers.get_all(SEC_WEBSOCKET_PROTOCOL) {
        names.extend(header_text::text(line).split(',').map(|name| name.trim().to_owned()));
    }
    names
}

fn accept_key(key: &[u8]) -> HeaderValue {
    let proof = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key, KEY_SUFFIX.as_bytes()].concat());
    HeaderValue::from_str(&STANDARD.encode(proof)).expect("base64 is plain ASCII")
}

/// Sends messages until there are no more or the client leaves.
async fn run(stream: impl AsyncRead + AsyncWrite, mut messages: Frames, opcode: Opcode) {
    let (mut from, mut to) = tokio::io::split(stream);
    let mut incoming = Incoming::default();
    let code = loop {
        let sent = tokio::select! {
            message = messages.next() => match message {
                Some(message) => to.write_all(&frame::write(opcode, &message)).await,
                None => break close_code::NORMAL,
            },
            read = from.read_buf(incoming.buffer()) => match read {
                Ok(0) | Err(_) => return,
                Ok(_) => match answer(&mut incoming, &mut to).await {
                    Ok(None) => Ok(()),
                    Ok(Some(code)) => break code,
                    Err(error) => Err(error),
                },
            },
        };
        if sent.is_err() || to.flush().await.is_err() {
            return;
        }
    };
    // That the client is gone already is no matter.
    let _ = to.write_all(&frame::write(Opcode::Close, &code.to_be_bytes())).await;
    let _ = to.shutdown().await;
}

/// Answers what has come; gives the code with which to close.
async fn answer(
    incoming: &mut Incoming,
    to: &mut (impl AsyncWrite + Unpin),
) -> std::io::Result<Option<u16>> {
    loop {
        match incoming.next() {
            Ok(None) => return Ok(None),
            Ok(Some(Control::Ping(payload))) => {
                to.write_all(&frame::write(Opcode::Pong, &payload)).await?;
            }
            Ok(Some(Control::Close)) => return Ok(Some(close_code::NORMAL)),
            Err(Violation) => return Ok(Some(close_code::PROTOCOL_ERROR)),
        }
    }
}

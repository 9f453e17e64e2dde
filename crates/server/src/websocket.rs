//! The handshake of WebSockets (RFC 6455, 4.2), and sessions that only send messages (WS-08).
//! [`pintle_streams::websocket`] reads and writes the frames.
//!
//! Must not know the contents of messages.

#[cfg(test)]
mod tests;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::BytesMut;
use futures_util::StreamExt;
use http::header::{
    CONNECTION, HeaderMap, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::request::Parts;
use http::{Method, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use pintle_auth::Error;
use pintle_meta::Status;
use pintle_streams::websocket::{self, Event, Reader, Violation, close_code};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::body::{Body, Frames};
use crate::header_text;
use crate::respond::Response;
pub(crate) use pintle_streams::websocket::Opcode;

/// The suffix that the server hashes with the client's key.
const KEY_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The prefix of a pseudo-subprotocol that carries the client's token: browsers cannot set other
/// headers.
pub(crate) const BEARER_PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// Whether the client requests a WebSocket.
pub(crate) fn is_asked_for(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(header_text::text).unwrap_or_default();
    let upgrades = text(&CONNECTION).split(',').any(|w| w.trim().eq_ignore_ascii_case("upgrade"));
    upgrades && text(&UPGRADE).eq_ignore_ascii_case("websocket")
}

/// A valid handshake.
pub(crate) struct Handshake {
    upgrade: OnUpgrade,
    accept_key: HeaderValue,
    /// The subprotocols that the client offers, in order of preference.
    pub(crate) offered: Vec<String>,
}

impl Handshake {
    /// Parses a handshake. Upstream requires an `Origin` of any value. Such a check protects
    /// nothing, so `Origin` is optional here.
    pub(crate) fn read(head: &Parts) -> Result<Self, Status> {
        let upgrade = head.extensions.get::<OnUpgrade>().filter(|_| head.method == Method::GET);
        let upgrade =
            upgrade.cloned().ok_or_else(|| Status::bad_request("not websocket protocol"))?;
        let key = head.headers.get(SEC_WEBSOCKET_KEY).filter(|key| !key.is_empty());
        let key = key.ok_or_else(|| Status::bad_request("mismatch challenge/response"))?;
        if head.headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
            return Err(Status::bad_request("missing or bad WebSocket Version"));
        }
        let mut offered = subprotocols(&head.headers);
        offered.retain(|name| !name.starts_with(BEARER_PREFIX));
        Ok(Self { upgrade, accept_key: accept_key(key.as_bytes()), offered })
    }

    /// Chooses the first offered subprotocol that is known; `""` if none is offered and `""` is
    /// known. Otherwise the request is refused with 403.
    pub(crate) fn choose(&self, known: &[&'static str]) -> Result<&'static str, Status> {
        let find = |name: &str| known.iter().find(|known| **known == name).copied();
        let chosen = match self.offered.as_slice() {
            [] => find(""),
            offered => offered.iter().find_map(|name| find(name)),
        };
        let refuse = || {
            let (asked, known) = (self.offered.join(" "), known.join(" "));
            let why =
                format!("requested protocol(s) are not supported: [{asked}]; supports [{known}]");
            Status::failure(pintle_meta::Reason::Forbidden, why)
        };
        chosen.ok_or_else(refuse)
    }

    /// The response 101; the session begins after it.
    pub(crate) fn accept<S: Future<Output = ()> + Send + 'static>(
        self,
        subprotocol: &str,
        session: impl FnOnce(TokioIo<Upgraded>) -> S + Send + 'static,
    ) -> Response {
        let upgrade = self.upgrade;
        let mut response = Response::new(Body::upgraded(Box::pin(async move {
            match upgrade.await {
                Ok(connection) => session(TokioIo::new(connection)).await,
                Err(error) => tracing::debug!(%error, "the connection did not become a WebSocket"),
            }
        })));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_ACCEPT, self.accept_key);
        if !subprotocol.is_empty() {
            let name = HeaderValue::from_str(subprotocol);
            let name = name.expect("parts of headers have no control characters");
            headers.insert(SEC_WEBSOCKET_PROTOCOL, name);
        }
        response
    }
}

/// The token among the subprotocols, if there is one. There must be another subprotocol for the
/// server to select.
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

/// The subprotocols that a client offers, with the token's.
pub(crate) fn subprotocols(headers: &HeaderMap) -> Vec<String> {
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

/// Sends messages until there are no more or the client leaves. Received messages are ignored, as
/// in upstream.
pub(crate) async fn send_messages(
    stream: impl AsyncRead + AsyncWrite,
    mut messages: Frames,
    opcode: Opcode,
) {
    let (mut from, mut to) = tokio::io::split(stream);
    let (mut reader, mut incoming, mut out) = (Reader::default(), BytesMut::new(), BytesMut::new());
    let code = loop {
        tokio::select! {
            message = messages.next() => match message {
                Some(message) => websocket::write(opcode, &message, &mut out),
                None => break close_code::NORMAL,
            },
            read = from.read_buf(&mut incoming) => match read {
                Ok(0) | Err(_) => return,
                Ok(_) => if let Some(code) = answer(&mut reader, &mut incoming, &mut out) { break code },
            },
        }
        if to.write_all_buf(&mut out).await.is_err() || to.flush().await.is_err() {
            return;
        }
    };
    websocket::write_close(code, &mut out);
    // A failure means that the client has left already.
    let _ = to.write_all_buf(&mut out).await;
    let _ = to.shutdown().await;
}

/// Replies to received frames. Returns a code if the session must be closed: the client closes it,
/// or violates the protocol.
fn answer(reader: &mut Reader, incoming: &mut BytesMut, out: &mut BytesMut) -> Option<u16> {
    loop {
        match reader.read(incoming) {
            Ok(None) => return None,
            Ok(Some(Event::Data { .. })) => {}
            Ok(Some(Event::Ping(payload))) => websocket::write(Opcode::Pong, &payload, out),
            Ok(Some(Event::Close)) => return Some(close_code::NORMAL),
            Err(Violation) => return Some(close_code::PROTOCOL_ERROR),
        }
    }
}

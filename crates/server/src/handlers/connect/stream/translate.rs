//! Remote commands over a WebSocket, for a kubelet that speaks only SPDY (upstream:
//! `StreamTranslatorHandler`). The client's WebSocket opens before the kubelet is dialled, so later
//! failures are sent on the error channel.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::Request;
use http::header::{CONNECTION, HOST, HeaderMap, LOCATION, UPGRADE};
use http_body_util::Empty;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use pintle_meta::Status;
use pintle_meta::quote::quote;
use pintle_streams::Coupling;
use pintle_streams::remote_command::{self, Channels, Outcome, RemoteCommand};
use pintle_value::{Value, json};
use tokio::io::AsyncWriteExt;

use super::tunnel::{self, PROTOCOL_VERSION, SPDY};
use super::{Remote, is_on};
use crate::api::Api;
use crate::backends;
use crate::handlers::Call;
use crate::header_text::{self, lossy};
use crate::relay::{self, Session};
use crate::respond::{Response, bare_status_json};
use crate::websocket::{self, Handshake};

/// The only subprotocol in which a client can close a single stream.
const SUBPROTOCOL: &str = "v5.channel.k8s.io";
/// The remote command protocols that kubelets may speak over SPDY, in order of preference.
const VERSIONS: [&str; 5] =
    [SUBPROTOCOL, "v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"];
/// The first version that has a stream for terminal sizes.
const FIRST_WITH_RESIZE: u8 = 3;
/// The first version whose error stream carries a Status.
const FIRST_WITH_STATUS: u8 = 4;
/// The maximum number of bytes that are read of a kubelet's error response.
const REFUSAL_BYTES_MAX: usize = 50_000;

/// Whether the client offers the subprotocol that is translated.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    websocket::subprotocols(headers).iter().any(|name| name == SUBPROTOCOL)
}

/// Answers 101 to the client; [`session`] runs afterwards.
pub(super) fn translate(
    call: &Call<'_>,
    remote: Remote,
    options: &Value,
) -> Result<Response, Status> {
    let chosen = Handshake::read(call.head);
    let chosen = chosen.and_then(|handshake| Ok((handshake.choose(&[SUBPROTOCOL])?, handshake)));
    let streams = &call.api.metrics.streams;
    let (subprotocol, handshake) = chosen.inspect_err(|_| streams.translated(400))?;
    let tty = is_on(options, "tty");
    let wanted = Channels {
        stdin: is_on(options, "stdin"),
        stdout: is_on(options, "stdout"),
        stderr: is_on(options, "stderr") && !tty,
        resize: tty,
    };
    let api = call.api.clone();
    Ok(handshake.accept(subprotocol, move |client| session(api, client, remote, wanted)))
}

/// Runs the command and sends its result to the client.
async fn session(api: Arc<Api>, mut client: TokioIo<Upgraded>, remote: Remote, wanted: Channels) {
    let greet = async {
        client.write_all_buf(&mut wanted.greeting()).await?;
        client.flush().await
    };
    if greet.await.is_err() {
        return;
    }
    let mut stopping = api.lifecycle.stopping();
    let opened = tokio::select! {
        opened = open(&remote) => opened,
        () = stopping.wait() => Err("the server stops".to_owned()),
    };
    let streams = &api.metrics.streams;
    let (backend, version) = match opened {
        Ok(opened) => opened,
        Err(why) => {
            let (status, mut last) = (Status::internal(why), BytesMut::new());
            streams.translated(status.code);
            remote_command::finish(&bare_status_json(&status), &mut last);
            return relay::send_and_close(client, last).await;
        }
    };
    let resize = wanted.resize && version >= FIRST_WITH_RESIZE;
    let mut command = RemoteCommand::new(Channels { resize, ..wanted });
    let mut session = Session::new(client, backend);
    session.run(&mut command, &mut stopping).await;
    let status = match command.outcome() {
        Some(Outcome::Ended(error)) => Some(result(&error, version)),
        Some(Outcome::BrokenOff(why)) => Some(Status::internal(why)),
        Some(Outcome::Left) | None => None,
    };
    if let Some(status) = status {
        // A command that exits with an error is not a failure of the server.
        streams.translated(if status.code == 0 { 200 } else { status.code });
        remote_command::finish(&bare_status_json(&status), &mut command.wires().0.outgoing);
    }
    session.finish(&mut command, &mut stopping).await;
}

/// Opens a SPDY connection to the kubelet and returns it with the version of the remote command
/// protocol. The error text is upstream's.
async fn open(remote: &Remote) -> Result<(TokioIo<Upgraded>, u8), String> {
    let authority = &remote.backend.authority;
    let failed = |why: &dyn std::fmt::Display| {
        format!("error sending request: Post \"https://{authority}{}\": {why}", remote.path)
    };
    let mut request = Request::post(&remote.path)
        .header(HOST, authority)
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, SPDY);
    for version in VERSIONS {
        request = request.header(PROTOCOL_VERSION, version);
    }
    let request = request.body(Empty::<Bytes>::new()).map_err(|why| failed(&why))?;
    let mut answer = remote.backend.ask(request).await.map_err(|why| failed(&why))?;
    if answer.status().is_redirection() && answer.headers().contains_key(LOCATION) {
        return Err(failed(&"redirect not allowed"));
    }
    if !tunnel::switches_to_spdy(&answer) {
        return Err(format!("unable to upgrade connection: {}", refusal(answer).await));
    }
    let chosen = answer.headers().get(PROTOCOL_VERSION).map(header_text::text);
    let index = VERSIONS.iter().position(|version| chosen.as_deref() == Some(*version));
    let version = index.map_or(1, |index| (VERSIONS.len() - index) as u8);
    let backend = hyper::upgrade::on(&mut answer).await.map_err(|why| failed(&why))?;
    Ok((TokioIo::new(backend), version))
}

/// Returns the error of a kubelet that did not switch protocols: the member `message` or `error` of
/// its response, or the response's text.
async fn refusal(answer: backends::Response) -> String {
    let mut bytes = Vec::new();
    let _cut = backends::read_start(answer.into_body(), &mut bytes, REFUSAL_BYTES_MAX).await;
    let tree = json::parse(&bytes).unwrap_or_default();
    let member = |name| tree.str_at(&[name]).map(str::trim).filter(|text| !text.is_empty());
    let text = lossy(&bytes);
    let text = member("message").or_else(|| member("error")).unwrap_or(text.trim());
    if text.is_empty() { "empty server response".to_owned() } else { text.to_owned() }
}

/// Returns the result of a command from the kubelet's error stream: empty means success; otherwise
/// it is a Status, or a text in old versions (upstream: `errorDecoderV2` and `V4`).
fn result(error: &[u8], version: u8) -> Status {
    let wrong = |what: &dyn std::fmt::Display| {
        Status::internal(format!("error stream protocol error: {what}"))
    };
    if error.is_empty() {
        return Status::success(200);
    }
    if version < FIRST_WITH_STATUS {
        return Status::internal(format!("error executing remote command: {}", lossy(error)));
    }
    let tree = match json::parse(error) {
        Ok(tree) => tree,
        Err(why) => return wrong(&format_args!("{why} in {}", quote(&lossy(error)))),
    };
    let text = |name| tree.str_at(&[name]).unwrap_or_default();
    match (text("status"), text("reason")) {
        ("Success", _) => Status::success(200),
        ("Failure", "NonZeroExitCode") => {
            if tree.get("details").is_none_or(Value::is_null) {
                return wrong(&"details must be set");
            }
            let causes = tree.at(&["details", "causes"]).and_then(Value::as_array);
            let is_code = |cause: &&Value| cause.str_at(&["reason"]) == Some("ExitCode");
            let Some(cause) = causes.unwrap_or_default().iter().find(is_code) else {
                return wrong(&"no ExitCode cause given");
            };
            let code = cause.str_at(&["message"]).unwrap_or_default();
            match code.parse() {
                Ok(code) => Status::exited(code),
                Err(_) => wrong(&format_args!("invalid exit code value {}", quote(code))),
            }
        }
        ("Failure", _) => Status::internal(text("message")),
        _ => wrong(&"unknown error"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_results_become_a_status() {
        let exit = |details: &str| {
            format!(r#"{{"status":"Failure","reason":"NonZeroExitCode","details":{details}}}"#)
        };
        let causes = |causes: &str| exit(&format!(r#"{{"causes":[{causes}]}}"#));
        for (error, version, expected) in [
            ("", 4, r#"{"metadata":{},"status":"Success"}"#),
            (r#"{"status":"Success"}"#, 5, r#"{"metadata":{},"status":"Success"}"#),
            (
                &causes(r#"{"reason":"ExitCode","message":"137"}"#),
                4,
                concat!(
                    r#"{"metadata":{},"status":"Failure","message":"command terminated with non-zero "#,
                    r#"exit code: command terminated with exit code 137","reason":"NonZeroExitCode","#,
                    r#""details":{"causes":[{"reason":"ExitCode","message":"137"}]}}"#
                ),
            ),
            ("no", 3, "error executing remote command: no"),
            ("no", 4, "error stream protocol error: "),
            (&exit("null"), 4, "error stream protocol error: details must be set"),
            (&causes(""), 4, "error stream protocol error: no ExitCode cause given"),
            (
                &causes(r#"{"reason":"ExitCode","message":"256"}"#),
                4,
                r#"error stream protocol error: invalid exit code value \"256\""#,
            ),
            (r#"{"status":"Failure","message":"no such file"}"#, 4, "no such file"),
            ("{}", 4, "error stream protocol error: unknown error"),
        ] {
            let text = bare_status_json(&result(error.as_bytes(), version));
            let text = String::from_utf8(text).unwrap();
            if expected.starts_with('{') {
                assert_eq!(text, expected, "{error}");
            } else {
                let expected = format!("Internal error occurred: {expected}");
                assert!(text.contains(&expected), "{error}: {text}");
            }
        }
    }
}

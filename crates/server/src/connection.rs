//! Accepts connections, encrypts them, and serves HTTP/1.1 or HTTP/2 over them, within limits.
//!
//! Every wait for a peer has a deadline: the handshake ([`ConnectionLimits::handshake`]), a
//! request's headers and the time between requests ([`register`]), and the sending of a response
//! ([`socket`], [`stream`], [`answer`]). [`crate::body`] bounds the reading of a request's body.
//!
//! [`ConnectionLimits::handshake`]: crate::ConnectionLimits::handshake

mod again;
mod files;
mod http;
mod register;
mod sending;
mod socket;
mod stall;
mod state;
mod stream;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use ::http::{Request, Response};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustix::io::Errno;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::api::Api;
use crate::audit_notes;
use crate::authentication::Peer;
use crate::body::UpgradedSession;
use crate::config::ConnectionLimits;
use crate::respond;
use crate::tls::Tls;
use again::polled_again;
pub(crate) use files::within_files;
use register::{Entry, Register};
use sending::SendingBody;
use socket::Socket;
pub(crate) use state::ConnectionState;

/// The response to a request without TLS.
const PLAIN_HTTP: &[u8] =
    b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
/// The pause after a failed accept, which fails for example without free file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The state that all connections share.
struct Listener {
    tls: Arc<Tls>,
    register: Arc<Register>,
    api: Arc<Api>,
}

/// Accepts connections until the server stops, then waits for open ones to end. Those that are still
/// open when a request's timeout has passed are aborted.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Arc<Tls>,
    limits: ConnectionLimits,
    api: Arc<Api>,
) {
    let register = Register::new(limits);
    let mut stopping = api.lifecycle.stopping();
    let shared = Arc::new(Listener { tls, register: register.clone(), api });
    let mut connections = JoinSet::new();
    let mut idle_watch = std::pin::pin!(register.watch());
    loop {
        let accepted = tokio::select! {
            () = stopping.wait() => break,
            () = &mut idle_watch => continue,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, from)) => {
                // A listener of IPv6 sees the address of an IPv4 client as `::ffff:192.0.2.1`.
                let from = from.ip().to_canonical();
                register.admit(from, |entry| {
                    let served = serve_connection(stream, entry, from, shared.clone());
                    connections.spawn(polled_again(served))
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                if matches!(Errno::from_io_error(&error), Some(Errno::MFILE | Errno::NFILE)) {
                    register.make_room();
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    register.close_all();
    let limit = shared.api.settings.request_timeout;
    let all_ended = async {
        loop {
            tokio::select! {
                () = &mut idle_watch => {}
                ended = connections.join_next() => if ended.is_none() { break },
            }
        }
    };
    if tokio::time::timeout(limit, all_ended).await.is_err() {
        tracing::warn!("aborting the requests that are still open after {limit:?}");
        connections.shutdown().await;
    }
}

async fn serve_connection(stream: TcpStream, entry: Entry, from: IpAddr, shared: Arc<Listener>) {
    let (api, limits) = (&shared.api, shared.register.limits());
    let address = stream.local_addr().map_or(Ipv4Addr::UNSPECIFIED.into(), |local| local.ip());
    let acceptor = TlsAcceptor::from(shared.tls.config(address));
    let socket = Socket::new(stream, entry.connection().clone());
    let handshake = tokio::time::timeout(limits.handshake, tls_handshake(socket, &acceptor)).await;
    let why = match handshake {
        Ok(Ok(stream)) => return speak_http(stream, entry.connection(), &shared).await,
        Ok(Err(error)) => error,
        Err(_) => std::io::ErrorKind::TimedOut.into(),
    };
    api.metrics.tls_errors.add(1);
    tracing::debug!(%why, %from, "TLS handshake error");
}

/// Serves HTTP over an encrypted connection until it ends.
async fn speak_http(
    stream: TlsStream<Socket>,
    connection: &Arc<ConnectionState>,
    shared: &Listener,
) {
    let peer = shared.api.authentication.peer(stream.get_ref().1.peer_certificates());
    let upgraded = Arc::new(Mutex::new(None));
    let requests = Requests {
        api: shared.api.clone(),
        peer: Arc::new(peer),
        connection: connection.clone(),
        upgraded: upgraded.clone(),
    };
    let service = service_fn(move |request| requests.clone().begin(request));
    let http = http::http(connection);
    let http = http.serve_connection_with_upgrades(TokioIo::new(stream), service);
    let mut http = std::pin::pin!(http);
    let result = tokio::select! {
        result = http.as_mut() => result,
        () = connection.closing() => {
            http.as_mut().graceful_shutdown();
            http.await
        }
    };
    if let Err(error) = result {
        tracing::trace!(%error, "connection ended");
    }
    let upgraded = upgraded.lock().take();
    if let Some(upgraded) = upgraded {
        upgraded.await;
    }
}

/// The response to a request; there is always one.
type Served = Result<Response<SendingBody>, Infallible>;

/// Serves the requests of a connection.
#[derive(Clone)]
struct Requests {
    api: Arc<Api>,
    peer: Arc<Peer>,
    connection: Arc<ConnectionState>,
    /// The session that runs after an upgrade.
    upgraded: Arc<Mutex<Option<UpgradedSession>>>,
}

impl Requests {
    /// hyper moves the future of a request several times, so the future is boxed.
    fn begin(self, request: Request<Incoming>) -> BoxFuture<'static, Served> {
        Box::pin(audit_notes::collecting(self.serve(request)))
    }

    async fn serve(self, request: Request<Incoming>) -> Served {
        let busy = self.connection.begin();
        let time = self.api.settings.request_timeout;
        let response = self.respond(request).await;
        let mut response = response.map(|body| {
            // A short response is sent with its first piece, and a watch has its own timeout.
            let deadline = body.is_long().then(|| Instant::now() + time);
            let session = body.is_session().then(|| self.connection.begin_session());
            SendingBody::new(body, deadline, busy, session)
        });
        if let Some(session) = response.body_mut().take_upgraded() {
            *self.upgraded.lock() = Some(session);
        }
        Ok(response)
    }

    /// Responds to a request. A panic ends this request only, and not the others of the connection
    /// (upstream: `WithPanicRecovery`).
    async fn respond(&self, request: Request<Incoming>) -> respond::Response {
        const PANICKED: &str =
            "This request caused apiserver to panic. Look in the logs for details.\n";
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let responding = self.api.clone().serve(&self.peer, &self.connection, request);
        AssertUnwindSafe(responding).catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!(%method, %uri, "a request caused a panic");
            respond::text(500, PANICKED)
        })
    }
}

/// Runs the TLS handshake. A client without TLS gets a plain-text error, as from Go's servers.
async fn tls_handshake(
    mut stream: Socket,
    acceptor: &TlsAcceptor,
) -> std::io::Result<TlsStream<Socket>> {
    const LINE_STARTS: [&[u8]; 5] = [b"GET /", b"HEAD ", b"POST ", b"PUT /", b"OPTIO"];
    let mut start = [0; 5];
    stream.peek(&mut start).await?;
    if LINE_STARTS.contains(&start.as_slice()) {
        // Unread data would reset the connection, and the response would be lost.
        let _ = stream.read(&mut [0; 4096]).await?;
        stream.write_all(PLAIN_HTTP).await?;
        return Err(std::io::Error::other("client sent an HTTP request to an HTTPS server"));
    }
    acceptor.accept(stream).await
}

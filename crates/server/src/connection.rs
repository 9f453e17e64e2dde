//! Connections: accepted, encrypted, and served over HTTP/1.1 or HTTP/2, within bounds.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::api::{Api, now};

/// So many connections are open at the same time; further ones wait to be accepted.
const CONNECTIONS_MAX: usize = 16_384;
/// A handshake that takes longer is given up.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection that sends no request for so long, or one that is not complete, is closed. Go's clients
/// give idle connections up after 90 s, so they do it first.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// Bounds a request's line and headers; long selectors go into the line.
const HEADER_BYTES_MAX: usize = 256 * 1024;
/// How many requests a client may have open over one HTTP/2 connection (upstream's default).
const HTTP2_STREAMS_MAX: u32 = 250;
/// How much of a request's body may be on its way (upstream's values).
const HTTP2_STREAM_WINDOW: u32 = 256 * 1024;
const HTTP2_CONNECTION_WINDOW: u32 = 16 * 1024 * 1024;
/// How much of an answer may wait to be sent, for each stream.
const HTTP2_SEND_BUFFER: usize = 512 * 1024;
/// The answer to a request that is not encrypted.
const PLAIN_HTTP: &[u8] =
    b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
/// After a failure to accept (no more file descriptors), the listener waits for so long.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Accepts connections until the server stops, then waits for those that are open to end; how long is
/// the caller's to bound.
pub(crate) async fn serve(listener: TcpListener, tls: Arc<rustls::ServerConfig>, api: Arc<Api>) {
    let acceptor = TlsAcceptor::from(tls);
    let http = Arc::new(http());
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut stopping = api.lifecycle.stopping();
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stopping.wait() => break,
            Some(_) = connections.join_next() => continue,
            accepted = accept(&listener, &room) => accepted,
        };
        let (stream, place) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (acceptor, http, api) = (acceptor.clone(), http.clone(), api.clone());
        connections.spawn(async move {
            connection(stream, &acceptor, &http, api).await;
            drop(place);
        });
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = room.clone().acquire_owned().await.expect("the semaphore is never closed");
    let (stream, _) = listener.accept().await?;
    Ok((stream, place))
}

async fn connection(
    stream: TcpStream,
    acceptor: &TlsAcceptor,
    http: &Builder<TokioExecutor>,
    api: Arc<Api>,
) {
    // Small answers must not wait for more to send.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, shake_hands(stream, acceptor)).await;
    let stream = match handshake {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            api.metrics.tls_errors.add(1);
            tracing::debug!(%error, "TLS handshake error");
            return;
        }
        Err(_) => {
            api.metrics.tls_errors.add(1);
            tracing::debug!("TLS handshake timed out");
            return;
        }
    };
    let peer = Arc::new(api.authentication.peer(stream.get_ref().1.peer_certificates(), now()));
    let mut stopping = api.lifecycle.stopping();
    let successor = Arc::new(Mutex::new(None));
    let place = successor.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (api, peer, place) = (api.clone(), peer.clone(), place.clone());
        async move {
            let mut response = api.serve(&peer, request).await;
            if let Some(successor) = response.body_mut().take_successor() {
                *place.lock() = Some(successor);
            }
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http.serve_connection_with_upgrades(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = stopping.wait() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        tracing::trace!(%error, "connection ended");
    }
    let successor = successor.lock().take();
    if let Some(successor) = successor {
        successor.await;
    }
}

/// Encrypts a connection. Who forgot to is told so, as Go's servers do.
async fn shake_hands(
    mut stream: TcpStream,
    acceptor: &TlsAcceptor,
) -> std::io::Result<TlsStream<TcpStream>> {
    const LINE_STARTS: [&[u8]; 5] = [b"GET /", b"HEAD ", b"POST ", b"PUT /", b"OPTIO"];
    let mut start = [0; 5];
    stream.peek(&mut start).await?;
    if LINE_STARTS.contains(&start.as_slice()) {
        // What is left unread would take the answer with it.
        let _ = stream.read(&mut [0; 4096]).await?;
        stream.write_all(PLAIN_HTTP).await?;
        return Err(std::io::Error::other("client sent an HTTP request to an HTTPS server"));
    }
    acceptor.accept(stream).await
}

fn http() -> Builder<TokioExecutor> {
    let mut http = Builder::new(TokioExecutor::new());
    http.http1()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_TIMEOUT)
        .max_buf_size(HEADER_BYTES_MAX);
    http.http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(HTTP2_STREAMS_MAX)
        .initial_stream_window_size(HTTP2_STREAM_WINDOW)
        .initial_connection_window_size(HTTP2_CONNECTION_WINDOW)
        .max_send_buf_size(HTTP2_SEND_BUFFER)
        .max_header_list_size(HEADER_BYTES_MAX as u32);
    http
}

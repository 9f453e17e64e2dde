//! A session: moves bytes between a client and a backend through a [`Coupling`], until it ends.
//!
//! Invariants: the coupling bounds the buffered bytes; both connections are closed at every end of
//! a session.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use pintle_streams::{Coupling, Wire};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, interval_at};

use crate::lifecycle::Stopping;

/// The interval of a coupling's ticks: upstream's interval of pings to kubelets.
const TICK: Duration = Duration::from_secs(5);
/// The size of a read.
const READ_BYTES: usize = 16 * 1024;
/// The time for sending the last bytes at the end of a session (upstream's value). For a client
/// that may pause, it begins when the server stops.
const LAST_TIMEOUT: Duration = Duration::from_secs(10);

/// The two connections of a session.
pub(crate) struct Session<C, B> {
    client: End<C>,
    backend: End<B>,
}

/// A connection.
struct End<S> {
    stream: S,
    /// Whether written bytes may be unflushed.
    is_unflushed: bool,
}

impl<C, B> Session<C, B>
where
    C: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    pub(crate) const fn new(client: C, backend: B) -> Self {
        Self { client: End::new(client), backend: End::new(backend) }
    }

    /// Runs until the coupling is over or the server stops.
    pub(crate) async fn run(&mut self, coupling: &mut impl Coupling, stopping: &mut Stopping) {
        let mut ticks = interval_at(Instant::now() + TICK, TICK);
        let mut stopping = pin!(stopping.wait());
        loop {
            coupling.advance();
            if coupling.is_over() {
                return;
            }
            tokio::select! {
                () = self.make_progress(coupling) => {}
                _ = ticks.tick() => coupling.tick(),
                () = &mut stopping => return,
            }
        }
    }

    /// Sends and receives until there is progress. Cancel safe.
    async fn make_progress(&mut self, coupling: &mut impl Coupling) {
        let (client, backend) = coupling.wires();
        let from_client = client.is_wanted() && backend.has_room();
        let from_backend = backend.is_wanted() && client.has_room();
        poll_fn(|context| {
            let client = self.client.poll(client, from_client, context);
            let backend = self.backend.poll(backend, from_backend, context);
            if client.is_ready() { client } else { backend }
        })
        .await;
    }

    /// Sends the rest and closes both connections. Until the server stops, the client may pause
    /// here, too, unless it has closed its sending side.
    pub(crate) async fn finish(self, coupling: &mut impl Coupling, stopping: &mut Stopping) {
        let Self { mut client, mut backend } = self;
        let (to_client, to_backend) = coupling.wires();
        let has_left = to_client.has_ended;
        let late = async {
            if !has_left {
                stopping.wait().await;
            }
            tokio::time::sleep(LAST_TIMEOUT).await;
        };
        let client = async {
            tokio::select! {
                // A client that fails or does not read the rest in time counts as gone.
                _ = client.finish(&mut to_client.outgoing) => {}
                () = late => {}
            }
        };
        let backend = async move {
            let last = backend.finish(&mut to_backend.outgoing);
            let _late = tokio::time::timeout(LAST_TIMEOUT, last).await.is_err();
        };
        tokio::join!(client, backend);
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> End<S> {
    const fn new(stream: S) -> Self {
        Self { stream, is_unflushed: false }
    }

    /// Ready after progress, or when the peer has left.
    fn poll(&mut self, wire: &mut Wire, receives: bool, context: &mut Context<'_>) -> Poll<()> {
        let sent = self.poll_send(&mut wire.outgoing, context);
        let received = if receives { self.poll_receive(wire, context) } else { Poll::Pending };
        match (sent, received) {
            (Poll::Ready(Err(_)), _) => {
                // The peer is gone; the rest is discarded.
                wire.outgoing.clear();
                wire.has_ended = true;
                Poll::Ready(())
            }
            (Poll::Ready(Ok(())), _) | (_, Poll::Ready(())) => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }

    fn poll_send(
        &mut self,
        outgoing: &mut BytesMut,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut has_sent = false;
        while !outgoing.is_empty() {
            match Pin::new(&mut self.stream).poll_write(context, outgoing) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(length)) => {
                    outgoing.advance(length);
                    (has_sent, self.is_unflushed) = (true, true);
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => break,
            }
        }
        if self.is_unflushed {
            match Pin::new(&mut self.stream).poll_flush(context) {
                Poll::Ready(Ok(())) => self.is_unflushed = false,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {}
            }
        }
        if has_sent { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn poll_receive(&mut self, wire: &mut Wire, context: &mut Context<'_>) -> Poll<()> {
        wire.incoming.reserve(READ_BYTES);
        let received = pin!(self.stream.read_buf(&mut wire.incoming)).poll(context);
        received.map(|received| wire.has_ended |= !received.is_ok_and(|length| length > 0))
    }

    async fn finish(&mut self, outgoing: &mut BytesMut) -> io::Result<()> {
        self.stream.write_all_buf(outgoing).await?;
        self.stream.flush().await?;
        self.stream.shutdown().await
    }
}

/// Sends the last bytes to a client and closes its connection.
pub(crate) async fn send_and_close(
    client: impl AsyncRead + AsyncWrite + Unpin,
    mut last: BytesMut,
) {
    let mut client = End::new(client);
    let _late = tokio::time::timeout(LAST_TIMEOUT, client.finish(&mut last)).await.is_err();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lifecycle::Lifecycle;
    use pintle_streams::Pipe;
    use tokio::io::duplex;

    #[tokio::test(start_paused = true)]
    async fn bytes_go_both_ways_until_one_side_ends() {
        let lifecycle = Lifecycle::new();
        let ((mut client, near), (far, mut backend)) = (duplex(64), duplex(64));
        let mut stopping = lifecycle.stopping();
        let session = tokio::spawn(async move {
            let (mut session, mut pipe) = (Session::new(near, far), Pipe::default());
            session.run(&mut pipe, &mut stopping).await;
            session.finish(&mut pipe, &mut stopping).await;
        });
        let long = vec![7; 1_000_000];
        let (sent, mut received) = (long.clone(), vec![0; long.len()]);
        let (written, read) =
            tokio::join!(client.write_all(&sent), backend.read_exact(&mut received));
        assert!(written.is_ok() && read.is_ok() && received == long);
        backend.write_all(b"last").await.unwrap();
        drop(backend);
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"last");
        session.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_when_the_server_stops_though_nobody_listens() {
        let lifecycle = Lifecycle::new();
        let ((client, near), (far, mut backend)) = (duplex(64), duplex(64));
        let mut stopping = lifecycle.stopping();
        let session = tokio::spawn(async move {
            let (mut session, mut pipe) = (Session::new(near, far), Pipe::default());
            session.run(&mut pipe, &mut stopping).await;
            session.finish(&mut pipe, &mut stopping).await;
        });
        backend.write_all(&[0; 60]).await.unwrap();
        backend.write_all(&[0; 60]).await.unwrap();
        lifecycle.stop();
        session.await.unwrap();
        drop((client, backend));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_may_delay_the_last_bytes() {
        let lifecycle = Lifecycle::new();
        let ((mut client, near), (far, mut backend)) = (duplex(64), duplex(1024));
        let mut stopping = lifecycle.stopping();
        let session = tokio::spawn(async move {
            let (mut session, mut pipe) = (Session::new(near, far), Pipe::default());
            session.run(&mut pipe, &mut stopping).await;
            session.finish(&mut pipe, &mut stopping).await;
        });
        backend.write_all(&[7; 1000]).await.unwrap();
        drop(backend);
        tokio::time::sleep(LAST_TIMEOUT * 100).await;
        let mut all = Vec::new();
        client.read_to_end(&mut all).await.unwrap();
        assert_eq!(all, [7; 1000]);
        session.await.unwrap();
    }
}

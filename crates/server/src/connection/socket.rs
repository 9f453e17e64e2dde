//! A connection's socket: its options, and the deadline for what is written to it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// A peer that has been silent for so long is asked whether it is still there, by the kernel …
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(60);
/// … and so often, in so many intervals of this length, before its connection is given up.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEP_ALIVE_PROBES: u32 = 4;
/// What was sent and is not acknowledged for so long ends the connection: the kernel would try again for
/// a quarter of an hour. As long as the questions above take.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(120);

/// A socket on which a write that makes no progress fails after a while.
///
/// Below TLS and HTTP, so that it holds for every byte of theirs and for what follows HTTP (WebSockets).
/// A kernel takes more bytes only when a good part of its buffer is free again, so a peer that takes a
/// few bytes now and then makes no progress either.
pub(super) struct Socket {
    stream: TcpStream,
    write_stall: Duration,
    /// Runs while a write waits. Writes that do not wait, nearly all, need no timer.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Socket {
    /// Takes over an accepted connection.
    pub(super) fn new(stream: TcpStream, write_stall: Duration) -> Self {
        if let Err(error) = set_options(&stream) {
            tracing::debug!(%error, "cannot set the options of a connection");
        }
        Self { stream, write_stall, deadline: None }
    }

    /// See [`TcpStream::peek`].
    pub(super) async fn peek(&self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.peek(bytes).await
    }

    /// Lets a write that waits fail when its time is over.
    fn bound<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.deadline = None;
            return written;
        }
        let write_stall = self.write_stall;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(write_stall)));
        deadline.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

fn set_options(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?; // small answers must not wait for more to send
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEP_ALIVE_AFTER)?;
    sockopt::set_tcp_keepintvl(stream, KEEP_ALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, KEEP_ALIVE_PROBES)?;
    #[cfg(target_os = "linux")]
    sockopt::set_tcp_user_timeout(stream, UNACKNOWLEDGED_MAX.as_millis() as u32)?;
    Ok(())
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, bytes)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.bound(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.bound(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

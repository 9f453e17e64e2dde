//! A connection's socket, with its options and the deadline of writes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::stall::Stall;
use super::state::ConnectionState;

/// The idle time after which the kernel sends keep-alive probes.
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(60);
/// The interval of these probes.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEP_ALIVE_PROBES: u32 = 4;
/// The time after which unacknowledged data ends the connection (the kernel's default is a quarter
/// of an hour). Keep-alive takes the same time.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(120);
/// Selects the kernel's default.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_DEFAULT: Duration = Duration::ZERO;

/// A socket on which a stalled write fails.
///
/// The socket is below TLS and HTTP, so the deadline covers all their bytes, and those of a
/// protocol that follows HTTP (WebSocket). The kernel reports room only when a good part of its
/// buffer is free, so a peer that reads a few bytes now and then counts as stalled, too.
pub(super) struct Socket {
    stream: TcpStream,
    connection: Arc<ConnectionState>,
    /// The timer of a blocked write. Most writes do not block and need none.
    stall: Option<Stall>,
    /// Whether the kernel's default timeout applies, because the peer may pause.
    may_pause: bool,
}

impl Socket {
    /// Sets the options of an accepted connection.
    pub(super) fn new(stream: TcpStream, connection: Arc<ConnectionState>) -> Self {
        if let Err(error) = set_options(&stream) {
            tracing::debug!(%error, "cannot set the options of a connection");
        }
        Self { stream, connection, stall: None, may_pause: false }
    }

    /// See [`TcpStream::peek`].
    pub(super) async fn peek(&self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.peek(bytes).await
    }

    /// Fails a blocked write when its deadline has passed.
    fn bound<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stall = None;
            return written;
        }
        let connection = &self.connection;
        let stall = self.stall.get_or_insert_with(|| Stall::begin(connection));
        ready!(stall.poll_too_long(connection, connection.may_pause(), context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Sets the kernel's default timeout during sessions: the short one would end a connection
    /// whose peer is alive but does not read.
    fn update_user_timeout(&mut self) {
        let may_pause = self.connection.may_pause();
        if may_pause == self.may_pause {
            return;
        }
        self.may_pause = may_pause;
        #[cfg(target_os = "linux")]
        {
            let time = if may_pause { UNACKNOWLEDGED_DEFAULT } else { UNACKNOWLEDGED_MAX };
            if let Err(error) = sockopt::set_tcp_user_timeout(&self.stream, time.as_millis() as u32)
            {
                tracing::debug!(%error, "cannot set the options of a connection");
            }
        }
    }
}

fn set_options(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?; // small responses are sent at once
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
        self.update_user_timeout();
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.bound(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.update_user_timeout();
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

//! A connection's socket: its options, and the deadline for what is written to it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::conduct::Conduct;
use super::stall::Stall;

/// A peer that has been silent for so long is asked whether it is still there, by the kernel …
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(60);
/// … and so often, in so many intervals of this length, before its connection is given up.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEP_ALIVE_PROBES: u32 = 4;
/// What was sent and is not acknowledged for so long ends the connection: the kernel would try again for
/// a quarter of an hour. As long as the questions above take.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(120);
/// The kernel's own time for that.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_DEFAULT: Duration = Duration::ZERO;

/// A socket on which a write that makes no progress fails after a while.
///
/// Below TLS and HTTP, so that it holds for every byte of theirs and for what follows HTTP (WebSockets).
/// A kernel takes more bytes only when a good part of its buffer is free again, so a peer that takes a
/// few bytes now and then makes no progress either.
pub(super) struct Socket {
    stream: TcpStream,
    conduct: Arc<Conduct>,
    /// Runs while a write waits. Writes that do not wait, nearly all, need no timer.
    stall: Option<Stall>,
    /// Whether the kernel knows that the peer may let wait what is sent.
    may_pause: bool,
}

impl Socket {
    /// Takes over an accepted connection.
    pub(super) fn new(stream: TcpStream, conduct: Arc<Conduct>) -> Self {
        if let Err(error) = set_options(&stream) {
            tracing::debug!(%error, "cannot set the options of a connection");
        }
        Self { stream, conduct, stall: None, may_pause: false }
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
            self.stall = None;
            return written;
        }
        let conduct = &self.conduct;
        let stall = self.stall.get_or_insert_with(|| Stall::begin(conduct));
        ready!(stall.poll_too_long(conduct, conduct.may_pause(), context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Tells the kernel of sessions: it would end a connection over which nothing is taken, though the peer
    /// answers that it is there.
    fn tell_of_sessions(&mut self) {
        let may_pause = self.conduct.may_pause();
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
        self.tell_of_sessions();
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.bound(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.tell_of_sessions();
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

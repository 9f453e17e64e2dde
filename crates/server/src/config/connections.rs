//! How many connections there may be, and how long each may take for what.

use std::time::Duration;

/// Limits of the listener. [`ConnectionLimits::default`] is what the program does; tests make them small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// How many connections are open at the same time; fewer where the process may not open so many
    /// files.
    pub connections_max: usize,
    /// A TLS handshake that takes longer is given up; the peer's first byte counts as a part of it.
    pub handshake: Duration,
    /// A connection over which nobody has been authenticated is closed when it is without a request for
    /// so long: before its first one, and between two. One whose headers are not complete is none.
    pub unauthenticated_idle: Duration,
    /// The same for a connection over which somebody has been authenticated.
    pub idle: Duration,
    /// How long a connection that is told to end has for it before it is cut off, and new requests over it
    /// are borne.
    pub leave: Duration,
    /// A peer that takes nothing of what is sent for so long loses the HTTP/2 stream, or the connection
    /// where that is all it has.
    pub write_stall: Duration,
    /// The same for sessions: logs, remote commands and what else comes from a backend as long as the client
    /// wants it. Those are the client's to pause.
    pub session_stall: Duration,
    /// How many sessions there are at the same time; each has a connection to a backend. Fewer where the
    /// process may not open so many files.
    pub sessions_max: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            // About 50 KB of memory each while they are idle.
            connections_max: 16_384,
            handshake: Duration::from_secs(10),
            // Upstream's `ReadHeaderTimeout`.
            unauthenticated_idle: Duration::from_secs(32),
            // Go's clients give idle connections up after 90 s, so they do it first.
            idle: Duration::from_secs(120),
            leave: Duration::from_secs(10),
            // Half of what upstream allows a whole answer.
            write_stall: Duration::from_secs(30),
            // What kubelets have (`--streaming-connection-idle-timeout`). Upstream has no bound of its own.
            session_stall: Duration::from_secs(4 * 60 * 60),
            // With what waits in both directions up to 300 KB of memory each.
            sessions_max: 4_096,
        }
    }
}

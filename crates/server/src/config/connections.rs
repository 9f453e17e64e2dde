//! The limits and deadlines of connections.

use std::time::Duration;

/// Limits of the listener. The program uses [`ConnectionLimits::default`]; tests use small limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// The number of open connections; fewer if the process's limit of open files is lower.
    pub connections_max: usize,
    /// The deadline of the TLS handshake, from the accepted connection on.
    pub handshake: Duration,
    /// The idle time after which a connection without an authenticated request is closed, before
    /// its first request and between two. Incomplete headers do not count as a request.
    pub unauthenticated_idle: Duration,
    /// The idle time after which a connection that had an authenticated request is closed.
    pub idle: Duration,
    /// The time between the notice that a connection ends (GOAWAY) and its end; new requests are
    /// served until then.
    pub leave: Duration,
    /// The time after which a stalled peer loses the HTTP/2 stream, or its HTTP/1.1 connection.
    pub write_stall: Duration,
    /// The stall time of sessions: logs, remote commands and other relayed bodies, which clients
    /// may pause.
    pub session_stall: Duration,
    /// The number of concurrent sessions, each with a connection to a backend; fewer if the
    /// process's limit of open files is lower.
    pub sessions_max: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            // About 50 KB of memory for each idle connection.
            connections_max: 16_384,
            handshake: Duration::from_secs(10),
            // Upstream's `ReadHeaderTimeout`.
            unauthenticated_idle: Duration::from_secs(32),
            // Go's clients close idle connections after 90 s, so the client closes first.
            idle: Duration::from_secs(120),
            leave: Duration::from_secs(10),
            // Half of the time that upstream allows for a whole response.
            write_stall: Duration::from_secs(30),
            // The kubelet's default (`--streaming-connection-idle-timeout`). Upstream's API server
            // has no limit.
            session_stall: Duration::from_secs(4 * 60 * 60),
            // Up to 300 KB of memory each, with the buffers of both directions.
            sessions_max: 4_096,
        }
    }
}

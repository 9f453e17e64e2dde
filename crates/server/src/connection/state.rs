//! The state of one open connection.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use http::Version;
use pintle_auth::{ANONYMOUS, User};
use tokio::sync::Notify;

use super::register::Register;
use crate::config::ConnectionLimits;

/// The requests of one connection, and whether it is closing. Shared by its task, its requests and
/// the [`Register`].
pub(crate) struct ConnectionState {
    id: u64,
    from: IpAddr,
    register: Arc<Register>,
    /// The number of requests that have begun.
    begun: AtomicU64,
    /// The number of them that have ended, by a complete response or an abort.
    ended: AtomicU64,
    /// True once a request has been authenticated.
    authenticated: AtomicBool,
    /// Whether the connection closes after its current requests.
    is_closing: AtomicBool,
    closing: Notify,
    /// The number of its sessions.
    sessions: AtomicUsize,
}

/// A session on the connection, which the client may pause.
pub(super) struct InSession(Arc<ConnectionState>);

/// A request that is handled or whose response is being sent.
#[derive(Clone)]
pub(super) struct Busy(#[expect(dead_code, reason = "dropped with the last clone")] Arc<Request>);

struct Request(Arc<ConnectionState>);

impl ConnectionState {
    pub(super) fn new(id: u64, from: IpAddr, register: Arc<Register>) -> Self {
        Self {
            id,
            from,
            register,
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            authenticated: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            closing: Notify::new(),
            sessions: AtomicUsize::new(0),
        }
    }

    pub(super) const fn id(&self) -> u64 {
        self.id
    }

    /// The limits of all connections.
    pub(super) fn limits(&self) -> &ConnectionLimits {
        self.register.limits()
    }

    /// The peer's address.
    pub(crate) const fn from(&self) -> IpAddr {
        self.from
    }

    /// Counts a new request.
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        self.begun.fetch_add(1, Ordering::Relaxed);
        Busy(Arc::new(Request(self.clone())))
    }

    /// Counts a new session.
    pub(super) fn begin_session(self: &Arc<Self>) -> InSession {
        self.sessions.fetch_add(1, Ordering::Relaxed);
        InSession(self.clone())
    }

    /// Whether the peer may stop reading for hours: the connection has sessions and is not closing.
    pub(super) fn may_pause(&self) -> bool {
        self.sessions.load(Ordering::Relaxed) > 0 && !self.is_closing()
    }

    /// The number of requests that have begun.
    pub(super) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Whether no request is handled and no response is being sent.
    pub(super) fn is_idle(&self) -> bool {
        // `ended` is read first, so that the difference is never too small.
        let ended = self.ended.load(Ordering::Acquire);
        self.begun() == ended
    }

    /// Records a request's user; `None` if authentication failed.
    ///
    /// The connection belongs to its first user. An HTTP/2 connection closes after a request
    /// without credentials, as in upstream (`UnauthenticatedHTTP2DOSMitigation`): one connection
    /// could carry very many.
    pub(crate) fn record_user(&self, user: Option<&User>, version: Version) {
        match user.filter(|user| user.name != ANONYMOUS) {
            Some(user) if !self.is_authenticated() => {
                self.authenticated.store(true, Ordering::Relaxed);
                self.register.belongs_to(self.id, &user.name);
            }
            None if version == Version::HTTP_2 => self.close(),
            _ => {}
        }
    }

    /// True once a request has been authenticated.
    pub(super) fn is_authenticated(&self) -> bool {
        self.authenticated.load(Ordering::Relaxed)
    }

    /// Makes the connection close after its current requests.
    pub(super) fn close(&self) {
        if !self.is_closing.swap(true, Ordering::Relaxed) {
            self.closing.notify_one();
        }
    }

    /// Whether the connection is closing.
    pub(super) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed)
    }

    /// Returns when the connection begins to close. Only its own task waits here.
    pub(super) async fn closing(&self) {
        self.closing.notified().await;
    }
}

impl Drop for InSession {
    fn drop(&mut self) {
        self.0.sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Release);
    }
}

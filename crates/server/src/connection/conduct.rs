//! What is known of one connection while it is open.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use http::Version;
use pintle_auth::{ANONYMOUS, User};
use tokio::sync::Notify;

use super::register::Register;
use crate::config::ConnectionLimits;

/// One connection's requests, and whether it is to end. Shared by its task, its requests and the
/// [`Register`].
pub(crate) struct Conduct {
    id: u64,
    from: IpAddr,
    register: Arc<Register>,
    /// How many requests have begun.
    begun: AtomicU64,
    /// How many of them are answered, to the last byte.
    ended: AtomicU64,
    /// Whether somebody has been authenticated over the connection.
    authenticated: AtomicBool,
    /// Whether the connection is to end when its requests have.
    leaves: AtomicBool,
    leave: Notify,
    /// How many sessions there are over the connection.
    sessions: AtomicUsize,
}

/// A session over a connection: what a client is sent as long as it wants it, and may let wait.
pub(super) struct InSession(Arc<Conduct>);

/// A request that is worked on, or whose answer is on its way.
#[derive(Clone)]
pub(super) struct Busy(#[expect(dead_code, reason = "dropped with the last clone")] Arc<Request>);

struct Request(Arc<Conduct>);

impl Conduct {
    pub(super) fn new(id: u64, from: IpAddr, register: Arc<Register>) -> Self {
        Self {
            id,
            from,
            register,
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            authenticated: AtomicBool::new(false),
            leaves: AtomicBool::new(false),
            leave: Notify::new(),
            sessions: AtomicUsize::new(0),
        }
    }

    pub(super) const fn id(&self) -> u64 {
        self.id
    }

    /// What holds for all connections.
    pub(super) fn limits(&self) -> &ConnectionLimits {
        self.register.limits()
    }

    /// Where it comes from.
    pub(crate) const fn from(&self) -> IpAddr {
        self.from
    }

    /// A request begins.
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        self.begun.fetch_add(1, Ordering::Relaxed);
        Busy(Arc::new(Request(self.clone())))
    }

    /// A session begins.
    pub(super) fn begin_session(self: &Arc<Self>) -> InSession {
        self.sessions.fetch_add(1, Ordering::Relaxed);
        InSession(self.clone())
    }

    /// Whether the peer may let wait what is sent: there are sessions, and they are not told to end.
    pub(super) fn may_pause(&self) -> bool {
        self.sessions.load(Ordering::Relaxed) > 0 && !self.leaves()
    }

    /// How many requests have begun.
    pub(super) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Whether no request is worked on or being answered.
    pub(super) fn is_idle(&self) -> bool {
        // The end first: the difference is never less than what is open.
        let ended = self.ended.load(Ordering::Acquire);
        self.begun() == ended
    }

    /// Hears who made a request; `None` where nobody could be authenticated.
    ///
    /// The connection counts as its first user's. Who sends requests over HTTP/2 without credentials
    /// loses the connection after them, as upstream has it (`UnauthenticatedHTTP2DOSMitigation`): over it
    /// one can send very many.
    pub(crate) fn asked(&self, user: Option<&User>, version: Version) {
        match user.filter(|user| user.name != ANONYMOUS) {
            Some(user) if !self.is_authenticated() => {
                self.authenticated.store(true, Ordering::Relaxed);
                self.register.belongs_to(self.id, &user.name);
            }
            None if version == Version::HTTP_2 => self.leave(),
            _ => {}
        }
    }

    /// Whether somebody has been authenticated.
    pub(super) fn is_authenticated(&self) -> bool {
        self.authenticated.load(Ordering::Relaxed)
    }

    /// Tells the connection to end when its requests have.
    pub(super) fn leave(&self) {
        if !self.leaves.swap(true, Ordering::Relaxed) {
            self.leave.notify_one();
        }
    }

    /// Whether the connection has been told to end.
    pub(super) fn leaves(&self) -> bool {
        self.leaves.load(Ordering::Relaxed)
    }

    /// Returns when the connection is told to end. For its one task.
    pub(super) async fn told_to_leave(&self) {
        self.leave.notified().await;
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

//! The connections that are open, whose they are, and which of them must go.
//!
//! What one peer can do to the others here is bounded by one rule: where there is no room for a new
//! connection, who holds most of them loses one. Before anybody is authenticated over it, a connection is
//! its address's, and such connections have a quarter of all room; then it is the user's. So connections
//! that say nothing, however many, take nothing from users, nor from other addresses; and those of one
//! user, whatever they do, take nothing from other users. Nobody waits to be accepted.
//!
//! Idle connections are found by a look at all of them every few seconds, so that requests need no timers.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::conduct::Conduct;
use crate::config::ConnectionLimits;

/// How often all connections are looked at, at most …
const LOOK_INTERVAL_MAX: Duration = Duration::from_secs(5);
/// … and how many times in the shortest time that one may be idle.
const LOOKS_PER_IDLE_TIME: u32 = 4;
/// The part of all connections that those may be over which nobody has been authenticated.
const UNAUTHENTICATED_SHARE: usize = 4;

/// All open connections.
pub(crate) struct Register {
    limits: ConnectionLimits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By number, and so by age.
    open: HashMap<u64, Open>,
    next_id: u64,
    owners: HashMap<Owner, BTreeSet<u64>>,
    unauthenticated: usize,
    /// How many were cut off to make room since the last look.
    cut_off: usize,
}

struct Open {
    conduct: Arc<Conduct>,
    /// Not there until it has been started.
    task: Option<AbortHandle>,
    owner: Owner,
    /// How many requests had begun at the last look.
    begun: u64,
    idle_since: Instant,
    /// Since when it has been told to end, as far as was noticed.
    leaves_since: Option<Instant>,
}

/// Whose a connection is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Owner {
    Address(IpAddr),
    User(Arc<str>),
}

/// A connection's entry; the connection is forgotten when this is dropped.
pub(super) struct Entry(Arc<Conduct>, Arc<Register>);

impl Entry {
    /// What is known of the connection.
    pub(super) fn conduct(&self) -> &Arc<Conduct> {
        &self.0
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.1.state.lock().forget(self.0.id());
    }
}

impl Register {
    pub(crate) fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self { limits, state: Mutex::default() })
    }

    pub(super) const fn limits(&self) -> &ConnectionLimits {
        &self.limits
    }

    /// Makes room for a connection from an address, and starts its task.
    pub(super) fn admit(
        self: &Arc<Self>,
        address: IpAddr,
        start: impl FnOnce(Entry) -> AbortHandle,
    ) {
        let unauthenticated_max = (self.limits.connections_max / UNAUTHENTICATED_SHARE).max(1);
        let mut state = self.state.lock();
        if state.unauthenticated >= unauthenticated_max {
            state.cut_off_one(|owner| matches!(owner, Owner::Address(_)));
        } else if state.open.len() >= self.limits.connections_max {
            state.cut_off_one(|_| true);
        }
        let id = state.next_id;
        state.next_id += 1;
        let conduct = Arc::new(Conduct::new(id, address, self.clone()));
        state.remember(conduct.clone(), Owner::of(address));
        drop(state);
        let task = start(Entry(conduct, self.clone()));
        // It may have ended already, and be forgotten.
        if let Some(open) = self.state.lock().open.get_mut(&id) {
            open.task = Some(task);
        }
    }

    /// Cuts off a connection, where there are no more file descriptors.
    pub(super) fn make_room(&self) {
        self.state.lock().cut_off_one(|_| true);
    }

    /// A connection is a user's from now on.
    pub(super) fn belongs_to(&self, id: u64, user: &str) {
        let mut state = self.state.lock();
        let owner = Owner::User(user.into());
        let Some(open) = state.open.get_mut(&id) else { return };
        let before = std::mem::replace(&mut open.owner, owner.clone());
        state.disown(id, &before);
        state.owners.entry(owner).or_default().insert(id);
    }

    /// Tells all connections to end when their requests have.
    pub(super) fn dismiss_all(&self) {
        self.state.lock().open.values().for_each(|open| open.conduct.leave());
    }

    /// Looks for connections that have been idle for too long, for ever.
    pub(super) async fn watch(&self) {
        let shortest = self.limits.idle.min(self.limits.unauthenticated_idle);
        let interval = (shortest / LOOKS_PER_IDLE_TIME).min(LOOK_INTERVAL_MAX);
        loop {
            tokio::time::sleep(interval).await;
            let mut state = self.state.lock();
            let now = Instant::now();
            state.open.values_mut().for_each(|open| open.look(now, &self.limits));
            let cut_off = std::mem::take(&mut state.cut_off);
            drop(state);
            if cut_off > 0 {
                tracing::warn!("{cut_off} connections were cut off to make room for new ones");
            }
        }
    }
}

impl State {
    /// Cuts off a connection of the owner that has most of them, among those that are `meant`: the oldest
    /// that is idle, or else the oldest.
    fn cut_off_one(&mut self, meant: impl Fn(&Owner) -> bool) {
        let owners = self.owners.iter().filter(|(owner, _)| meant(owner));
        let Some((_, ids)) = owners.max_by_key(|(_, ids)| ids.len()) else { return };
        let is_idle = |id: &&u64| self.open[*id].conduct.is_idle();
        let Some(id) = ids.iter().find(is_idle).or_else(|| ids.first()).copied() else { return };
        if let Some(open) = self.forget(id) {
            open.cut_off();
            self.cut_off += 1;
        }
    }

    fn remember(&mut self, conduct: Arc<Conduct>, owner: Owner) {
        let id = conduct.id();
        self.owners.entry(owner.clone()).or_default().insert(id);
        self.unauthenticated += 1;
        let idle_since = Instant::now();
        let open = Open { conduct, task: None, owner, begun: 0, idle_since, leaves_since: None };
        self.open.insert(id, open);
    }

    fn forget(&mut self, id: u64) -> Option<Open> {
        let open = self.open.remove(&id)?;
        self.disown(id, &open.owner);
        Some(open)
    }

    fn disown(&mut self, id: u64, owner: &Owner) {
        if matches!(owner, Owner::Address(_)) {
            self.unauthenticated -= 1;
        }
        if let Some(ids) = self.owners.get_mut(owner) {
            ids.remove(&id);
            if ids.is_empty() {
                self.owners.remove(owner);
            }
        }
    }
}

impl Open {
    fn look(&mut self, now: Instant, limits: &ConnectionLimits) {
        let begun = self.conduct.begun();
        let had_requests = std::mem::replace(&mut self.begun, begun) != begun;
        let is_idle = self.conduct.is_idle();
        if had_requests || !is_idle {
            self.idle_since = now;
        }
        let idle_max = match self.conduct.is_authenticated() {
            true => limits.idle,
            false => limits.unauthenticated_idle,
        };
        if now.duration_since(self.idle_since) >= idle_max {
            self.conduct.leave();
        }
        if !self.conduct.leaves() {
            return;
        }
        let since = *self.leaves_since.get_or_insert(now);
        if now.duration_since(since) >= limits.leave && (is_idle || had_requests) {
            self.cut_off();
        }
    }

    fn cut_off(&self) {
        self.task.iter().for_each(AbortHandle::abort);
    }
}

impl Owner {
    /// An address's. Who has one IPv6 address has 2^64 of them.
    fn of(address: IpAddr) -> Self {
        const NETWORK: u128 = !0 << 64;
        Self::Address(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from(u128::from(address) & NETWORK).into(),
            v4 => v4,
        })
    }
}

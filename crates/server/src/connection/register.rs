//! The register of open connections, their owners, and the choice of connections to close.
//!
//! Invariant: if there is no room for a new connection, the owner with the most connections loses
//! one. Until a request is authenticated, the owner of a connection is its address, and all such
//! connections have a quarter of the room; then the owner is the user. So silent connections,
//! however many, take nothing from users or from other addresses, and one user's connections take
//! nothing from other users. No client waits to be accepted.
//!
//! Idle connections are found by a scan every few seconds, so that requests need no timers.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::state::ConnectionState;
use crate::config::ConnectionLimits;

/// The longest interval of scans.
const SCAN_INTERVAL_MAX: Duration = Duration::from_secs(5);
/// The smallest number of scans in the shortest idle timeout.
const SCANS_PER_IDLE_TIME: u32 = 4;
/// The divisor of the share of connections that may lack an authenticated request.
const UNAUTHENTICATED_SHARE: usize = 4;

/// All open connections.
pub(crate) struct Register {
    limits: ConnectionLimits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By number, which is the order of age.
    open: HashMap<u64, Open>,
    next_id: u64,
    owners: HashMap<Owner, BTreeSet<u64>>,
    unauthenticated: usize,
    /// The connections aborted since the last scan to make room.
    cut_off: usize,
}

struct Open {
    connection: Arc<ConnectionState>,
    /// `None` until the task has been spawned.
    task: Option<AbortHandle>,
    owner: Owner,
    /// The number of requests that had begun at the last scan.
    begun: u64,
    idle_since: Instant,
    /// The time of the scan that first saw it closing.
    closing_since: Option<Instant>,
}

/// The owner of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Owner {
    Address(IpAddr),
    User(Arc<str>),
}

/// The entry of a connection; removed when dropped.
pub(super) struct Entry(Arc<ConnectionState>, Arc<Register>);

impl Entry {
    /// The connection's state.
    pub(super) fn connection(&self) -> &Arc<ConnectionState> {
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

    /// Makes room for a connection, registers it, and spawns its task.
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
        let connection = Arc::new(ConnectionState::new(id, address, self.clone()));
        state.remember(connection.clone(), Owner::of(address));
        drop(state);
        let task = start(Entry(connection, self.clone()));
        // The task may have ended already and removed the entry.
        if let Some(open) = self.state.lock().open.get_mut(&id) {
            open.task = Some(task);
        }
    }

    /// Aborts a connection when file descriptors run out.
    pub(super) fn make_room(&self) {
        self.state.lock().cut_off_one(|_| true);
    }

    /// Makes a user the owner of a connection.
    pub(super) fn belongs_to(&self, id: u64, user: &str) {
        let mut state = self.state.lock();
        let owner = Owner::User(user.into());
        let Some(open) = state.open.get_mut(&id) else { return };
        let before = std::mem::replace(&mut open.owner, owner.clone());
        state.disown(id, &before);
        state.owners.entry(owner).or_default().insert(id);
    }

    /// Makes all connections close after their current requests.
    pub(super) fn close_all(&self) {
        self.state.lock().open.values().for_each(|open| open.connection.close());
    }

    /// Scans for idle connections, forever.
    pub(super) async fn watch(&self) {
        let shortest = self.limits.idle.min(self.limits.unauthenticated_idle);
        let interval = (shortest / SCANS_PER_IDLE_TIME).min(SCAN_INTERVAL_MAX);
        loop {
            tokio::time::sleep(interval).await;
            let mut state = self.state.lock();
            let now = Instant::now();
            state.open.values_mut().for_each(|open| open.look(now, &self.limits));
            let cut_off = std::mem::take(&mut state.cut_off);
            drop(state);
            if cut_off > 0 {
                tracing::warn!(
                    "{cut_off} connections of the owners with the most connections were closed to make room for new ones"
                );
            }
        }
    }
}

impl State {
    /// Aborts a connection of the owner that has the most, among the owners that are `meant`: the
    /// owner's oldest idle connection, or else its oldest.
    fn cut_off_one(&mut self, meant: impl Fn(&Owner) -> bool) {
        let owners = self.owners.iter().filter(|(owner, _)| meant(owner));
        let Some((_, ids)) = owners.max_by_key(|(_, ids)| ids.len()) else { return };
        let is_idle = |id: &&u64| self.open[*id].connection.is_idle();
        let Some(id) = ids.iter().find(is_idle).or_else(|| ids.first()).copied() else { return };
        if let Some(open) = self.forget(id) {
            open.cut_off();
            self.cut_off += 1;
        }
    }

    fn remember(&mut self, connection: Arc<ConnectionState>, owner: Owner) {
        let id = connection.id();
        self.owners.entry(owner.clone()).or_default().insert(id);
        self.unauthenticated += 1;
        let idle_since = Instant::now();
        let open =
            Open { connection, task: None, owner, begun: 0, idle_since, closing_since: None };
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
        let begun = self.connection.begun();
        let had_requests = std::mem::replace(&mut self.begun, begun) != begun;
        let is_idle = self.connection.is_idle();
        if had_requests || !is_idle {
            self.idle_since = now;
        }
        let idle_max = match self.connection.is_authenticated() {
            true => limits.idle,
            false => limits.unauthenticated_idle,
        };
        if now.duration_since(self.idle_since) >= idle_max {
            self.connection.close();
        }
        if !self.connection.is_closing() {
            return;
        }
        let since = *self.closing_since.get_or_insert(now);
        if now.duration_since(since) >= limits.leave && (is_idle || had_requests) {
            self.cut_off();
        }
    }

    fn cut_off(&self) {
        self.task.iter().for_each(AbortHandle::abort);
    }
}

impl Owner {
    /// The owner of an address. An IPv6 client has a /64 of addresses, so the prefix counts.
    fn of(address: IpAddr) -> Self {
        const NETWORK: u128 = !0 << 64;
        Self::Address(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from(u128::from(address) & NETWORK).into(),
            v4 => v4,
        })
    }
}

//! Leases for keys with a lifetime. They are granted and never kept alive, and many writes share a
//! lease, as in upstream (apiserver/pkg/storage/etcd3/lease_manager.go).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::client::Etcd;
use crate::error::Error;
use crate::measures::Measures;

/// The longest time for which new writes join a lease, unless --lease-reuse-duration-seconds sets
/// another. A lease of a short lifetime is joined for 5 % of the lifetime.
pub(crate) const REUSE: Duration = Duration::from_secs(60);

/// The most writes that share a lease, because etcd deletes all keys of an expired lease at once.
const WRITES_MAX: usize = 1000;

/// The leases that new writes can join, by their TTL.
pub(crate) struct Leases {
    reuse: Duration,
    measures: Arc<Measures>,
    by_ttl: Mutex<HashMap<i64, Lease>>,
}

/// The ID of a lease, or why etcd did not grant it. All writes that share the lease wait for one
/// grant.
type Granted = OnceCell<Result<i64, Error>>;

struct Lease {
    granted: Arc<Granted>,
    until: Instant,
    writes: usize,
}

impl Leases {
    pub(crate) fn new(reuse: Duration, measures: Arc<Measures>) -> Self {
        Self { reuse, measures, by_ttl: Mutex::default() }
    }

    /// Returns a lease that ends after `lifetime`, or a little later.
    pub(crate) async fn lease(&self, etcd: &dyn Etcd, lifetime: Duration) -> Result<i64, Error> {
        // As upstream, the TTL is longer than requested by 5 %, but at most by the reuse duration.
        let ttl = lifetime + self.reuse.min(lifetime / 20);
        let ttl_seconds = i64::try_from(ttl.as_secs().max(1)).unwrap_or(i64::MAX);
        // The TTL is in whole seconds, so less than the 5 % may be left for others to join.
        let reuse = Duration::from_secs(ttl_seconds.unsigned_abs()).saturating_sub(lifetime);
        let granted = self.join(ttl_seconds, reuse);
        let grant = async || Ok(etcd.grant(ttl_seconds).await?.id);
        granted.get_or_init(grant).await.clone()
    }

    /// Returns the lease that a write shares: a current one, or else a new one, which others can
    /// join for the time `reuse`.
    fn join(&self, ttl_seconds: i64, reuse: Duration) -> Arc<Granted> {
        let mut by_ttl = self.by_ttl.lock();
        let now = Instant::now();
        by_ttl.retain(|_, lease| {
            let has_failed = matches!(lease.granted.get(), Some(Err(_)));
            let is_good = lease.until > now && lease.writes < WRITES_MAX;
            if !is_good && !has_failed {
                self.measures.lease_objects.observe(lease.writes as u64);
            }
            is_good && !has_failed
        });
        let new = || Lease { granted: Arc::default(), until: now + reuse, writes: 0 };
        let lease = by_ttl.entry(ttl_seconds).or_insert_with(new);
        lease.writes += 1;
        lease.granted.clone()
    }

    /// Stops the use of all current leases, because one of them no longer exists.
    pub(crate) fn clear(&self) {
        self.by_ttl.lock().clear();
    }
}

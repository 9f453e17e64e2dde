//! Leases for what is to be deleted after a while. They are granted and never kept alive, and many writes
//! share one, as in upstream (apiserver/pkg/storage/etcd3/lease_manager.go).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::client::Etcd;
use crate::error::Error;
use crate::measures::Measures;

/// How long a lease is given to further writes, unless --lease-reuse-duration-seconds says otherwise.
pub(crate) const REUSE: Duration = Duration::from_secs(60);

/// How many writes share a lease: etcd deletes all that a lease has at once.
const WRITES_MAX: usize = 1000;

/// The leases that further writes are given, by what they are granted for.
pub(crate) struct Leases {
    reuse: Duration,
    measures: Arc<Measures>,
    by_ttl: Mutex<HashMap<i64, Lease>>,
}

struct Lease {
    id: i64,
    until: Instant,
    writes: usize,
}

impl Leases {
    pub(crate) fn new(reuse: Duration, measures: Arc<Measures>) -> Self {
        Self { reuse, measures, by_ttl: Mutex::default() }
    }

    /// A lease that ends after `lifetime`, or a little later.
    pub(crate) async fn lease(&self, etcd: &dyn Etcd, lifetime: Duration) -> Result<i64, Error> {
        // As upstream: longer than asked for, by 5 % and no more than it is reused.
        let ttl = lifetime + self.reuse.min(lifetime / 20);
        let ttl_seconds = i64::try_from(ttl.as_secs().max(1)).unwrap_or(i64::MAX);
        let mut by_ttl = self.by_ttl.lock().await;
        let now = Instant::now();
        by_ttl.retain(|_, lease| {
            let is_good = lease.until > now && lease.writes < WRITES_MAX;
            if !is_good {
                self.measures.lease_objects.observe(lease.writes as u64);
            }
            is_good
        });
        if let Some(lease) = by_ttl.get_mut(&ttl_seconds) {
            lease.writes += 1;
            return Ok(lease.id);
        }
        let id = etcd.grant(ttl_seconds).await?.id;
        let until = now + self.reuse.min(lifetime / 20);
        by_ttl.insert(ttl_seconds, Lease { id, until, writes: 1 });
        Ok(id)
    }

    /// Gives leases to no further write, because one of them is gone.
    pub(crate) async fn forget(&self) {
        self.by_ttl.lock().await.clear();
    }
}

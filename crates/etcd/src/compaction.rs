//! Compaction that is shared with all other servers on the database, as kube-apiservers do it: at
//! every interval each server tries to write a shared key. The server that succeeds compacts to the
//! revision of its previous try, and the others record that revision as their floor (upstream:
//! apiserver/pkg/storage/etcd3/compact.go).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pintle_store::Revision;

use crate::client::Etcd;
use crate::error::Error;
use crate::horizon::Horizon;
use crate::reading::Reading;
use crate::transaction::put_if_version;
use crate::translation::{number, revision};

/// The shared key. It is not below the prefix.
const SHARED_KEY: &[u8] = b"compact_rev_key";

/// The last known state of the shared key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Known {
    /// The key's version (the number of its writes).
    version: i64,
    /// The database's revision at the last try.
    seen: Revision,
}

/// Takes part in the compaction until the task is aborted.
pub(crate) async fn run(reading: Reading, horizon: Arc<Horizon>, interval: Duration) {
    let mut known = Known::default();
    loop {
        tokio::time::sleep(interval).await;
        match try_once(&*reading.etcd, &horizon, known).await {
            Ok(next) => known = next,
            Err(error) => {
                tracing::warn!(%error, "cannot compact etcd; will try again after the interval")
            }
        }
    }
}

/// Tries to write the shared key, and compacts after a success.
async fn try_once(etcd: &dyn Etcd, horizon: &Horizon, known: Known) -> Result<Known, Error> {
    let (key, value) = (Bytes::from_static(SHARED_KEY), Bytes::from(known.seen.to_string()));
    let response = etcd.txn(put_if_version(key, known.version, value)).await?;
    let seen = revision(response.header.revision);
    if response.succeeded {
        if known.seen > Revision(0) {
            compact(etcd, horizon, known.seen).await?;
        }
        return Ok(Known { version: known.version + 1, seen });
    }
    let current = response.responses.into_iter().next().and_then(|response| response.range);
    let current = current.and_then(|range| range.kvs.into_iter().next());
    let Some(current) = current else { return Ok(Known { version: 0, seen }) };
    // The server that succeeded compacts to this revision.
    let floor = std::str::from_utf8(&current.value).ok().and_then(|text| text.parse().ok());
    if let Some(floor) = floor {
        horizon.raise_floor(Revision(floor));
    }
    Ok(Known { version: current.version, seen })
}

/// Compacts the history before `floor`, after waiting until no reader of this process needs it.
pub(crate) async fn compact(
    etcd: &dyn Etcd,
    horizon: &Horizon,
    floor: Revision,
) -> Result<(), Error> {
    horizon.raise_floor(floor);
    horizon.unpinned_below(floor).await;
    match etcd.compact(number(floor).unwrap_or(i64::MAX)).await {
        Ok(_) | Err(Error::Compacted) => Ok(()),
        Err(error) => Err(error),
    }
}

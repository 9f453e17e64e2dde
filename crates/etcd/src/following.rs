//! Registration of a new follower: it gets the state and every later write until it has all that
//! the other followers had when it subscribed. The rest waits in its subscription.
//!
//! It must not know how writes are made.

use std::sync::Arc;
use std::time::Duration;

use pintle_store::{Follower, Record, Revision};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::assembly::{Assembly, Progress, Step};
use crate::error::Error;
use crate::feed::{Job, begin, records};
use crate::horizon::Horizon;
use crate::reading::{Reading, on_blocking_thread};
use crate::subscription::Subscription;
use crate::translation::number;

/// How long a new follower's watch waits for a message before progress is requested.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(20);

/// The most revisions before the head that a new follower gets one by one. History that is not
/// compacted may be the writes of days, and a start must not read all of them. Older states can
/// still be read, but a watch cannot resume from them.
const REPLAYED_REVISIONS_MAX: u64 = 10_000;

/// How often a new follower begins again because too much waited for it. Then it is slower than the
/// writers, and will not have their writes.
const ATTEMPTS_MAX: usize = 5;

/// Gives a follower the state at the floor, or at the newer revision from which it replays, and
/// every later write.
pub(crate) async fn follow(
    reading: &Reading,
    progress: Progress,
    horizon: &Horizon,
    jobs: &mpsc::Sender<Job>,
    follower: Arc<dyn Follower>,
) -> Result<(), Error> {
    let pin = horizon.pin();
    let first = Revision(horizon.head().0.saturating_sub(REPLAYED_REVISIONS_MAX)).max(pin.revision);
    let (state, mut seen) = match reading.state(number(first)).await {
        // Another process compacted that revision meanwhile.
        Err(Error::Compacted) => reading.state(None).await?,
        state => state?,
    };
    send_state(&follower, state, seen, pin.revision).await;
    for _ in 0..ATTEMPTS_MAX {
        let (subscribed, head) = subscribe(jobs, &follower).await?;
        let subscription = subscribed.0.clone();
        seen = read_until(reading, progress, &follower, seen, head, &subscription).await?;
        if on_blocking_thread(move || subscription.serve(seen)).await {
            return Ok(());
        }
        seen = renew(reading, &follower).await?;
    }
    Err(Error::Lost("writes arrive faster than a new follower can take them".to_owned()))
}

/// A subscription that ends with this value, unless its follower is served by then.
struct Subscribed(Arc<Subscription>);

impl Drop for Subscribed {
    fn drop(&mut self) {
        self.0.give_up();
    }
}

/// Subscribes a follower; returns the head before the changes that wait for it.
async fn subscribe(
    jobs: &mpsc::Sender<Job>,
    follower: &Arc<dyn Follower>,
) -> Result<(Subscribed, Revision), Error> {
    let subscribed = Subscribed(Arc::new(Subscription::new(follower.clone())));
    let (reply, head) = oneshot::channel();
    let _ = jobs.send(Job::Subscribe { subscription: subscribed.0.clone(), reply }).await;
    let head = head.await.map_err(|_| Error::Lost("the store is closed".to_owned()))?;
    Ok((subscribed, head))
}

/// Gives a follower that has everything up to `seen` the changes up to `head`, or to a newer
/// revision, which is returned. It ends early if the subscription replaces these changes.
async fn read_until(
    reading: &Reading,
    progress: Progress,
    follower: &Arc<dyn Follower>,
    mut seen: Revision,
    head: Revision,
    subscription: &Subscription,
) -> Result<Revision, Error> {
    let mut watch = None;
    let mut assembly = Assembly::after(seen, progress);
    while seen < head && !subscription.replaces_reading() {
        let open = match &mut watch {
            Some(open) => open,
            None => watch.insert(begin(reading, &assembly, progress).await?),
        };
        let message = match timeout(PROGRESS_INTERVAL, open.next()).await {
            Ok(message) => message?,
            Err(_) => {
                if progress == Progress::Requested {
                    open.request_progress()?;
                }
                continue;
            }
        };
        match assembly.take(message) {
            Step::Nothing => {}
            Step::Emit(events, to) => {
                let records = records(reading, events, None).await;
                let follower = follower.clone();
                on_blocking_thread(move || follower.apply(&records, to)).await;
                seen = to;
            }
            Step::Compacted => {
                seen = renew(reading, follower).await?;
                (assembly, watch) = (Assembly::after(seen, progress), None);
            }
            Step::Ended(why) => return Err(Error::Lost(why)),
        }
    }
    Ok(seen)
}

/// Replaces everything that a follower has by the newest state; returns its revision.
async fn renew(reading: &Reading, follower: &Arc<dyn Follower>) -> Result<Revision, Error> {
    let (state, head) = reading.state(None).await?;
    let follower = follower.clone();
    on_blocking_thread(move || follower.reset(&state, head)).await;
    Ok(head)
}

/// About how many records of a state a follower gets in one call. There are more if several records
/// have the revision of the last.
const STATE_RECORDS: usize = 256;

/// Gives a follower the state at a revision, ordered by revision, with the records of one revision
/// in one call. A state that is newer than the floor is a reset, with a history that starts there.
/// It runs on a blocking thread, so that a slow follower does not block the connections to etcd.
async fn send_state(
    follower: &Arc<dyn Follower>,
    state: Vec<Record>,
    at: Revision,
    floor: Revision,
) {
    let follower = follower.clone();
    on_blocking_thread(move || {
        if at > floor {
            return follower.reset(&state, at);
        }
        let mut rest = &state[..];
        while let Some(last) = rest.get(STATE_RECORDS - 1) {
            let last = last.revision;
            let (now, later) = rest.split_at(rest.partition_point(|r| r.revision <= last));
            follower.apply(now, last);
            rest = later;
        }
        follower.apply(rest, at);
    })
    .await;
}

//! Registration of a new follower: it gets the state and every later write until it has all that
//! the other followers have.
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
use crate::translation::number;

/// How long a new follower's watch waits for a message before the publisher is asked again.
const REGISTER_INTERVAL: Duration = Duration::from_millis(20);

/// The most revisions before the head that a new follower gets one by one. History that is not
/// compacted may be the writes of days, and a start must not read all of them. Older states can
/// still be read, but a watch cannot resume from them.
const REPLAYED_REVISIONS_MAX: u64 = 10_000;

/// Gives a follower the state at the floor, or at the newer revision from which it replays, and
/// every later write, then registers it with the publisher.
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
    let mut watch = None;
    let mut assembly = Assembly::after(seen, progress);
    loop {
        let (reply, adopted) = oneshot::channel();
        let _ = jobs.send(Job::AddFollower { follower: follower.clone(), seen, reply }).await;
        match adopted.await {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(_) => return Err(Error::Lost("the store is closed".to_owned())),
        }
        if watch.is_none() {
            watch = Some(begin(reading, &assembly, progress).await?);
        }
        let Some(open) = watch.as_mut() else { continue };
        let message = match timeout(REGISTER_INTERVAL, open.next()).await {
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
            Step::Emit(events, head) => {
                let records = records(reading, events, None).await;
                let follower = follower.clone();
                on_blocking_thread(move || follower.apply(&records, head)).await;
                seen = head;
            }
            Step::Compacted => {
                let (state, head) = reading.state(None).await?;
                let follower = follower.clone();
                on_blocking_thread(move || follower.reset(&state, head)).await;
                (seen, watch) = (head, None);
                assembly = Assembly::after(seen, progress);
            }
            Step::Ended(why) => return Err(Error::Lost(why)),
        }
    }
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

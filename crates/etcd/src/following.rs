//! How a new follower is taken on: it is told the state and every write since, until it has all that the others
//! have.
//!
//! Must not know: how writes are made.

use std::sync::Arc;
use std::time::Duration;

use pintle_store::{Follower, Record, Revision};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::assembly::{Assembly, Progress, Step};
use crate::error::Error;
use crate::feed::{Job, begin, records};
use crate::horizon::Horizon;
use crate::reading::{Reading, aside};
use crate::translation::number;

/// How long a new follower's watch waits for a message before the second task is asked again.
const ADOPT_AGAIN: Duration = Duration::from_millis(20);

/// How many revisions before the head a new follower is told one by one at most. Nothing is lost but that
/// a watch cannot go on from before them: what is not compacted may be the writes of days, and a start must
/// not read them all again. Older states can still be read.
const TOLD_ONE_BY_ONE: u64 = 10_000;

/// Gives a follower the state at the floor, or the newer one from which it is told each write, and every write
/// since, and then has the second task go on.
pub(crate) async fn follow(
    reading: &Reading,
    progress: Progress,
    horizon: &Horizon,
    jobs: &mpsc::Sender<Job>,
    follower: Arc<dyn Follower>,
) -> Result<(), Error> {
    let pin = horizon.pin();
    let first = Revision(horizon.head().0.saturating_sub(TOLD_ONE_BY_ONE)).max(pin.revision);
    let (state, mut seen) = match reading.state(number(first)).await {
        // Another process compacts.
        Err(Error::Compacted) => reading.state(None).await?,
        state => state?,
    };
    give_state(&follower, state, seen, pin.revision).await;
    let mut watch = None;
    let mut assembly = Assembly::after(seen, progress);
    loop {
        let (reply, adopted) = oneshot::channel();
        let _ = jobs.send(Job::Adopt { follower: follower.clone(), seen, reply }).await;
        match adopted.await {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(_) => return Err(Error::Lost("the store is closed".to_owned())),
        }
        if watch.is_none() {
            watch = Some(begin(reading, &assembly, progress).await?);
        }
        let Some(open) = watch.as_mut() else { continue };
        let message = match timeout(ADOPT_AGAIN, open.next()).await {
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
            Step::Told(events, head) => {
                let records = records(reading, events, None).await;
                let follower = follower.clone();
                aside(move || follower.apply(&records, head)).await;
                seen = head;
            }
            Step::Compacted => {
                let (state, head) = reading.state(None).await?;
                follower.reset(&state, head);
                (seen, watch) = (head, None);
                assembly = Assembly::after(seen, progress);
            }
            Step::Ended(why) => return Err(Error::Lost(why)),
        }
    }
}

/// How many records of a state a follower is given at once.
const STATE_RECORDS: usize = 256;

/// Gives a follower the state at a revision, in the order of revisions, and those of one revision at once;
/// where it is newer than the floor, as a history that begins there. A follower that takes its time at the
/// start must not hold up the connections to etcd.
async fn give_state(
    follower: &Arc<dyn Follower>,
    state: Vec<Record>,
    at: Revision,
    floor: Revision,
) {
    let follower = follower.clone();
    aside(move || {
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

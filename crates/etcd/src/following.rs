//! Registration of a new follower: it reads the state and the history while later changes wait for
//! it ([`Recipient`]).
//!
//! It must not know how writes are made.

use std::sync::Arc;
use std::time::Duration;

use pintle_store::{Follower, Record, Revision};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::assembly::{Assembly, Progress, Step};
use crate::error::Error;
use crate::feed::{Job, Passed, begin, records};
use crate::horizon::Horizon;
use crate::reading::{Reading, on_blocking_thread};
use crate::recipient::Recipient;
use crate::translation::number;

/// How long a new follower's watch waits for a message before progress is requested.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(20);

/// The most revisions before the head that a new follower gets one by one. History that is not
/// compacted may be the writes of days, and a start must not read all of them. Older states can
/// still be read, but a watch cannot resume from them.
const REPLAYED_REVISIONS_MAX: u64 = 10_000;

/// Gives a follower the state at the floor, or at the newer revision from which it replays, and
/// every later write.
pub(crate) async fn follow(
    reading: &Reading,
    progress: Progress,
    horizon: &Horizon,
    jobs: &mpsc::Sender<Job>,
    follower: Arc<dyn Follower>,
) -> Result<(), Error> {
    // It is a recipient before it reads, so that it misses no loss of history.
    let (mut joining, mut passed) = join(jobs, &follower).await?;
    let pin = horizon.pin();
    let first = Revision(horizon.head().0.saturating_sub(REPLAYED_REVISIONS_MAX)).max(pin.revision);
    let (state, mut seen) = match reading.state(number(first)).await {
        // Another process compacted that revision meanwhile.
        Err(Error::Compacted) => reading.state(None).await?,
        state => state?,
    };
    send_state(&follower, state, seen, pin.revision).await;
    loop {
        let recipient = joining.0.clone();
        seen = read_until(reading, progress, &follower, seen, passed.head, &recipient).await?;
        match on_blocking_thread(move || Some(recipient.serve(seen))).await {
            Some(Ok(())) => return Ok(()),
            Some(Err(reached)) => seen = reached,
            None => return Err(Error::Lost("the server ends".to_owned())),
        }
        // Too much waited for the follower. It goes on from where it is.
        let resets = passed.resets;
        (joining, passed) = join(jobs, &follower).await?;
        if passed.resets != resets {
            seen = renew(reading, &follower).await?;
        }
    }
}

/// A recipient that leaves when this value is dropped, unless its follower is served by then.
struct Joining(Arc<Recipient>);

impl Drop for Joining {
    fn drop(&mut self) {
        self.0.give_up();
    }
}

/// Makes a follower a recipient; returns what was passed on before the changes that wait for it.
async fn join(
    jobs: &mpsc::Sender<Job>,
    follower: &Arc<dyn Follower>,
) -> Result<(Joining, Passed), Error> {
    let joining = Joining(Arc::new(Recipient::new(follower.clone())));
    let (reply, passed) = oneshot::channel();
    let _ = jobs.send(Job::Add { recipient: joining.0.clone(), reply }).await;
    let passed = passed.await.map_err(|_| Error::Lost("the store is closed".to_owned()))?;
    Ok((joining, passed))
}

/// Gives a follower that has everything up to `seen` the changes up to `head`, or to a newer
/// revision, which is returned. It ends early if that is of no use.
async fn read_until(
    reading: &Reading,
    progress: Progress,
    follower: &Arc<dyn Follower>,
    mut seen: Revision,
    head: Revision,
    recipient: &Recipient,
) -> Result<Revision, Error> {
    let mut watch = None;
    let mut assembly = Assembly::after(seen, progress);
    while seen < head && !recipient.ends_reading() {
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

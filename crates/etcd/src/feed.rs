//! What followers are told: from etcd's watch to their calls, in order.
//!
//! Two tasks: one reads the watch as fast as it comes, since etcd before 3.5.13 loses events of a watch
//! that is not read (etcd issue 17529), and begins it anew where it ends; the other makes records of
//! events, and gives them to the followers.
//!
//! Must not know: how writes are made.
//!
//! Invariant: followers have the state at a revision and every event after it, once and in order; where
//! that cannot be (compaction, a restored backup), they are given the state anew.

use std::sync::Arc;
use std::time::Duration;

use pintle_store::{Follower, Record, Revision};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until};

use crate::assembly::{Assembly, Progress, Step};
use crate::channel::SILENCE_MAX;
use crate::client::Watch;
use crate::error::Error;
use crate::health::Health;
use crate::horizon::Horizon;
use crate::messages::{Event, EventType, ResponseHeader, WatchCreateRequest};
use crate::own::Own;
use crate::reading::{Reading, aside};
use crate::translation::number;

/// How many messages wait for the followers at most.
const MESSAGES_MAX: usize = 1024;

/// How soon progress is asked for when somebody waits, as the event mostly comes by itself, and how often
/// from then on; upstream asks every 100 ms.
const PROGRESS_FIRST: Duration = Duration::from_millis(5);
const PROGRESS_AGAIN: Duration = Duration::from_millis(100);

/// How long it takes until a watch that could not be begun is tried again, at first and at most.
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_LAST: Duration = Duration::from_millis(500);

/// The most time that a watch may tell nothing while somebody waits for a newer revision. The time doubles after
/// each watch that brought nothing, so that a slow member is not left again and again.
const SILENCE_LAST: Duration = Duration::from_secs(8);

/// Values of a message from which on they are decoded where it keeps nobody waiting.
const DECODED_INLINE_BYTES_MAX: usize = 64 << 10;

/// What the second task is asked to do.
pub(crate) enum Job {
    Tell(Vec<Event>, Revision),
    /// The state at the head, with the floor.
    Reset {
        state: Vec<Record>,
        head: Revision,
        floor: Revision,
    },
    /// Takes on a follower that has everything up to a revision, if that is all that others have.
    Adopt {
        follower: Arc<dyn Follower>,
        seen: Revision,
        reply: oneshot::Sender<bool>,
    },
}

/// The first task.
pub(crate) struct Feed {
    pub(crate) reading: Reading,
    pub(crate) progress: Progress,
    pub(crate) horizon: Arc<Horizon>,
    pub(crate) health: Arc<Health>,
    pub(crate) jobs: mpsc::Sender<Job>,
}

/// Why a watch is over.
enum Over {
    /// It can go on where it was.
    Interrupted(String),
    /// What comes next is compacted.
    Compacted,
    /// Nobody follows any more.
    Closed,
}

/// The way to the second task.
pub(crate) fn jobs() -> (mpsc::Sender<Job>, mpsc::Receiver<Job>) {
    mpsc::channel(MESSAGES_MAX)
}

impl Feed {
    /// Runs until nobody takes what it tells. Followers have everything up to the header's revision.
    pub(crate) async fn run(self, mut history: ResponseHeader) {
        let mut assembly = self.assembly(self.horizon.head());
        let (mut retry, mut silence_max) = (RETRY_FIRST, SILENCE_MAX);
        loop {
            let before = assembly.next();
            let over = self.watch(&mut assembly, silence_max).await;
            assembly.interrupt();
            silence_max = (silence_max * 2).min(SILENCE_LAST);
            if assembly.next() > before {
                (retry, silence_max) = (RETRY_FIRST, SILENCE_MAX);
            }
            let is_lost = match over {
                Over::Closed => return,
                Over::Compacted => true,
                Over::Interrupted(why) => {
                    tracing::info!(why, "the watch of etcd was interrupted");
                    pause(&mut retry).await;
                    match self.reading.header().await {
                        Ok(now) => {
                            let is_lost = is_other(&history, assembly.next(), &now);
                            history = now;
                            is_lost
                        }
                        Err(error) => {
                            self.health.failed(&error);
                            continue;
                        }
                    }
                }
            };
            if is_lost {
                match self.reset().await {
                    Ok((head, header)) => {
                        assembly = self.assembly(head);
                        history = header;
                    }
                    Err(error) => {
                        tracing::warn!(%error, "etcd's state cannot be read anew");
                        pause(&mut retry).await;
                    }
                }
            }
        }
    }

    const fn assembly(&self, told: Revision) -> Assembly {
        Assembly::after(told, self.progress)
    }

    /// Watches from where the assembly is, until that is over.
    async fn watch(&self, assembly: &mut Assembly, silence_max: Duration) -> Over {
        let mut watch = match begin(&self.reading, assembly, self.progress).await {
            Ok(watch) => watch,
            Err(error) => return Over::Interrupted(error.to_string()),
        };
        let (mut ask_at, mut silent): (Option<Instant>, Option<Instant>) = (None, None);
        loop {
            let message = tokio::select! {
                biased;
                message = watch.next() => message,
                () = self.horizon.wanted.notified() => {
                    ask_at = ask_at.or(Some(Instant::now() + PROGRESS_FIRST));
                    continue;
                }
                () = sleep_until(ask_at.unwrap_or_else(Instant::now)), if ask_at.is_some() => {
                    ask_at = None;
                    if !self.horizon.is_behind() {
                        silent = None;
                        continue;
                    }
                    // What the watch has told may still be on its way to the followers.
                    let lacks = self.horizon.is_wanted(assembly.next());
                    silent = lacks.then(|| silent.unwrap_or_else(Instant::now));
                    if silent.is_some_and(|since| since.elapsed() >= silence_max) {
                        self.reading.etcd.leave_watched();
                        return Over::Interrupted("the member has become silent".to_owned());
                    }
                    if self.progress == Progress::Requested
                        && let Err(error) = watch.request_progress()
                    {
                        return Over::Interrupted(error.to_string());
                    }
                    ask_at = Some(Instant::now() + PROGRESS_AGAIN);
                    continue;
                }
                () = self.jobs.closed() => return Over::Closed,
                () = self.health.history_lost() => {
                    return Over::Interrupted("the database is older than it was".to_owned());
                }
            };
            silent = None;
            let step = match message {
                Ok(message) => {
                    self.reading.measures.progress.add(u64::from(message.is_progress()));
                    assembly.take(message)
                }
                Err(error) => return Over::Interrupted(error.to_string()),
            };
            match step {
                Step::Nothing => {}
                Step::Told(events, head) => {
                    if self.jobs.send(Job::Tell(events, head)).await.is_err() {
                        return Over::Closed;
                    }
                }
                Step::Compacted => return Over::Compacted,
                Step::Ended(why) => return Over::Interrupted(why),
            }
        }
    }

    /// Reads the state anew, and has followers given it.
    async fn reset(&self) -> Result<(Revision, ResponseHeader), Error> {
        let header = self.reading.header().await?;
        let (state, head) = self.reading.state(None).await?;
        let floor = self.reading.floor().await?;
        tracing::warn!(%head, "etcd's history is lost; its state was read anew");
        let _ = self.jobs.send(Job::Reset { state, head, floor }).await;
        Ok((head, header))
    }
}

/// Waits before something is tried again, and longer the next time.
async fn pause(retry: &mut Duration) {
    sleep(*retry).await;
    *retry = (*retry * 2).min(RETRY_LAST);
}

/// Begins a watch of everything from where the assembly is.
pub(crate) async fn begin(
    reading: &Reading,
    assembly: &Assembly,
    progress: Progress,
) -> Result<Box<dyn Watch>, Error> {
    let (key, range_end) = match progress {
        Progress::Requested => reading.translation.everything(),
        Progress::Events => (vec![0].into(), vec![0].into()),
    };
    let create = WatchCreateRequest {
        key,
        range_end,
        start_revision: number(assembly.next()).unwrap_or(i64::MAX),
        progress_notify: true,
        fragment: true,
    };
    reading.etcd.watch(create).await
}

/// Whether a database has not the history that was told from `before`'s. Raft's terms only grow, but a
/// backup that is restored begins with the first one again; kine has none.
fn is_other(before: &ResponseHeader, next: Revision, now: &ResponseHeader) -> bool {
    now.cluster_id != before.cluster_id
        || now.raft_term < before.raft_term
        || now.revision.saturating_add(1) < number(next).unwrap_or(i64::MAX)
}

/// The second task.
pub(crate) struct Teller {
    pub(crate) reading: Reading,
    pub(crate) own: Arc<Own>,
    pub(crate) horizon: Arc<Horizon>,
    pub(crate) jobs: mpsc::Receiver<Job>,
    /// Each with the revision up to which it has everything, where that is ahead of the head.
    pub(crate) followers: Vec<(Arc<dyn Follower>, Revision)>,
}

impl Teller {
    pub(crate) async fn run(mut self) {
        while let Some(job) = self.jobs.recv().await {
            match job {
                Job::Tell(events, head) => {
                    let records = self.records(events).await;
                    self.tell(&records, head);
                }
                Job::Reset { state, head, floor } => {
                    for (follower, seen) in &mut self.followers {
                        follower.reset(&state, head);
                        *seen = head;
                    }
                    self.own.lose_track();
                    self.horizon.reset(floor, head);
                }
                Job::Adopt { follower, seen, reply } => {
                    let has_all = seen >= self.horizon.head();
                    if has_all {
                        self.followers.push((follower, seen));
                    }
                    let _ = reply.send(has_all);
                }
            }
        }
    }

    fn tell(&mut self, records: &[Record], head: Revision) {
        for (follower, seen) in &mut self.followers {
            if *seen >= head {
                continue;
            }
            let new = records.partition_point(|record| record.revision <= *seen);
            follower.apply(&records[new..], head);
            *seen = head;
        }
        self.horizon.advance(head);
    }

    /// The records of events, those of own writes without decoding.
    async fn records(&self, events: Vec<Event>) -> Vec<Record> {
        records(&self.reading, events, Some(self.own.clone())).await
    }
}

/// The records of events.
pub(crate) async fn records(
    reading: &Reading,
    events: Vec<Event>,
    own: Option<Arc<Own>>,
) -> Vec<Record> {
    let bytes: usize = events.iter().map(|event| event.kv.value.len()).sum();
    let translation = reading.translation.clone();
    let decode = move || -> Vec<Record> {
        let record = |event: &Event| {
            let known = own.as_ref().and_then(|own| own.record(event));
            known.or_else(|| match event.r#type {
                put if put == EventType::Put as i32 => translation.record(&event.kv),
                _ => translation.deletion(&event.kv),
            })
        };
        events.iter().filter_map(record).collect()
    };
    if bytes <= DECODED_INLINE_BYTES_MAX { decode() } else { aside(decode).await }
}

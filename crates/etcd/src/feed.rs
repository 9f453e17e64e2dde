//! The feed of followers, from etcd's watch.
//!
//! There are two tasks. The [`Feed`] reads the watch as fast as messages arrive, because etcd
//! before 3.5.13 loses events of a watch that is not read (etcd issue 17529), and restarts the
//! watch when it ends. The [`Publisher`] decodes events to records and passes them to followers.
//!
//! It must not know how writes are made.
//!
//! Invariant: followers get the state at a revision and every later event, once and in order. If
//! that is impossible (compaction, a restored backup), they get the state again, and no event before
//! it.

use std::sync::Arc;
use std::time::Duration;

use pintle_store::{Record, Revision};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until};

use crate::assembly::{Assembly, Progress, Step};
use crate::channel::SILENCE_MAX;
use crate::client::Watch;
use crate::error::Error;
use crate::health::Health;
use crate::horizon::Horizon;
use crate::messages::{Event, EventType, ResponseHeader, WatchCreateRequest};
use crate::own::Own;
use crate::reading::{Reading, on_blocking_thread};
use crate::recipient::Recipient;
use crate::translation::number;

/// The most messages that wait for the publisher.
const MESSAGES_MAX: usize = 1024;
/// The most KiB of values in these messages; a larger message waits alone.
const WAITING_KIB_MAX: u32 = 64 << 10;

/// How long a reader waits before progress is requested for it, because the event mostly arrives by
/// itself; and the interval of further requests. Upstream requests progress every 100 ms.
const PROGRESS_FIRST: Duration = Duration::from_millis(5);
const PROGRESS_AGAIN: Duration = Duration::from_millis(100);

/// The first and the longest pause before a failed watch is started again.
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_LAST: Duration = Duration::from_millis(500);

/// The longest time without messages, while a reader waits for a newer revision, after which the
/// member is left. The time begins with [`SILENCE_MAX`] and doubles after each watch that received
/// nothing, so that a slow member is not left again and again.
const SILENCE_LAST: Duration = Duration::from_secs(8);

/// Messages with more bytes of values than this are decoded on a blocking thread.
const DECODED_INLINE_BYTES_MAX: usize = 64 << 10;

/// A job of the publisher.
pub(crate) enum Job {
    /// Events, with everything up to the revision. The permit is for their KiB.
    Apply(Vec<Event>, Revision, OwnedSemaphorePermit),
    /// Replaces the state with the state at `head`.
    Reset { state: Vec<Record>, head: Revision, floor: Revision },
    /// Adds a recipient, which gets all later changes, and replies with the state before them.
    Add { recipient: Arc<Recipient>, reply: oneshot::Sender<Passed> },
}

/// What the publisher has passed on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed {
    /// The revision up to which everything was passed on.
    pub(crate) head: Revision,
    /// How often the history was lost.
    pub(crate) resets: u64,
}

/// The task that reads the watch.
pub(crate) struct Feed {
    pub(crate) reading: Reading,
    pub(crate) progress: Progress,
    pub(crate) horizon: Arc<Horizon>,
    pub(crate) health: Arc<Health>,
    pub(crate) jobs: mpsc::Sender<Job>,
    /// The room for events that wait for the publisher.
    pub(crate) room: Arc<Semaphore>,
}

/// Why a watch ended.
enum EndReason {
    /// The watch was interrupted and can be resumed at its next revision.
    Interrupted(String),
    /// The next revisions of the watch are compacted.
    Compacted,
    /// The publisher has ended, because the store is dropped.
    Closed,
}

/// Makes the channel to the publisher.
pub(crate) fn jobs() -> (mpsc::Sender<Job>, mpsc::Receiver<Job>) {
    mpsc::channel(MESSAGES_MAX)
}

/// Makes the room for events that wait for the publisher.
pub(crate) fn room() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(WAITING_KIB_MAX as usize))
}

/// The KiB of events, at most the whole room.
fn kib(events: &[Event]) -> u32 {
    let bytes: usize = events.iter().map(|event| event.kv.value.len()).sum();
    u32::try_from(bytes / 1024 + 1).unwrap_or(u32::MAX).min(WAITING_KIB_MAX)
}

impl Feed {
    /// Runs until the store is dropped. Followers have everything up to the revision of `history`.
    pub(crate) async fn run(self, mut history: ResponseHeader) {
        let mut assembly = self.assembly(self.horizon.head());
        let (mut retry, mut silence_max) = (RETRY_FIRST, SILENCE_MAX);
        let mut logged = String::new(); // the same reason is logged once for an outage
        loop {
            let before = assembly.next();
            let over = self.watch(&mut assembly, silence_max).await;
            assembly.interrupt();
            silence_max = (silence_max * 2).min(SILENCE_LAST);
            if assembly.next() > before {
                (retry, silence_max) = (RETRY_FIRST, SILENCE_MAX);
            }
            let is_lost = match over {
                EndReason::Closed => return,
                EndReason::Compacted => true,
                EndReason::Interrupted(why) => {
                    if why != logged {
                        tracing::info!(
                            why,
                            "the watch of etcd was interrupted; it is started again"
                        );
                        logged = why;
                    }
                    pause(&mut retry).await;
                    match self.reading.header().await {
                        Ok(now) if has_lost_history(&history, assembly.next(), &now) => true,
                        Ok(now) => {
                            history = now;
                            logged.clear();
                            false
                        }
                        Err(error) => {
                            self.health.read_failed(&error);
                            continue;
                        }
                    }
                }
            };
            if is_lost {
                let (head, header) = self.reset(&mut retry).await;
                (assembly, history) = (self.assembly(head), header);
            }
        }
    }

    const fn assembly(&self, head: Revision) -> Assembly {
        Assembly::after(head, self.progress)
    }

    /// Watches from the assembly's next revision until the watch ends.
    async fn watch(&self, assembly: &mut Assembly, silence_max: Duration) -> EndReason {
        let mut watch = match begin(&self.reading, assembly, self.progress).await {
            Ok(watch) => watch,
            Err(error) => return EndReason::Interrupted(error.to_string()),
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
                    // The member is silent only if a reader waits for a revision that the watch has
                    // not received. Followers may still lack a revision that it has received.
                    let lacks = self.horizon.is_wanted(assembly.next());
                    silent = lacks.then(|| silent.unwrap_or_else(Instant::now));
                    if silent.is_some_and(|since| since.elapsed() >= silence_max) {
                        self.reading.etcd.leave_watched();
                        return EndReason::Interrupted(format!(
                            "the member of etcd sent nothing for {silence_max:?} while a reader waited"
                        ));
                    }
                    if self.progress == Progress::Requested
                        && let Err(error) = watch.request_progress()
                    {
                        return EndReason::Interrupted(error.to_string());
                    }
                    ask_at = Some(Instant::now() + PROGRESS_AGAIN);
                    continue;
                }
                () = self.jobs.closed() => return EndReason::Closed,
                () = self.health.history_lost() => {
                    return EndReason::Interrupted("the database went back to an older revision".to_owned());
                }
            };
            silent = None;
            let step = match message {
                Ok(message) => {
                    self.reading.measures.progress.add(u64::from(message.is_progress()));
                    assembly.take(message)
                }
                Err(error) => return EndReason::Interrupted(error.to_string()),
            };
            match step {
                Step::Nothing => {}
                Step::Emit(events, head) => {
                    let Ok(permit) = self.room.clone().acquire_many_owned(kib(&events)).await
                    else {
                        return EndReason::Closed;
                    };
                    if self.jobs.send(Job::Apply(events, head, permit)).await.is_err() {
                        return EndReason::Closed;
                    }
                }
                Step::Compacted => return EndReason::Compacted,
                Step::Ended(why) => return EndReason::Interrupted(why),
            }
        }
    }

    /// Passes the newest state to followers; tries again until that succeeds, because a watch of the
    /// new history would hide that followers still have the old one.
    async fn reset(&self, retry: &mut Duration) -> (Revision, ResponseHeader) {
        loop {
            match self.reset_once().await {
                Ok(reset) => return reset,
                Err(error) => {
                    tracing::warn!(%error, "cannot read etcd's state after its history was lost; will try again");
                    pause(retry).await;
                }
            }
        }
    }

    async fn reset_once(&self) -> Result<(Revision, ResponseHeader), Error> {
        let header = self.reading.header().await?;
        let floor = self.reading.floor().await?;
        let (state, head) = self.reading.state(None).await?;
        tracing::warn!(%head, "etcd's history was lost (a compaction or a restored backup); its state was read again");
        let _ = self.jobs.send(Job::Reset { state, head, floor }).await;
        Ok((head, header))
    }
}

/// Waits, and doubles the next wait.
async fn pause(retry: &mut Duration) {
    sleep(*retry).await;
    *retry = (*retry * 2).min(RETRY_LAST);
}

/// Starts a watch from the assembly's next revision: of all keys of the store if progress can be
/// requested, else of all keys of the database.
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

/// Whether the database of `now` lacks history that was received from the database of `before`. A
/// database's raft term only grows, but a restored backup starts with the first term again; kine
/// has no terms.
fn has_lost_history(before: &ResponseHeader, next: Revision, now: &ResponseHeader) -> bool {
    now.cluster_id != before.cluster_id
        || now.raft_term < before.raft_term
        || now.revision.saturating_add(1) < number(next).unwrap_or(i64::MAX)
}

/// The task that passes records to followers.
pub(crate) struct Publisher {
    pub(crate) reading: Reading,
    pub(crate) own: Arc<Own>,
    pub(crate) horizon: Arc<Horizon>,
    pub(crate) jobs: mpsc::Receiver<Job>,
    /// The followers, also new ones that still read the history.
    pub(crate) recipients: Vec<Arc<Recipient>>,
    /// How often the history was lost.
    pub(crate) resets: u64,
}

impl Publisher {
    pub(crate) async fn run(mut self) {
        while let Some(job) = self.jobs.recv().await {
            match job {
                Job::Apply(events, head, _permit) => {
                    let records = self.records(events).await;
                    self.apply(&records, head);
                }
                Job::Reset { state, head, floor } => {
                    let state = Arc::new(state);
                    for recipient in &self.recipients {
                        // It builds the whole cache, which would block other tasks.
                        let (recipient, state) = (recipient.clone(), state.clone());
                        on_blocking_thread(move || recipient.reset(&state, head)).await;
                    }
                    self.resets += 1;
                    self.own.events_lost();
                    self.horizon.reset(floor, head);
                }
                Job::Add { recipient, reply } => {
                    self.recipients.retain(|recipient| !recipient.has_left());
                    self.recipients.push(recipient);
                    let _ = reply.send(Passed { head: self.horizon.head(), resets: self.resets });
                }
            }
        }
    }

    fn apply(&self, records: &[Record], head: Revision) {
        for recipient in &self.recipients {
            recipient.apply(records, head);
        }
        self.horizon.advance(head);
    }

    /// Decodes events to records; events of the server's own writes need no decoding.
    async fn records(&self, events: Vec<Event>) -> Vec<Record> {
        records(&self.reading, events, Some(self.own.clone())).await
    }
}

/// Decodes events to records.
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
    if bytes <= DECODED_INLINE_BYTES_MAX { decode() } else { on_blocking_thread(decode).await }
}

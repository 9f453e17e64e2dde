//! The queue of ended traces, and the task that sends them to a collector.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use pintle_grpc::framed;
use pintle_measure::Counter;
use pintle_trace::Finished;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, timeout, timeout_at};

use super::otlp::{EXPORT, ExportRequest, ExportResponse};
use crate::grpc::Channel;

/// The most spans that wait for the collector (upstream: `DefaultMaxQueueSize`).
const QUEUE_SPANS_MAX: usize = 2048;
/// How many spans are sent together (upstream: `DefaultMaxExportBatchSize`). The last trace of a
/// batch is not divided.
const BATCH_SPANS: usize = 512;
/// How long a batch waits for more spans (upstream: `DefaultScheduleDelay`).
const BATCH_WAIT: Duration = Duration::from_secs(5);
/// How long the collector may take to answer (OTLP's default).
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// The pauses before a batch is sent again. If it fails after the last pause, too, its spans are
/// lost.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// The outcome of the export of spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The collector accepted them.
    Exported,
    /// The queue had no room for them, or was closed.
    Dropped,
    /// The collector rejected them or could not be reached.
    Failed,
}

/// The names of outcomes, in their order.
pub(crate) const OUTCOMES: [&str; 3] = ["exported", "dropped", "failed"];

/// Spans by outcome.
#[derive(Debug, Default)]
pub(crate) struct Measures {
    pub(crate) spans: [Counter; OUTCOMES.len()],
}

/// The sending end of the queue.
pub(super) struct Queue {
    sender: Mutex<Option<mpsc::UnboundedSender<Finished>>>,
    shared: Arc<Shared>,
}

/// The state that both ends of the queue share.
struct Shared {
    /// The spans in the queue and in the batch that is being sent.
    waiting: AtomicUsize,
    measures: Arc<Measures>,
    /// Ends a pause of the exporter.
    closing: Notify,
}

/// The receiving end of the queue, and the collector.
pub(crate) struct Exporter {
    receiver: mpsc::UnboundedReceiver<Finished>,
    shared: Arc<Shared>,
    channel: Channel,
    /// The name of this server.
    instance: String,
    /// Whether the last batch was lost.
    is_failing: bool,
}

/// A queue to a collector.
pub(super) fn new(channel: Channel, instance: String) -> (Queue, Exporter) {
    // The channel has no bound, because `Queue::push` bounds the number of spans.
    let (sender, receiver) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared {
        waiting: AtomicUsize::new(0),
        measures: Arc::default(),
        closing: Notify::new(),
    });
    let queue = Queue { sender: Mutex::new(Some(sender)), shared: shared.clone() };
    (queue, Exporter { receiver, shared, channel, instance, is_failing: false })
}

impl Queue {
    /// Queues a trace, or drops it if there is no room.
    pub(super) fn push(&self, trace: Finished) {
        let count = trace.spans.len();
        let before = self.shared.waiting.fetch_add(count, Ordering::Relaxed);
        let has_room = before + count <= QUEUE_SPANS_MAX;
        let sender = self.sender.lock();
        let is_queued = has_room && sender.as_ref().is_some_and(|it| it.send(trace).is_ok());
        if !is_queued {
            self.shared.settle(count, Outcome::Dropped);
        }
    }

    pub(super) fn measures(&self) -> &Arc<Measures> {
        &self.shared.measures
    }

    /// Lets the exporter end when it has sent the queued spans.
    pub(super) fn close(&self) {
        self.sender.lock().take();
        self.shared.closing.notify_one();
    }
}

impl Shared {
    /// Counts spans that leave the queue.
    fn settle(&self, count: usize, outcome: Outcome) {
        self.waiting.fetch_sub(count, Ordering::Relaxed);
        self.measures.spans[outcome as usize].add(count as u64);
    }
}

impl Exporter {
    /// Sends traces until the queue is closed and empty.
    pub(crate) async fn run(mut self) {
        while let Some(first) = self.receiver.recv().await {
            let mut count = first.spans.len();
            let mut batch = vec![first];
            let due = Instant::now() + BATCH_WAIT;
            while count < BATCH_SPANS {
                let Ok(Some(next)) = timeout_at(due, self.receiver.recv()).await else { break };
                count += next.spans.len();
                batch.push(next);
            }
            let body = framed(&ExportRequest::new(&self.instance, batch));
            let sent = self.send_again(&body).await;
            self.report(&sent);
            let rejected = sent.as_ref().map_or(count, |rejected| count.min(*rejected));
            self.shared.settle(rejected, Outcome::Failed);
            self.shared.settle(count - rejected, Outcome::Exported);
        }
    }

    /// Sends a batch, and again after each pause if that fails. When the queue is closed, a pause
    /// ends at once, and the next failure is final.
    async fn send_again(&self, body: &Bytes) -> Result<usize, String> {
        for pause in PAUSES {
            match self.send(body).await {
                Err(why) if !self.receiver.is_closed() => {
                    tracing::debug!(why, "cannot export traces, trying again");
                }
                sent => return sent,
            }
            let _ = timeout(pause, self.shared.closing.notified()).await; // a pause is no failure
        }
        self.send(body).await
    }

    /// Sends a batch once. Returns the number of spans that the collector rejected.
    async fn send(&self, body: &Bytes) -> Result<usize, String> {
        let answer = timeout(CALL_TIMEOUT, self.channel.call::<ExportResponse>(EXPORT, body)).await;
        let Ok(answer) = answer else {
            self.channel.reset().await; // it may be stuck
            return Err(format!("no answer within {CALL_TIMEOUT:?}"));
        };
        let answer = answer.map_err(|failure| failure.to_string())?;
        let Some(partial) = answer.partial_success.filter(|it| it.rejected_spans > 0) else {
            return Ok(0);
        };
        tracing::warn!(
            spans = partial.rejected_spans,
            why = partial.error_message,
            "the collector of traces rejected spans"
        );
        Ok(usize::try_from(partial.rejected_spans).unwrap_or(usize::MAX))
    }

    /// Logs the first of successive failures, and the first success after them.
    fn report(&mut self, sent: &Result<usize, String>) {
        match (sent, self.is_failing) {
            (Err(why), false) => {
                tracing::warn!(why, "cannot export traces; their spans are lost");
            }
            (Ok(_), true) => tracing::info!("traces are exported again"),
            _ => {}
        }
        self.is_failing = sent.is_err();
    }
}

#[cfg(test)]
mod tests {
    use pintle_trace::{Attributes, SpanContext, Start, Trace};

    use super::*;
    use crate::grpc::Destination;

    fn trace() -> Finished {
        let context =
            SpanContext { trace_id: 1, span_id: 1, is_sampled: true, state: Box::default() };
        let start = Start {
            context,
            parent: 0,
            link: None,
            name: String::new(),
            attributes: Attributes::default(),
            began: std::time::Instant::now(),
        };
        Trace::new(start).finish(false, |_| ())
    }

    fn counts(measures: &Measures) -> [u64; 3] {
        [0, 1, 2].map(|outcome: usize| measures.spans[outcome].get())
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_collector_spans_are_lost_and_counted() {
        let channel = Channel::new(Destination::Unix("/nonexistent/socket".into()));
        let (queue, exporter) = new(channel, "a".to_owned());
        (0..QUEUE_SPANS_MAX + 10).for_each(|_| queue.push(trace()));
        let measures = queue.measures().clone();
        assert_eq!(counts(&measures), [0, 10, 0]);
        queue.close();
        queue.push(trace());
        exporter.run().await;
        assert_eq!(counts(&measures), [0, 11, QUEUE_SPANS_MAX as u64]);
    }
}

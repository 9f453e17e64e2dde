//! The webhook: events are posted to a server as lists, many at a time (upstream: `plugin/pkg/audit/webhook`).

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use pintle_audit::{Event, event_list, truncated};
use tokio::sync::Semaphore;

use super::backend::{Backend, Paced, Queue, Queued};
use super::{Loss, Measures};
use crate::Error;
use crate::backends::Way;
use crate::config::{AuditMode, AuditWebhook};
use crate::machine::random;
use crate::webhooks::Remote;

/// How often a list is posted at most.
const ATTEMPTS_MAX: u32 = 5;
/// How long one answer may take.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);
/// How many lists are on their way at a time. Events of more lists wait in the buffer.
const LISTS_MAX: usize = 16;
/// How many events a list has at most where requests wait for them.
const BLOCKING_EVENTS_MAX: usize = 400;

/// The server that events are posted to.
struct Webhook {
    remote: Remote,
    options: AuditWebhook,
    measures: Arc<Measures>,
    complaints: Paced,
}

/// Reads the kubeconfig, and begins to post the events that the backend is given.
///
/// # Errors
/// What is wrong with the kubeconfig.
pub(super) fn start(
    options: &AuditWebhook,
    way: Way,
    measures: Arc<Measures>,
) -> Result<Backend, Error> {
    let remote = Remote::read(&options.kubeconfig, way).map_err(|why| Error::Flag {
        flag: "audit-webhook-config-file",
        reason: format!("{}: {why}", options.kubeconfig.display()),
    })?;
    let (options, delivery) = (options.clone(), options.delivery);
    let webhook =
        Webhook { remote, options, measures: measures.clone(), complaints: Paced::default() };
    Backend::start("audit-webhook", delivery, measures, move |queue| webhook.run(queue))
}

impl Webhook {
    async fn run(self, mut queue: Queue) {
        let delivery = *queue.delivery();
        let events_max = match delivery.mode {
            AuditMode::Batch => delivery.batch_size,
            _ => BLOCKING_EVENTS_MAX,
        };
        let (webhook, lists) = (Arc::new(self), Arc::new(Semaphore::new(LISTS_MAX)));
        while let Some(batch) = queue.next_up_to(events_max).await {
            for part in webhook.parts(batch) {
                let Ok(permit) = lists.clone().acquire_owned().await else { return };
                let webhook = webhook.clone();
                tokio::spawn(async move {
                    webhook.send(part).await;
                    drop(permit);
                });
            }
        }
        // All lists have arrived, or were given up.
        let _ = lists.acquire_many(LISTS_MAX as u32).await;
    }

    /// A batch in parts that are not too large.
    fn parts(&self, batch: Vec<Queued>) -> Vec<Vec<Queued>> {
        let Some(truncation) = self.options.truncation else { return vec![batch] };
        let (mut parts, mut part, mut bytes) = (Vec::new(), Vec::new(), 0);
        for queued in batch {
            let size = queued.event.to_json().len().min(truncation.event_bytes_max);
            if !part.is_empty() && bytes + size > truncation.batch_bytes_max {
                parts.push(std::mem::take(&mut part));
                bytes = 0;
            }
            bytes += size;
            part.push(queued);
        }
        parts.push(part);
        parts
    }

    /// Posts events until they arrive, or have failed for the last time, and says so of each.
    async fn send(&self, batch: Vec<Queued>) {
        let mut fitting: Vec<Cow<'_, Event>> = Vec::with_capacity(batch.len());
        let mut are_fitting = Vec::with_capacity(batch.len());
        for queued in &batch {
            let event = match self.options.truncation {
                None => Some(Cow::Borrowed(&*queued.event)),
                Some(truncation) => truncated(&queued.event, truncation.event_bytes_max),
            };
            are_fitting.push(event.is_some());
            fitting.extend(event);
        }
        let too_large = batch.len() - fitting.len();
        if too_large > 0 {
            self.lost(Loss::Truncate, too_large, "events are too large even without their objects");
        }
        let posted = if fitting.is_empty() { Ok(()) } else { self.post(&fitting).await };
        if let Err(why) = &posted {
            self.lost(Loss::Webhook, fitting.len(), why);
        }
        drop(fitting);
        for (queued, is_fitting) in batch.into_iter().zip(are_fitting) {
            // What is too large for the webhook holds up no request, as upstream has it.
            queued.answer(posted.is_ok() || !is_fitting);
        }
    }

    async fn post(&self, events: &[Cow<'_, Event>]) -> Result<(), String> {
        let body = bytes::Bytes::from(event_list(events.iter().map(|event| &**event)));
        let (mut pause, mut attempt) = (self.options.initial_backoff, 1);
        loop {
            let Err(why) = self.remote.deliver(body.clone(), ATTEMPT_TIMEOUT).await else {
                return Ok(());
            };
            if attempt == ATTEMPTS_MAX {
                return Err(why.to_string());
            }
            let mut byte = [0];
            random(&mut byte);
            tokio::time::sleep(pause + pause * u32::from(byte[0]) / (5 * 256)).await;
            (pause, attempt) = (pause * 3 / 2, attempt + 1);
        }
    }

    fn lost(&self, to: Loss, count: usize, why: &str) {
        self.measures.lost(to, count);
        self.complaints.tell(|| {
            tracing::error!("the audit webhook does not get {count} events: {why}");
        });
    }
}

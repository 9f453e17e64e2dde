//! The webhook backend: posts lists of events to a server (upstream: `plugin/pkg/audit/webhook`).

use std::sync::Arc;
use std::time::Duration;

use pintle_audit::{Form, event_list};
use tokio::sync::Semaphore;

use super::backend::Backend;
use super::batch::Batch;
use super::batch::Encoder;
use super::queue::Queue;
use super::{Loss, Losses, Measures};
use crate::Error;
use crate::backends::Dialers;
use crate::config::{AuditMode, AuditWebhook};
use crate::machine::random;
use crate::webhooks::Remote;

/// The maximum number of attempts to post a list.
const ATTEMPTS_MAX: u32 = 5;
/// The timeout of an attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of concurrent posts. Further events wait in the queue.
const LISTS_MAX: usize = 16;
/// The maximum number of events in a list of a blocking backend.
const BLOCKING_EVENTS_MAX: usize = 400;

/// The server to which events are posted.
struct Webhook {
    remote: Remote,
    options: AuditWebhook,
    losses: Arc<Losses>,
}

/// Reads the kubeconfig and starts the backend's thread.
///
/// # Errors
/// `Error::Flag` if the kubeconfig is invalid, `Error::Thread` if the thread cannot be started.
pub(super) fn start(
    options: &AuditWebhook,
    dialers: &Dialers,
    measures: Arc<Measures>,
) -> Result<Backend, Error> {
    let remote = Remote::read(&options.kubeconfig, dialers).map_err(|why| Error::Flag {
        flag: "audit-webhook-config-file",
        reason: format!("{}: {why}", options.kubeconfig.display()),
    })?;
    let losses = Losses::of("webhook", measures);
    let encoder = Encoder {
        form: Form::Item,
        event_bytes_max: options.truncation.map(|truncation| truncation.event_bytes_max),
        losses: losses.clone(),
    };
    let webhook = Webhook { remote, options: options.clone(), losses };
    Backend::start("audit-webhook", options.delivery, encoder, move |queue| webhook.run(queue))
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
        // Waits until all posts have succeeded or failed for the last time.
        let _ = lists.acquire_many(LISTS_MAX as u32).await;
    }

    /// Splits a batch into parts whose size is within the options' bound. A larger event is a part
    /// of its own.
    fn parts(&self, mut batch: Batch) -> Vec<Batch> {
        let bytes_max = self.options.truncation.map_or(usize::MAX, |limits| limits.batch_bytes_max);
        let mut parts = Vec::new();
        while batch.len() > 0 {
            let ends = batch.lengths().scan(0, |end, length| {
                *end += length;
                Some(*end)
            });
            let fitting = ends.take_while(|end| *end <= bytes_max).count();
            parts.push(batch.split(fitting.max(1)));
        }
        parts
    }

    /// Posts events with retries, and reports for each event whether it was recorded.
    async fn send(&self, mut batch: Batch) {
        let posted = self.post(batch.text()).await;
        if let Err(why) = &posted {
            self.losses.lost(Loss::Webhook, batch.len(), why);
        }
        batch.notify(0..batch.len(), posted.is_ok());
    }

    async fn post(&self, items: &[u8]) -> Result<(), String> {
        let body = bytes::Bytes::from(event_list(items));
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
}

//! The log backend: a file with a line for each event.

use std::ops::Range;
use std::sync::Arc;

use pintle_audit::{Form, Zone};

use super::backend::Backend;
use super::batch::{Batch, Encoder};
use super::rotation::File;
use super::{Loss, Losses, Measures};
use crate::Error;
use crate::config::{AuditDelivery, AuditFormat, AuditLog};
use crate::machine;

/// The smallest limit of events in a batch, unless the options limit the rate of batches.
const BATCH_EVENTS: usize = 4096;
/// The maximum number of bytes in one write call, unless a single line is longer.
const WRITE_BYTES: usize = 256 * 1024;

/// The state of the backend's thread.
struct Log {
    file: File,
    losses: Arc<Losses>,
}

/// Opens the file and starts the backend's thread.
///
/// # Errors
/// `Error::Flag` if the file cannot be opened, `Error::Thread` if the thread cannot be started.
pub(super) fn start(options: &AuditLog, measures: Arc<Measures>) -> Result<Backend, Error> {
    let file = File::open(options).map_err(|why| Error::Flag {
        flag: "audit-log-path",
        reason: match &options.path {
            Some(path) => format!("cannot write {}: {why}", path.display()),
            None => format!("cannot write to standard output: {why}"),
        },
    })?;
    let form = match options.format {
        AuditFormat::Json => Form::Json,
        AuditFormat::Legacy => Form::Legacy(zone()),
    };
    let event_bytes_max = options.truncation.map(|truncation| truncation.event_bytes_max);
    let losses = Losses::of("log", measures);
    let encoder = Encoder { form, event_bytes_max, losses: losses.clone() };
    let mut log = Log { file, losses };
    Backend::start("audit-log", options.delivery, encoder, move |mut queue| async move {
        let events_max = batch_events(queue.delivery());
        while let Some(mut batch) = queue.next_up_to(events_max).await {
            log.write(&mut batch);
            queue.reuse(batch);
        }
    })
}

/// The zone of times in the format `legacy`.
fn zone() -> Zone {
    let Some(rules) = machine::time_zone() else { return Zone::UTC };
    Zone::read(&rules).unwrap_or_else(|| {
        tracing::warn!(
            "the file of the local time zone is malformed; the audit log has times in UTC"
        );
        Zone::UTC
    })
}

/// The largest number of events in a batch. Upstream's default is one. Larger batches need fewer
/// writes, but in the mode `batch` an event may wait longer for others. If the rate of batches is
/// limited, the option counts as it is, because it also limits the rate of events.
fn batch_events(delivery: &AuditDelivery) -> usize {
    match delivery.throttle {
        None => delivery.batch_size.max(BATCH_EVENTS),
        Some(_) => delivery.batch_size,
    }
}

impl Log {
    /// Writes the lines of a batch, and reports for each event whether it was written.
    fn write(&mut self, batch: &mut Batch) {
        let lengths: Vec<usize> = batch.lengths().collect();
        let (mut first, mut start, mut end) = (0, 0, 0);
        for (index, length) in lengths.into_iter().enumerate() {
            let bytes = end + length - start;
            if end > start && (bytes > WRITE_BYTES || !self.file.has_room(bytes)) {
                self.write_lines(batch, first..index, start..end);
                (first, start) = (index, end);
            }
            end += length;
        }
        self.write_lines(batch, first..batch.len(), start..end);
    }

    fn write_lines(&mut self, batch: &mut Batch, events: Range<usize>, bytes: Range<usize>) {
        if events.is_empty() {
            return;
        }
        let written = self.file.write(&batch.text()[bytes]);
        if let Err(why) = &written {
            self.losses.lost(Loss::Log, events.len(), &why.to_string());
        }
        batch.notify(events, written.is_ok());
    }
}

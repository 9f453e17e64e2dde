//! The log: a file with a line for each event.

use std::ops::Range;
use std::sync::Arc;

use pintle_audit::Form;

use super::backend::Backend;
use super::batch::Batch;
use super::queue::Writing;
use super::rotation::File;
use super::{Loss, Losses, Measures};
use crate::Error;
use crate::config::{AuditDelivery, AuditFormat, AuditLog};

/// So many events are taken from the buffer at a time where batches are not bounded otherwise.
const EVENTS_AT_A_TIME: usize = 4096;
/// So many bytes of lines are written at a time.
const WRITE_BYTES: usize = 256 * 1024;

/// The file.
struct Log {
    file: File,
    losses: Arc<Losses>,
}

/// Opens the file, and begins to write the events that the backend is given.
///
/// # Errors
/// The file cannot be written.
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
        AuditFormat::Legacy => Form::Legacy,
    };
    let event_bytes_max = options.truncation.map(|truncation| truncation.event_bytes_max);
    let losses = Losses::of("log", measures);
    let writing = Writing { form, event_bytes_max, losses: losses.clone() };
    let mut log = Log { file, losses };
    Backend::start("audit-log", options.delivery, writing, move |mut queue| async move {
        let events_max = at_a_time(queue.delivery());
        while let Some(mut batch) = queue.next_up_to(events_max).await {
            log.write(&mut batch);
            queue.reuse(batch);
        }
    })
}

/// A file is as well written in larger batches than upstream's of one event, unless batches are counted.
fn at_a_time(delivery: &AuditDelivery) -> usize {
    match delivery.throttle {
        None => delivery.batch_size.max(EVENTS_AT_A_TIME),
        Some(_) => delivery.batch_size,
    }
}

impl Log {
    /// Writes the lines of events, and says of each whether it is written.
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
        batch.answer(events, written.is_ok());
    }
}

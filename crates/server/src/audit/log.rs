//! The log: a file with a line for each event.

use std::sync::Arc;

use pintle_audit::{Event, truncated};

use super::backend::{Backend, Paced, Queued};
use super::rotation::File;
use super::{Loss, Measures};
use crate::Error;
use crate::config::{AuditDelivery, AuditFormat, AuditLog, AuditTruncation};

/// So many events are taken from the buffer at a time where batches are not bounded otherwise.
const EVENTS_AT_A_TIME: usize = 4096;
/// So many bytes of lines are written at a time.
const WRITE_BYTES: usize = 256 * 1024;

/// The file, and how events become lines.
struct Log {
    file: File,
    format: AuditFormat,
    truncation: Option<AuditTruncation>,
    measures: Arc<Measures>,
    complaints: Paced,
    /// Lines that are not written yet; empty between batches, and here for its memory.
    lines: Vec<u8>,
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
    let AuditLog { format, truncation, .. } = *options;
    let mut log = Log {
        file,
        format,
        truncation,
        measures: measures.clone(),
        complaints: Paced::default(),
        lines: Vec::new(),
    };
    Backend::start("audit-log", options.delivery, measures, move |mut queue| async move {
        let events_max = at_a_time(queue.delivery());
        while let Some(batch) = queue.next_up_to(events_max).await {
            log.write(batch);
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
    /// Writes events, and says of each whether it is written.
    fn write(&mut self, batch: Vec<Queued>) {
        let mut lines = std::mem::take(&mut self.lines);
        let mut waiting = Vec::with_capacity(batch.len());
        for queued in batch {
            let start = lines.len();
            if !self.append_line(&queued.event, &mut lines) {
                // What is too large for the log holds up no request, as upstream has it.
                queued.answer(true);
                continue;
            }
            if start > 0 && (lines.len() > WRITE_BYTES || !self.file.has_room(lines.len())) {
                let line = lines.split_off(start);
                self.flush(&mut lines, &mut waiting);
                lines.extend_from_slice(&line);
            }
            waiting.push(queued);
        }
        self.flush(&mut lines, &mut waiting);
        lines.shrink_to(WRITE_BYTES);
        self.lines = lines;
    }

    /// Appends an event as a line, unless it is too large.
    fn append_line(&mut self, event: &Event, lines: &mut Vec<u8>) -> bool {
        let bytes_max = self.truncation.map_or(usize::MAX, |truncation| truncation.event_bytes_max);
        let fitting = match bytes_max {
            usize::MAX => Some(std::borrow::Cow::Borrowed(event)),
            bytes_max => truncated(event, bytes_max),
        };
        let Some(event) = fitting else {
            self.lost(Loss::Truncate, 1, "an event is too large even without its objects");
            return false;
        };
        match self.format {
            AuditFormat::Json => event.write_json(lines),
            AuditFormat::Legacy => lines.extend_from_slice(event.to_legacy().as_bytes()),
        }
        lines.push(b'\n');
        true
    }

    fn flush(&mut self, lines: &mut Vec<u8>, waiting: &mut Vec<Queued>) {
        if waiting.is_empty() {
            return;
        }
        let written = self.file.write(lines);
        if let Err(why) = &written {
            self.lost(Loss::Log, waiting.len(), &why.to_string());
        }
        lines.clear();
        waiting.drain(..).for_each(|queued| queued.answer(written.is_ok()));
    }

    fn lost(&mut self, to: Loss, count: usize, why: &str) {
        self.measures.lost(to, count);
        self.complaints.tell(|| tracing::error!("the audit log loses events: {why}"));
    }
}

//! Assembly of a watch's messages into complete revisions.
//!
//! Each revision is emitted once, whole and in order, whatever etcd sends: fragmented messages,
//! repeated events after a watch was restarted, progress without events.
//!
//! It must not know connections or followers.
//!
//! Invariants: heads grow; all events of a revision are in one [`Step::Emit`], whose head is at or
//! above them.

use pintle_store::Revision;

use crate::messages::{Event, WatchResponse};
use crate::translation::revision;

/// Which messages of a watch advance its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Events, and progress messages, which the store requests while a reader waits.
    Requested,
    /// Events only. etcd before 3.4.31, and 3.5 before 3.5.13, reports progress ahead of events
    /// that it has not sent yet (etcd issues 15220, 17507). All keys are watched, so that each
    /// revision has an event.
    Events,
}

/// The result of a message.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    /// The next events, perhaps none, and the revision up to which all events are known.
    Emit(Vec<Event>, Revision),
    /// Nothing yet.
    Nothing,
    /// The watch ended, because its next revisions are compacted.
    Compacted,
    /// The watch ended for another reason.
    Ended(String),
}

/// Assembles messages.
#[derive(Debug)]
pub(crate) struct Assembly {
    progress: Progress,
    /// The newest emitted revision.
    head: Revision,
    /// Events of the last revision of a fragmented message, whose rest is not received yet.
    partial: Vec<Event>,
}

impl Assembly {
    /// Starts after a revision.
    pub(crate) const fn after(head: Revision, progress: Progress) -> Self {
        Self { progress, head, partial: Vec::new() }
    }

    /// Returns the first revision to watch from.
    pub(crate) const fn next(&self) -> Revision {
        Revision(self.head.0 + 1)
    }

    /// Drops a partial message, because its watch ended.
    pub(crate) fn interrupt(&mut self) {
        self.partial.clear();
    }

    /// Processes a message.
    pub(crate) fn take(&mut self, message: WatchResponse) -> Step {
        if message.canceled {
            return match message.compact_revision {
                0 => Step::Ended(message.cancel_reason),
                _ => Step::Compacted,
            };
        }
        let is_progress = message.is_progress();
        let mut events = std::mem::take(&mut self.partial);
        events.extend(message.events);
        events.retain(|event| of(event) > self.head);
        if message.fragment {
            let last = events.last().map(of);
            let whole = events.partition_point(|event| Some(of(event)) < last);
            self.partial = events.split_off(whole);
        }
        match events.last().map(of) {
            Some(last) => self.emit(events, last),
            None if is_progress && self.progress == Progress::Requested => {
                let head = revision(message.header.revision);
                if head > self.head { self.emit(events, head) } else { Step::Nothing }
            }
            None => Step::Nothing,
        }
    }

    fn emit(&mut self, events: Vec<Event>, head: Revision) -> Step {
        self.head = head;
        Step::Emit(events, head)
    }
}

fn of(event: &Event) -> Revision {
    revision(event.kv.mod_revision)
}

/// Returns which messages of a server of this version are reliable.
pub(crate) fn progress_of(version: &str) -> Progress {
    let mut parts = version.split(['.', '-', '+']).map(|part| part.parse::<u64>().ok());
    let mut part = || parts.next().flatten();
    match (part(), part(), part()) {
        (Some(3), Some(4), Some(patch)) if patch >= 31 => Progress::Requested,
        (Some(3), Some(5), Some(patch)) if patch >= 13 => Progress::Requested,
        (Some(3), Some(minor), _) if minor >= 6 => Progress::Requested,
        (Some(major), _, _) if major > 3 => Progress::Requested,
        _ => Progress::Events,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{KeyValue, ResponseHeader};

    fn message(head: i64, events: &[i64], fragment: bool) -> WatchResponse {
        let event = |&mod_revision| Event {
            r#type: 0,
            kv: KeyValue { mod_revision, ..KeyValue::default() },
        };
        let header = ResponseHeader { revision: head, ..ResponseHeader::default() };
        let events = events.iter().map(event).collect();
        WatchResponse { header, events, fragment, ..WatchResponse::default() }
    }

    /// Rows of messages, and what is emitted after each: `[events] head`.
    #[test]
    fn each_revision_is_emitted_once_and_whole() {
        type Row<'a> = (&'a str, &'a [(i64, &'a [i64], bool)], &'a [&'a str]);
        let rows: [Row<'_>; 6] = [
            ("one by one", &[(6, &[6], false), (7, &[7, 7], false)], &["[6] 6", "[7, 7] 7"]),
            ("not to the header", &[(9, &[6], false), (9, &[7], false)], &["[6] 6", "[7] 7"]),
            (
                "fragments",
                &[(9, &[6, 7], true), (9, &[7, 7], true), (9, &[7, 8], false)],
                &["[6] 6", "", "[7, 7, 7, 7, 8] 8"],
            ),
            ("again", &[(7, &[4, 5, 6], false), (8, &[6, 8], false)], &["[6] 6", "[8] 8"]),
            ("progress", &[(5, &[], false), (8, &[], false), (7, &[], false)], &["", "[] 8", ""]),
            ("progress, then older", &[(8, &[], false), (9, &[7, 9], false)], &["[] 8", "[9] 9"]),
        ];
        for (name, messages, expected) in rows {
            let mut assembly = Assembly::after(Revision(5), Progress::Requested);
            let emitted = messages.iter().map(|(head, events, fragment)| {
                match assembly.take(message(*head, events, *fragment)) {
                    Step::Emit(events, head) => {
                        let events: Vec<_> = events.iter().map(|e| e.kv.mod_revision).collect();
                        format!("{events:?} {head}")
                    }
                    Step::Nothing => String::new(),
                    other => panic!("{other:?}"),
                }
            });
            assert_eq!(emitted.collect::<Vec<_>>(), expected, "{name}");
        }
    }

    #[test]
    fn progress_of_old_servers_is_ignored() {
        let mut assembly = Assembly::after(Revision(5), Progress::Events);
        assert_eq!(assembly.take(message(8, &[], false)), Step::Nothing);
        assert_eq!(assembly.next(), Revision(6));
        for (version, expected) in [
            ("3.4.23", Progress::Events),
            ("3.4.31", Progress::Requested),
            ("3.5.12", Progress::Events),
            ("3.5.13", Progress::Requested),
            ("3.6.0-rc.1", Progress::Requested),
            ("4.0.0", Progress::Requested),
            ("3.3.9", Progress::Events),
            ("", Progress::Events),
        ] {
            assert_eq!(progress_of(version), expected, "{version}");
        }
    }

    #[test]
    fn an_interrupted_message_is_received_again() {
        let mut assembly = Assembly::after(Revision(5), Progress::Requested);
        assert_eq!(assembly.take(message(9, &[7], true)), Step::Nothing);
        assembly.interrupt();
        assert_eq!(assembly.next(), Revision(6));
        let Step::Emit(events, Revision(7)) = assembly.take(message(9, &[7, 7], false)) else {
            panic!("the revision is emitted whole");
        };
        assert_eq!(events.len(), 2);
    }

    #[test]
    fn a_cancelled_watch_ends() {
        let canceled = |compact_revision| WatchResponse {
            canceled: true,
            compact_revision,
            cancel_reason: "why".to_owned(),
            ..WatchResponse::default()
        };
        let mut assembly = Assembly::after(Revision(5), Progress::Requested);
        assert_eq!(assembly.take(canceled(9)), Step::Compacted);
        assert_eq!(assembly.take(canceled(0)), Step::Ended("why".to_owned()));
    }
}

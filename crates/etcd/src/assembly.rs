//! The messages of a watch, put together to what followers are told.
//!
//! Purpose: each revision once, whole and in order, whatever etcd makes of it: messages cut into
//! fragments, events that come again after a watch was begun anew, progress without events.
//!
//! Must not know: connections, followers.
//!
//! Invariants: heads grow; all events of a revision are in one [`Told`], whose head is at or above them.

use pintle_store::Revision;

use crate::messages::{Event, WatchResponse};
use crate::translation::revision;

/// Which messages of a watch tell how far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Events, and progress that is asked for.
    Requested,
    /// Events alone. etcd before 3.4.31, and 3.5 before 3.5.13, tells progress ahead of events that it has
    /// yet to send (etcd issues 15220, 17507); so all keys are watched, where each revision has an event.
    Events,
}

/// What a message comes to.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    /// The next events, perhaps none, and the revision up to which all is told.
    Told(Vec<Event>, Revision),
    /// Nothing yet.
    Nothing,
    /// The watch has ended: revisions from its next one on are compacted.
    Compacted,
    /// The watch has ended for another reason.
    Ended(String),
}

/// Puts messages together.
#[derive(Debug)]
pub(crate) struct Assembly {
    progress: Progress,
    /// The newest revision that was told.
    told: Revision,
    /// Events of the last revision of a message of which fragments are yet to come.
    held: Vec<Event>,
}

impl Assembly {
    /// Begins after a revision.
    pub(crate) const fn after(told: Revision, progress: Progress) -> Self {
        Self { progress, told, held: Vec::new() }
    }

    /// The first revision to watch from.
    pub(crate) const fn next(&self) -> Revision {
        Revision(self.told.0 + 1)
    }

    /// Forgets a part of a message, because its watch has ended.
    pub(crate) fn interrupt(&mut self) {
        self.held.clear();
    }

    /// Takes in a message.
    pub(crate) fn take(&mut self, message: WatchResponse) -> Step {
        if message.canceled {
            return match message.compact_revision {
                0 => Step::Ended(message.cancel_reason),
                _ => Step::Compacted,
            };
        }
        let is_progress = message.is_progress();
        let mut events = std::mem::take(&mut self.held);
        events.extend(message.events);
        events.retain(|event| of(event) > self.told);
        if message.fragment {
            let last = events.last().map(of);
            let whole = events.partition_point(|event| Some(of(event)) < last);
            self.held = events.split_off(whole);
        }
        match events.last().map(of) {
            Some(last) => self.tell(events, last),
            None if is_progress && self.progress == Progress::Requested => {
                let head = revision(message.header.revision);
                if head > self.told { self.tell(events, head) } else { Step::Nothing }
            }
            None => Step::Nothing,
        }
    }

    fn tell(&mut self, events: Vec<Event>, head: Revision) -> Step {
        self.told = head;
        Step::Told(events, head)
    }
}

fn of(event: &Event) -> Revision {
    revision(event.kv.mod_revision)
}

/// Which messages of a server of this version can be relied on.
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

    /// Rows of messages, and what was told after each: `[events] head`.
    #[test]
    fn each_revision_is_told_once_and_whole() {
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
            let told = messages.iter().map(|(head, events, fragment)| {
                match assembly.take(message(*head, events, *fragment)) {
                    Step::Told(events, head) => {
                        let events: Vec<_> = events.iter().map(|e| e.kv.mod_revision).collect();
                        format!("{events:?} {head}")
                    }
                    Step::Nothing => String::new(),
                    other => panic!("{other:?}"),
                }
            });
            assert_eq!(told.collect::<Vec<_>>(), expected, "{name}");
        }
    }

    #[test]
    fn old_servers_progress_is_not_believed() {
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
    fn an_interrupted_message_comes_again() {
        let mut assembly = Assembly::after(Revision(5), Progress::Requested);
        assert_eq!(assembly.take(message(9, &[7], true)), Step::Nothing);
        assembly.interrupt();
        assert_eq!(assembly.next(), Revision(6));
        let Step::Told(events, Revision(7)) = assembly.take(message(9, &[7, 7], false)) else {
            panic!("the revision is told whole");
        };
        assert_eq!(events.len(), 2);
    }

    #[test]
    fn a_watch_ends() {
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

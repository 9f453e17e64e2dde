//! The one history that all servers report, and the check of responses against it.
//!
//! A linearizable response shows a state at some revision from R on, where R is the newest revision
//! in any response before the request began. So a state that had been replaced by R is a stale
//! read, and a refusal that no state from R on explains is wrong.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

/// A change, as watches report it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) revision: u64,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) uid: String,
    /// The request that wrote it, of any client.
    pub(super) writer: String,
}

impl Change {
    /// Parses an event; `None` if it does not report a change of an object.
    pub(super) fn of(event: &Value) -> Option<Self> {
        let (kind, object) = (event["type"].as_str()?, &event["object"]);
        matches!(kind, "ADDED" | "MODIFIED" | "DELETED").then_some(())?;
        Some(Self {
            revision: revision(object)?,
            kind: kind.to_owned(),
            name: object["metadata"]["name"].as_str()?.to_owned(),
            uid: object["metadata"]["uid"].as_str().unwrap_or_default().to_owned(),
            writer: writer(object),
        })
    }
}

/// The revision of an object or a list.
pub(super) fn revision(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

/// The request that wrote an object.
pub(super) fn writer(object: &Value) -> String {
    object["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

/// A request and its result.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// The request, for messages.
    pub(super) request: String,
    /// The object's name; empty for a list.
    pub(super) name: String,
    /// The newest revision in any response before the request began.
    pub(super) newest_before: u64,
    /// When the request began and ended, by the clients' clock.
    pub(super) began: u64,
    pub(super) ended: u64,
    pub(super) outcome: Outcome,
}

/// The result of a request.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// At a revision, the object is in the state that the request `writer` wrote; `is_write` if the
    /// answered request itself is a write.
    State { revision: u64, writer: String, uid: String, is_write: bool },
    /// The request deleted the object with this uid.
    Deleted { uid: String },
    /// The object does not exist.
    Absent,
    /// The object exists already.
    Present,
    /// The object no longer has the revision that the request named.
    Conflict { expected: u64 },
    /// A collection: its revision, and the revisions of its objects.
    List { revision: u64, objects: BTreeMap<String, u64> },
    /// The outcome is unknown; `writer` is in the object if the write happened.
    Unknown { writer: String },
}

impl Answer {
    pub(super) const fn is_unknown(&self) -> bool {
        matches!(self.outcome, Outcome::Unknown { .. })
    }

    pub(super) const fn is_refused(&self) -> bool {
        matches!(self.outcome, Outcome::Absent | Outcome::Present | Outcome::Conflict { .. })
    }
}

/// All changes, in order.
pub(super) struct History {
    changes: Vec<Change>,
    /// The indices of each object's changes.
    of_name: HashMap<String, Vec<usize>>,
}

impl History {
    /// The history that the watches report, and where they report different ones.
    pub(super) fn of(reported: Vec<(String, Vec<Change>)>) -> (Self, Vec<String>) {
        let mut wrong = Vec::new();
        let mut all = reported.into_iter();
        let (first, changes) = all.next().unwrap_or_default();
        if !changes.is_sorted_by(|one, next| one.revision < next.revision) {
            wrong.push(format!("{first}: its changes are not in order"));
        }
        for (watcher, other) in all {
            if other == changes {
                continue;
            }
            let at = changes.iter().zip(&other).take_while(|(one, other)| one == other).count();
            let (one, other) = (changes.get(at), other.get(at));
            wrong.push(format!("{first} tells {one:?} where {watcher} tells {other:?}"));
        }
        let mut of_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, change) in changes.iter().enumerate() {
            of_name.entry(change.name.clone()).or_default().push(at);
        }
        (Self { changes, of_name }, wrong)
    }

    pub(super) fn len(&self) -> usize {
        self.changes.len()
    }

    /// The contradictions between responses and the history, as messages.
    pub(super) fn judge(&self, answers: &[Answer]) -> Vec<String> {
        let mut wrong = Vec::new();
        let deleted = deletions(answers);
        for answer in answers {
            let began = answer.began;
            if let Err(why) =
                self.check(answer, &|uid| deleted.get(uid).is_some_and(|at| *at < began))
            {
                wrong.push(format!("{}: {why} ({:?})", answer.request, answer.outcome));
            }
        }
        wrong.extend(self.unexplained(answers));
        wrong
    }

    fn check(&self, answer: &Answer, is_gone: &dyn Fn(&str) -> bool) -> Result<(), String> {
        let Answer { name, newest_before, .. } = answer;
        match &answer.outcome {
            Outcome::State { revision, writer, uid, is_write } => {
                let at = self.find(name, *revision).ok_or("no watch reported this state")?;
                let change = &self.changes[at];
                if change.writer != *writer || change.kind == "DELETED" {
                    return Err(format!("the watches reported {change:?}"));
                }
                if !is_write && is_gone(uid) {
                    return Err("it was deleted before".to_owned());
                }
                match self.next(name, *revision) {
                    Some(next) if !is_write && next.revision <= *newest_before => {
                        Err(format!("stale: there was {next:?} before"))
                    }
                    _ => Ok(()),
                }
            }
            Outcome::Deleted { uid } => {
                let is_it = |change: &Change| change.kind == "DELETED" && change.uid == *uid;
                let found = self.changes_of(name).any(is_it);
                if found { Ok(()) } else { Err("no watch reported the deletion".to_owned()) }
            }
            Outcome::Absent => self.was(name, *newest_before, false),
            Outcome::Present => self.was(name, *newest_before, true),
            Outcome::Conflict { expected } => match self.next(name, *expected) {
                Some(_) => Ok(()),
                None => Err("nobody else wrote".to_owned()),
            },
            Outcome::List { revision, objects } => {
                if revision < newest_before {
                    return Err(format!("stale: {newest_before} was answered before"));
                }
                let state = self.state(*revision);
                if state == *objects {
                    return Ok(());
                }
                Err(format!("at that revision there was {state:?}"))
            }
            Outcome::Unknown { .. } => Ok(()),
        }
    }

    /// Checks that an object existed, or did not, at some revision from `since` on.
    fn was(&self, name: &str, since: u64, there: bool) -> Result<(), String> {
        let before = self.changes_of(name).take_while(|change| change.revision <= since).last();
        let was_there = before.is_some_and(|change| change.kind != "DELETED");
        let mut after = self.changes_of(name).filter(|change| change.revision > since);
        if was_there == there || after.any(|change| (change.kind != "DELETED") == there) {
            return Ok(());
        }
        let why = if there { "it was never there" } else { "it was always there" };
        Err(format!("{why} from revision {since} on"))
    }

    /// Writes that were made twice, and changes of which no client has sent the write, or whose
    /// write was refused.
    fn unexplained(&self, answers: &[Answer]) -> Vec<String> {
        let mut writes: HashMap<&str, usize> = HashMap::new();
        for change in self.changes.iter().filter(|change| change.kind != "DELETED") {
            *writes.entry(&change.writer).or_default() += 1;
        }
        let mut allowed: HashMap<&str, bool> = HashMap::new();
        for answer in answers {
            match &answer.outcome {
                Outcome::State { writer, is_write: true, .. } => _ = allowed.insert(writer, true),
                Outcome::Unknown { writer } => _ = allowed.insert(writer, false),
                _ => {}
            }
        }
        let mut wrong = Vec::new();
        for (writer, count) in &writes {
            if *count > 1 {
                wrong.push(format!("{writer} was written {count} times"));
            }
            if !allowed.contains_key(writer) && *writer != super::LAST {
                wrong.push(format!("{writer} was written, but its client received no success"));
            }
        }
        wrong
    }

    /// The objects at a revision, with their revisions.
    fn state(&self, revision: u64) -> BTreeMap<String, u64> {
        let mut state = BTreeMap::new();
        for change in self.changes.iter().take_while(|change| change.revision <= revision) {
            match change.kind.as_str() {
                "DELETED" => _ = state.remove(&change.name),
                _ => _ = state.insert(change.name.clone(), change.revision),
            }
        }
        state
    }

    fn changes_of<'h>(&'h self, name: &str) -> impl Iterator<Item = &'h Change> + use<'h> {
        let indexes = self.of_name.get(name).map_or(&[][..], Vec::as_slice);
        indexes.iter().map(|at| &self.changes[*at])
    }

    fn find(&self, name: &str, revision: u64) -> Option<usize> {
        let indexes = self.of_name.get(name)?;
        indexes.iter().copied().find(|at| self.changes[*at].revision == revision)
    }

    /// The next change of an object after a revision.
    fn next(&self, name: &str, revision: u64) -> Option<&Change> {
        self.changes_of(name).find(|change| change.revision > revision)
    }
}

/// For each deleted uid, the time at which a client knew of the deletion.
fn deletions(answers: &[Answer]) -> HashMap<&str, u64> {
    let deleted = answers.iter().filter_map(|answer| match &answer.outcome {
        Outcome::Deleted { uid } => Some((uid.as_str(), answer.ended)),
        _ => None,
    });
    deleted.collect()
}

#[cfg(test)]
mod tests;

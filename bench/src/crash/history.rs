//! The history of the objects of one writer, from the responses to its writes.

use std::collections::BTreeMap;

/// The verb of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Create,
    Update,
    Delete,
}

impl Verb {
    /// The type of its event.
    pub(super) fn event(self) -> &'static str {
        match self {
            Self::Create => "ADDED",
            Self::Update => "MODIFIED",
            Self::Delete => "DELETED",
        }
    }
}

/// A change that happened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) verb: Verb,
    /// The sequence number of the object's content after the change, or of a deleted object's last
    /// content.
    pub(super) sequence: u64,
    /// Its resource version, if a response had it.
    pub(super) version: Option<u64>,
}

/// A change whose request had no response.
#[derive(Clone, Debug)]
pub(super) struct Uncertain {
    pub(super) name: String,
    pub(super) change: Change,
}

/// All changes of each object, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub(super) changes: BTreeMap<String, Vec<Change>>,
}

impl History {
    /// The last change of an object, if the object exists.
    pub(super) fn existing(&self, name: &str) -> Option<Change> {
        let last = self.changes.get(name)?.last()?;
        (last.verb != Verb::Delete).then_some(*last)
    }

    pub(super) fn add(&mut self, name: &str, change: Change) {
        self.changes.entry(name.to_owned()).or_default().push(change);
    }

    /// The highest version in any response.
    pub(super) fn highest(&self) -> u64 {
        self.changes.values().flatten().filter_map(|change| change.version).max().unwrap_or(0)
    }
}

/// The content with a sequence number, which determines its length and every byte.
pub(super) fn filler(sequence: u64) -> String {
    let length = 100 + usize::try_from(sequence % 900).unwrap_or(0);
    format!("{sequence:012}.").chars().cycle().take(length).collect()
}

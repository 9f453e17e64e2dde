//! The entries that are in the journal and not in the database yet, and the checkpoints that apply
//! them to it.
//!
//! A thread applies them, many in one transaction, while further commits go to the journal.
//!
//! It must not know how the journal and the database store entries.
//!
//! Invariants:
//! - Entries are applied in order: the database has all entries up to a number, and [`Unapplied`]
//!   has all later ones.
//! - After a failed checkpoint nothing is applied until the database was reopened.

use std::collections::{HashSet, VecDeque};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};

use super::database::CHANGED_BYTES_MAX;
use super::entry::Row;
use super::journal::Found;
use super::{Entry, Failure};
use crate::Revision;

/// A checkpoint is due when the entries have this many bytes of records, or are this many: enough
/// that the pages that every transaction writes add little, and few enough that all changed pages
/// stay in memory, that the journal has room for several checkpoints, and that reading it after a
/// crash takes hardly any time.
const CHECKPOINT_BYTES: u64 = (CHANGED_BYTES_MAX / 8 * 7) as u64;
const CHECKPOINT_ENTRIES: usize = 1024;

/// The entries that the database does not have.
#[derive(Debug)]
pub(super) struct Unapplied {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    entries: VecDeque<Entry>,
    /// How many of the entries, from the front, the journal had when the store was opened. The
    /// store never counted the records that they remove.
    recovered: usize,
    /// The records that the entries remove.
    garbage: HashSet<Revision>,
    /// The number of the last entry that was added.
    last: u64,
    /// The bytes of the records of the entries that no checkpoint has begun to apply.
    bytes: u64,
    /// The bytes of the records that were removed since the last [`Unapplied::take_removed`].
    removed: u64,
    /// Whether a checkpoint is due. Opening the journal makes none due, whatever the journal has.
    is_due: bool,
    /// How many of the entries, from the front, the checkpoint in progress applies; 0 without one.
    busy: usize,
    halt: Option<Halt>,
}

/// The reason why no checkpoint begins.
#[derive(Clone, Debug)]
enum Halt {
    /// The last one failed.
    Failed(Failure),
    /// The database is being reopened, or reopening it failed.
    Reopening,
    /// The store is closed, or the thread that makes checkpoints has ended.
    Closed,
}

/// The entries of a checkpoint.
pub(super) struct Portion {
    pub(super) entries: Vec<Entry>,
    /// The number of the last one.
    pub(super) last: u64,
}

impl Unapplied {
    /// Makes it of the entries of a journal that was opened with the store.
    pub(super) fn of(found: Found) -> Self {
        let state = State { recovered: found.entries.len(), ..State::of(found) };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Adds an entry that the journal has durably.
    pub(super) fn push(&self, number: u64, entry: Entry) {
        let mut state = self.state.lock();
        state.bytes += entry.row_bytes();
        state.garbage.extend(&entry.garbage);
        state.last = number;
        state.entries.push_back(entry);
        let waiting = state.entries.len() - state.busy;
        if state.bytes >= CHECKPOINT_BYTES || waiting >= CHECKPOINT_ENTRIES {
            state.is_due = true;
            self.changed.notify_all();
        }
    }

    /// Returns an error with the reason if no checkpoint can begin.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.state.lock().check()
    }

    /// Returns the number of the last entry that the database has.
    pub(super) fn applied(&self) -> u64 {
        self.state.lock().applied()
    }

    /// Waits until the database has all entries.
    ///
    /// # Errors
    /// A checkpoint failed, or none can begin.
    pub(super) fn settle(&self) -> Result<(), Failure> {
        while self.advance()? {}
        self.check()
    }

    /// Waits until the database has more entries; returns false if it has all.
    ///
    /// # Errors
    /// A checkpoint failed, or none can begin.
    pub(super) fn advance(&self) -> Result<bool, Failure> {
        let mut state = self.state.lock();
        let (before, has_all) = (state.applied(), state.entries.is_empty());
        while !has_all && state.applied() == before {
            state.check()?;
            if state.busy == 0 {
                state.is_due = true;
                self.changed.notify_all();
            }
            self.changed.wait(&mut state);
        }
        Ok(!has_all)
    }

    /// Returns the bytes of the records that checkpoints removed since the last call.
    pub(super) fn take_removed(&self) -> u64 {
        std::mem::take(&mut self.state.lock().removed)
    }

    /// Applies entries with `apply`, which returns the bytes of the removed records, until the
    /// store is closed.
    pub(super) fn run(&self, apply: impl Fn(&Portion) -> Result<u64, Failure>) {
        let _guard = Guard(self);
        while let Some(portion) = self.next() {
            let outcome = apply(&portion);
            let mut state = self.state.lock();
            state.busy = 0;
            match outcome {
                Ok(removed) => {
                    state.entries.drain(..portion.entries.len());
                    for revision in portion.entries.iter().flat_map(|entry| &entry.garbage) {
                        state.garbage.remove(revision);
                    }
                    if std::mem::take(&mut state.recovered) == 0 {
                        state.removed += removed;
                    }
                }
                Err(failure) => state.halt = Some(Halt::Failed(failure)),
            }
            self.changed.notify_all();
        }
    }

    /// Waits for the next checkpoint; returns `None` when the store is closed.
    fn next(&self) -> Option<Portion> {
        let mut state = self.state.lock();
        loop {
            if matches!(state.halt, Some(Halt::Closed)) {
                return None;
            }
            if state.is_due && state.halt.is_none() {
                let portion = state.portion();
                (state.is_due, state.busy) = (false, portion.entries.len());
                state.bytes -= portion.entries.iter().map(Entry::row_bytes).sum::<u64>();
                return Some(portion);
            }
            self.changed.wait(&mut state);
        }
    }

    /// Begins no more checkpoints, and waits for the one in progress. Fails if the thread that
    /// makes them has ended.
    pub(super) fn pause(&self) -> Result<(), Failure> {
        self.halt(Halt::Reopening);
        let state = self.state.lock();
        if matches!(state.halt, Some(Halt::Closed)) { state.check() } else { Ok(()) }
    }

    /// Replaces the entries by those of a journal that was opened again, and allows checkpoints
    /// again.
    pub(super) fn resume(&self, found: Found) {
        let mut state = self.state.lock();
        *state = State { removed: state.removed, ..State::of(found) };
    }

    /// Ends [`Self::run`].
    pub(super) fn close(&self) {
        self.halt(Halt::Closed);
    }

    fn halt(&self, halt: Halt) {
        let mut state = self.state.lock();
        while state.busy > 0 {
            self.changed.wait(&mut state);
        }
        if !matches!(state.halt, Some(Halt::Closed)) {
            state.halt = Some(halt);
        }
        self.changed.notify_all();
    }

    /// Returns the encoded record of a revision, if an entry has it.
    pub(super) fn read(&self, revision: Revision) -> Option<Bytes> {
        let state = self.state.lock();
        // The entries' records are in the order of their revisions, and recent ones are read most.
        let begins = |entry: &&Entry| entry.rows.first().is_some_and(|(at, _)| *at <= revision);
        let Entry { rows, .. } = state.entries.iter().rev().find(begins)?;
        let at = rows.binary_search_by_key(&revision, |(revision, _)| *revision).ok()?;
        Some(rows[at].1.clone())
    }

    /// Whether an entry removes the record of a revision.
    pub(super) fn removes(&self, revision: Revision) -> bool {
        self.state.lock().garbage.contains(&revision)
    }

    /// Returns the encoded records of the entries after a revision, and the revisions of all
    /// records that the entries remove.
    pub(super) fn changes(&self, after: Revision) -> (Vec<Row>, HashSet<Revision>) {
        let state = self.state.lock();
        let rows = state.entries.iter().flat_map(|entry| &entry.rows);
        let rows = rows.filter(|(revision, _)| *revision > after).cloned().collect();
        (rows, state.garbage.clone())
    }

    /// Returns the floor of the last entry that has one.
    pub(super) fn floor(&self) -> Option<Revision> {
        self.state.lock().entries.iter().rev().find_map(|entry| entry.floor)
    }
}

impl State {
    fn of(Found { entries, last }: Found) -> Self {
        let bytes = entries.iter().map(Entry::row_bytes).sum();
        let garbage = entries.iter().flat_map(|entry| &entry.garbage).copied().collect();
        Self { entries: entries.into(), garbage, last, bytes, ..Self::default() }
    }

    /// Returns the entries of the next checkpoint: all, but those of the opening are applied alone.
    fn portion(&self) -> Portion {
        let count = if self.recovered > 0 { self.recovered } else { self.entries.len() };
        let entries = self.entries.iter().take(count).cloned().collect();
        Portion { entries, last: self.applied() + count as u64 }
    }

    fn applied(&self) -> u64 {
        self.last - self.entries.len() as u64
    }

    fn check(&self) -> Result<(), Failure> {
        match &self.halt {
            None => Ok(()),
            Some(Halt::Failed(failure)) => Err(failure.clone()),
            Some(Halt::Reopening) => Err(Failure("its database is not open".to_owned())),
            Some(Halt::Closed) => {
                Err(Failure("it is closed, or its checkpoint thread has ended".to_owned()))
            }
        }
    }
}

/// Wakes all waiting threads when the thread of the checkpoints ends, even by a panic.
struct Guard<'a>(&'a Unapplied);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.busy = 0;
        state.halt = Some(Halt::Closed);
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(revision: u64) -> Entry {
        let rows = vec![(Revision(revision), Bytes::from_static(b"record"))];
        Entry { rows, garbage: vec![Revision(revision - 1)], ..Entry::default() }
    }

    /// The store does not count the records that the entries of its opening remove, so they must not
    /// be subtracted later.
    #[test]
    fn removals_are_counted_unless_they_were_in_the_journal_at_the_opening() {
        let unapplied = Unapplied::of(Found { entries: vec![entry(5), entry(6)], last: 12 });
        let portions = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                unapplied.run(|portion| {
                    portions.lock().push((portion.entries.len(), portion.last));
                    Ok(100)
                });
            });
            unapplied.push(13, entry(7));
            assert!(unapplied.removes(Revision(6)) && unapplied.read(Revision(6)).is_some());
            unapplied.settle().unwrap();
            assert_eq!(unapplied.take_removed(), 100);
            assert!(unapplied.applied() == 13 && !unapplied.removes(Revision(6)));
            unapplied.close();
        });
        assert_eq!(*portions.lock(), [(2, 12), (1, 13)]);
    }
}

//! Storage in memory that fails as disks do under Linux: with an error, or because the power goes.
//!
//! There are three contents: what the disk holds, what is in the kernel's memory and read, and what of
//! that is yet to be written (`dirty`). After a synchronisation that failed, any part of what was dirty
//! is on the disk, and all of it counts as written: it is read as long as it stays in memory, which may
//! end at any moment, and no later synchronisation writes it.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use redb::StorageBackend;

use crate::engine::{Failure, Location, Medium};

/// What a disk writes at once: of a write that was not synchronised, each of these is there or not.
const SECTOR: usize = 512;

/// What the kernel forgets at once.
const PAGE: usize = 4096;

/// Handles of one storage share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Storage(Arc<Mutex<State>>);

#[derive(Clone, Debug, Default)]
struct State {
    /// What survives a power failure for certain.
    disk: Vec<u8>,
    /// What is read.
    memory: Vec<u8>,
    /// What was done since the last synchronisation.
    dirty: Vec<Change>,
    /// Changes and synchronisations so far, and how many of them are synchronisations.
    operations: u64,
    synchronisations: u64,
    fault: Option<Fault>,
    /// Whether the database's last user knew that all of it is on disk.
    closed: bool,
    /// What happens by chance: none of it without.
    chance: Option<Chance>,
}

#[derive(Clone, Debug)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Length(usize),
}

/// What happens at a change or synchronisation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// It fails, in part done; the next ones succeed, should there be any.
    Error { at: u64 },
    /// It and everything after it fail, in part done, until there is no fault any more.
    Broken { at: u64 },
    /// It and everything after it fail, and all that was not synchronised may be lost.
    PowerFailure { at: u64 },
}

impl Fault {
    const fn strikes(self, operation: u64) -> bool {
        match self {
            Self::Error { at } => operation == at,
            Self::Broken { at } | Self::PowerFailure { at } => operation >= at,
        }
    }
}

impl Storage {
    /// Storage that forgets what it may forget, and writes what it may write, by chance.
    pub(super) fn with_chance(seed: u64) -> Self {
        let storage = Self::default();
        storage.0.lock().chance = Some(Chance::new(seed));
        storage
    }

    /// Changes and synchronisations so far.
    pub(super) fn operations(&self) -> u64 {
        self.0.lock().operations
    }

    /// Synchronisations so far.
    pub(super) fn synchronisations(&self) -> u64 {
        self.0.lock().synchronisations
    }

    /// What is on the disk when the power is back: everything that was synchronised, and any part of
    /// what was not.
    pub(super) fn after_power_failure(&self, chance: &mut Chance) -> Self {
        let mut state = self.0.lock().clone();
        state.write_some(chance, |chance, odds| chance.below(10) < odds);
        // That it was closed was not synchronised, neither was that it was opened again.
        let closed = chance.below(2) == 0;
        let State { disk, chance, .. } = state;
        let state = State { memory: disk.clone(), disk, closed, chance, ..State::default() };
        Self(Arc::new(Mutex::new(state)))
    }

    /// What the next process finds when this one ends, however it does: the kernel lives on.
    pub(super) fn after_exit(&self) -> Self {
        let state = State { operations: 0, fault: None, ..self.0.lock().clone() };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Makes something fail, counted from now on.
    pub(super) fn fail(&self, fault: Fault) {
        let mut state = self.0.lock();
        (state.operations, state.fault) = (0, Some(fault));
    }

    /// Nothing fails from now on.
    pub(super) fn heal(&self) {
        self.0.lock().fault = None;
    }

    /// Whether the fault has come.
    pub(super) fn has_failed(&self) -> bool {
        let state = self.0.lock();
        state.fault.is_some_and(|fault| fault.strikes(state.operations))
            || matches!(state.fault, Some(Fault::Error { at }) if state.operations > at)
    }

    /// Whether everything that is read is on disk, or will be with the next synchronisation.
    pub(super) fn is_honest(&self) -> bool {
        let state = self.0.lock();
        let mut disk = state.disk.clone();
        state.dirty.iter().for_each(|change| change.apply(&mut disk));
        disk == state.memory
    }
}

impl State {
    /// Whether the next operation succeeds; counts it.
    fn next(&mut self) -> Result<(), Fault> {
        self.operations += 1;
        match self.fault {
            Some(fault) if fault.strikes(self.operations) => Err(fault),
            _ => Ok(()),
        }
    }

    fn apply(&mut self, change: Change) -> io::Result<()> {
        let fault = self.next().err();
        let done = match (fault, change) {
            // A write that was under way may be on the disk in part.
            (Some(Fault::PowerFailure { .. }), change) => {
                self.dirty.push(change);
                return Err(gone());
            }
            (Some(_), Change::Length(_)) => return Err(full()),
            (Some(_), Change::Write { offset, bytes }) => {
                Change::Write { offset, bytes: bytes[..bytes.len() / 2].to_vec() }
            }
            (None, change) => change,
        };
        done.apply(&mut self.memory);
        self.dirty.push(done);
        if fault.is_some() { Err(full()) } else { Ok(()) }
    }

    /// Any part of what is dirty gets to the disk; the rest never will.
    fn write_some(&mut self, chance: &mut Chance, is_resized: impl Fn(&mut Chance, u64) -> bool) {
        // From hardly anything to nearly everything.
        let odds = chance.below(11);
        let Self { disk, dirty, .. } = self;
        for change in dirty.drain(..) {
            match change {
                Change::Length(length) if is_resized(chance, odds) => disk.resize(length, 0),
                Change::Length(_) => {}
                Change::Write { offset, bytes } => {
                    for sector in sectors(offset, bytes.len()) {
                        if chance.below(10) < odds {
                            let part = &bytes[sector.start - offset..sector.end - offset];
                            write(disk, sector.start, part);
                        }
                    }
                }
            }
        }
    }

    /// Forgets some of the pages that are read and not dirty: they are read from the disk next time.
    fn forget_some(&mut self, offset: usize, len: usize) {
        let Some(chance) = &mut self.chance else { return };
        let first = offset / PAGE * PAGE;
        for page in (first..(offset + len).min(self.memory.len())).step_by(PAGE) {
            if chance.below(4) > 0 {
                continue;
            }
            let end = (page + PAGE).min(self.memory.len());
            let is_dirty = |change: &Change| match change {
                Change::Write { offset, bytes } => *offset < end && page < offset + bytes.len(),
                Change::Length(_) => true,
            };
            if !self.dirty.iter().any(is_dirty) {
                for at in page..end {
                    self.memory[at] = self.disk.get(at).copied().unwrap_or(0);
                }
            }
        }
    }
}

impl Change {
    fn apply(&self, image: &mut Vec<u8>) {
        match self {
            Self::Write { offset, bytes } => write(image, *offset, bytes),
            Self::Length(length) => image.resize(*length, 0),
        }
    }
}

impl StorageBackend for Storage {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().memory.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut state = self.0.lock();
        if matches!(state.fault, Some(Fault::PowerFailure { at }) if state.operations >= at) {
            return Err(gone());
        }
        state.forget_some(offset as usize, out.len());
        let bytes = state.memory.get(offset as usize..).and_then(|rest| rest.get(..out.len()));
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.lock().apply(Change::Length(len as usize))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.0.lock();
        state.synchronisations += 1;
        match state.next() {
            Ok(()) => {
                let State { disk, dirty, .. } = &mut *state;
                dirty.drain(..).for_each(|change| change.apply(disk));
                Ok(())
            }
            Err(Fault::PowerFailure { .. }) => Err(gone()),
            Err(_) => {
                let mut chance = state.chance.clone().unwrap_or_else(|| Chance::new(0));
                // A length is in the file system's journal, which does not go on after it failed.
                state.write_some(&mut chance, |_, _| true);
                state.chance = state.chance.is_some().then_some(chance);
                Err(full())
            }
        }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.lock().apply(Change::Write { offset: offset as usize, bytes: data.to_vec() })
    }
}

impl Medium for Storage {
    fn hole_end(&self, position: u64) -> u64 {
        position
    }
}

impl Location for Storage {
    fn is_new(&self) -> bool {
        self.0.lock().memory.is_empty()
    }

    fn storage(&self) -> Result<Box<dyn Medium>, Failure> {
        Ok(Box::new(self.clone()))
    }

    fn mark_complete(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn enter(&self) -> Result<bool, Failure> {
        Ok(std::mem::take(&mut self.0.lock().closed))
    }

    fn leave(&self) {
        self.0.lock().closed = true;
    }

    fn replacement(&self) -> Result<Box<dyn Medium>, Failure> {
        Err(Failure("there is room for one database only".to_owned()))
    }

    fn replace(&self) -> Result<(), Failure> {
        Err(Failure("there is room for one database only".to_owned()))
    }

    fn discard_replacement(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn check_room(&self) -> Result<(), Failure> {
        match self.0.lock().fault {
            Some(Fault::Broken { .. }) => Err(Failure("no".to_owned())),
            _ => Ok(()),
        }
    }

    fn size(&self) -> Result<u64, Failure> {
        Ok(self.0.lock().memory.len() as u64)
    }
}

fn write(image: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if image.len() < end {
        image.resize(end, 0);
    }
    image[offset..end].copy_from_slice(bytes);
}

/// The parts of a write that lie in different sectors.
fn sectors(offset: usize, len: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let end = offset + len;
    let first = offset / SECTOR * SECTOR;
    (first..end).step_by(SECTOR).map(move |start| start.max(offset)..(start + SECTOR).min(end))
}

fn full() -> io::Error {
    io::ErrorKind::StorageFull.into()
}

fn gone() -> io::Error {
    io::Error::other("the power is gone")
}

/// Random numbers that a seed repeats.
#[derive(Clone, Debug)]
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below a limit.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

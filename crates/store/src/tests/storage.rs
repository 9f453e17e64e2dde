//! Storage in memory that fails as disks do under Linux: with errors, or by a power failure.
//!
//! A file has three contents: the data on disk, the data in the kernel's memory, which readers see,
//! and the part of the latter that is not written yet (`dirty`). After a failed synchronisation,
//! any part of the dirty data is on disk, and all of it counts as written. Readers see the dirty
//! data until the kernel drops it from memory, which can happen at any moment, and no later
//! synchronisation writes it.

use std::io::{self, BufRead as _};
use std::sync::Arc;

use parking_lot::Mutex;
use redb::StorageBackend;

use crate::engine::{Failure, Location, Medium};

/// The unit that a disk writes atomically: of an unsynchronised write, each sector is on disk or
/// not.
const SECTOR: usize = 512;

/// The unit that the kernel evicts from memory.
const PAGE: usize = 4096;

/// A handle; clones share the storage.
#[derive(Clone, Debug, Default)]
pub(super) struct Storage(Arc<Mutex<State>>);

/// A file beside a storage's database.
#[derive(Debug)]
struct Beside {
    storage: Storage,
    file: fn(&mut State) -> &mut File,
}

#[derive(Clone, Debug, Default)]
struct State {
    database: File,
    replacement: File,
    journal: File,
    /// The number of changes and synchronisations so far, and of synchronisations alone.
    operations: u64,
    synchronisations: u64,
    fault: Option<Fault>,
    /// Whether the database's last user knew that all of it is on disk.
    closed: bool,
    /// The source of random evictions; `None` for none.
    random: Option<Random>,
}

#[derive(Clone, Debug, Default)]
struct File {
    /// The content that survives any power failure.
    disk: Vec<u8>,
    /// The content that is read.
    memory: Vec<u8>,
    /// The changes since the last synchronisation.
    dirty: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Length(usize),
}

/// A failure at a change or synchronisation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// That operation fails, partly done; later ones succeed.
    Error { at: u64 },
    /// That operation and all later ones fail, partly done, until the fault is repaired.
    Broken { at: u64 },
    /// That operation and all later ones fail, and unsynchronised data may be lost.
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
    /// Makes storage that evicts and writes at random.
    pub(super) fn with_random_faults(seed: u64) -> Self {
        let storage = Self::default();
        storage.0.lock().random = Some(Random::new(seed));
        storage
    }

    /// Returns the number of changes and synchronisations since the last `fail` or exit.
    pub(super) fn operations(&self) -> u64 {
        self.0.lock().operations
    }

    /// Returns the number of synchronisations so far.
    pub(super) fn synchronisations(&self) -> u64 {
        self.0.lock().synchronisations
    }

    /// Returns the storage after a power failure: everything that was synchronised, and any part of
    /// the rest.
    pub(super) fn after_power_failure(&self, random: &mut Random) -> Self {
        let State { mut database, mut replacement, mut journal, random: own, .. } =
            self.0.lock().clone();
        for file in [&mut database, &mut replacement, &mut journal] {
            file.write_some(random, |random, odds| random.below(10) < odds);
            file.memory.clone_from(&file.disk);
        }
        // The mark of a clean close, and its removal, were not synchronised.
        let closed = random.below(2) == 0;
        let state =
            State { database, replacement, journal, closed, random: own, ..State::default() };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Returns the storage that the next process finds: the kernel's memory survives.
    pub(super) fn after_exit(&self) -> Self {
        let state = State { operations: 0, fault: None, ..self.0.lock().clone() };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Makes an operation fail, counted from now on.
    pub(super) fn fail(&self, fault: Fault) {
        let mut state = self.0.lock();
        (state.operations, state.fault) = (0, Some(fault));
    }

    /// Repairs the fault.
    pub(super) fn repair(&self) {
        self.0.lock().fault = None;
    }

    /// Whether the fault has occurred.
    pub(super) fn has_failed(&self) -> bool {
        let state = self.0.lock();
        state.fault.is_some_and(|fault| fault.strikes(state.operations))
            || matches!(state.fault, Some(Fault::Error { at }) if state.operations > at)
    }

    /// Whether everything that is read is on disk, or will be after the next synchronisation.
    pub(super) fn is_consistent(&self) -> bool {
        let state = self.0.lock();
        [&state.database, &state.journal].into_iter().all(|file| {
            let mut disk = file.disk.clone();
            file.dirty.iter().for_each(|change| change.apply(&mut disk));
            disk == file.memory
        })
    }

    /// Whether these bytes are in the kernel's memory, on the disk, or among the dirty data.
    pub(super) fn holds(&self, bytes: &[u8]) -> bool {
        let state = self.0.lock();
        let is_in = |image: &[u8]| is_part(bytes, image);
        [&state.database, &state.replacement, &state.journal].into_iter().any(|file| {
            let mut written = file.dirty.iter().filter_map(|change| match change {
                Change::Write { bytes, .. } => Some(bytes),
                Change::Length(_) => None,
            });
            is_in(&file.disk) || is_in(&file.memory) || written.any(|bytes| is_in(bytes))
        })
    }

    fn synchronise(&self, of: impl Fn(&mut State) -> &mut File) -> io::Result<()> {
        let mut state = self.0.lock();
        state.synchronisations += 1;
        match state.next() {
            Ok(()) => {
                let File { disk, dirty, .. } = of(&mut state);
                dirty.drain(..).for_each(|change| change.apply(disk));
                Ok(())
            }
            Err(Fault::PowerFailure { .. }) => Err(gone()),
            Err(_) => {
                let mut random = state.random.clone().unwrap_or_else(|| Random::new(0));
                // No change of length is lost: it is in the file system's journal, and if that
                // could not be written, the file system would stop.
                of(&mut state).write_some(&mut random, |_, _| true);
                state.random = state.random.is_some().then_some(random);
                Err(full())
            }
        }
    }

    fn read_from(
        &self,
        offset: u64,
        out: &mut [u8],
        of: impl Fn(&mut State) -> &mut File,
    ) -> io::Result<()> {
        let mut state = self.0.lock();
        if matches!(state.fault, Some(Fault::PowerFailure { at }) if state.operations >= at) {
            return Err(gone());
        }
        let mut random = state.random.take();
        let file = of(&mut state);
        if let Some(random) = &mut random {
            file.evict_some(offset as usize, out.len(), random);
        }
        let bytes = file.memory.get(offset as usize..).and_then(|rest| rest.get(..out.len()));
        let read = bytes.map(|bytes| out.copy_from_slice(bytes));
        state.random = random;
        read.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

impl State {
    /// Counts an operation; returns whether it succeeds.
    fn next(&mut self) -> Result<(), Fault> {
        self.operations += 1;
        match self.fault {
            Some(fault) if fault.strikes(self.operations) => Err(fault),
            _ => Ok(()),
        }
    }

    fn apply(&mut self, change: Change, of: impl Fn(&mut Self) -> &mut File) -> io::Result<()> {
        let fault = self.next().err();
        let file = of(self);
        let done = match (fault, change) {
            // A write in progress may be on disk in part.
            (Some(Fault::PowerFailure { .. }), change) => {
                file.dirty.push(change);
                return Err(gone());
            }
            (Some(_), Change::Length(_)) => return Err(full()),
            (Some(_), Change::Write { offset, bytes }) => {
                // A write that fails has copied some whole sectors.
                let end = (offset + bytes.len() / 2) / SECTOR * SECTOR;
                Change::Write { offset, bytes: bytes[..end.saturating_sub(offset)].to_vec() }
            }
            (None, change) => change,
        };
        done.apply(&mut file.memory);
        file.dirty.push(done);
        if fault.is_some() { Err(full()) } else { Ok(()) }
    }
}

impl File {
    /// Writes any part of the dirty data to disk; the rest is never written.
    fn write_some(&mut self, random: &mut Random, is_resized: impl Fn(&mut Random, u64) -> bool) {
        // In tenths: from nothing to everything.
        let odds = random.below(11);
        let Self { disk, dirty, .. } = self;
        for change in dirty.drain(..) {
            match change {
                Change::Length(length) if is_resized(random, odds) => disk.resize(length, 0),
                Change::Length(_) => {}
                Change::Write { offset, bytes } => {
                    for sector in sectors(offset, bytes.len()) {
                        if random.below(10) < odds {
                            let part = &bytes[sector.start - offset..sector.end - offset];
                            write(disk, sector.start, part);
                        }
                    }
                }
            }
        }
    }

    /// Evicts some clean pages of a range: they are read from the disk next.
    fn evict_some(&mut self, offset: usize, len: usize, random: &mut Random) {
        let first = offset / PAGE * PAGE;
        for page in (first..(offset + len).min(self.memory.len())).step_by(PAGE) {
            if random.below(4) > 0 {
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
        Ok(self.0.lock().database.memory.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.read_from(offset, out, |state| &mut state.database)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.lock().apply(Change::Length(len as usize), |state| &mut state.database)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.synchronise(|state| &mut state.database)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let change = Change::Write { offset: offset as usize, bytes: data.to_vec() };
        self.0.lock().apply(change, |state| &mut state.database)
    }
}

impl StorageBackend for Beside {
    fn len(&self) -> io::Result<u64> {
        Ok((self.file)(&mut self.storage.0.lock()).memory.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.storage.read_from(offset, out, self.file)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.storage.0.lock().apply(Change::Length(len as usize), self.file)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.storage.synchronise(self.file)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let change = Change::Write { offset: offset as usize, bytes: data.to_vec() };
        self.storage.0.lock().apply(change, self.file)
    }
}

impl Medium for Beside {
    fn hole_end(&self, position: u64) -> u64 {
        position
    }
}

impl Medium for Storage {
    fn hole_end(&self, position: u64) -> u64 {
        position
    }
}

impl Location for Storage {
    fn is_new(&self) -> bool {
        self.0.lock().database.memory.is_empty()
    }

    fn storage(&self) -> Result<Box<dyn Medium>, Failure> {
        Ok(Box::new(self.clone()))
    }

    fn mark_complete(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn mark_open(&self) -> Result<bool, Failure> {
        Ok(std::mem::take(&mut self.0.lock().closed))
    }

    fn mark_clean(&self) {
        self.0.lock().closed = true;
    }

    fn release(&self) {}

    fn replacement(&self) -> Result<Box<dyn Medium>, Failure> {
        self.0.lock().replacement = File::default();
        Ok(Box::new(Beside { storage: self.clone(), file: |state| &mut state.replacement }))
    }

    fn journal(&self) -> Result<Box<dyn Medium>, Failure> {
        Ok(Box::new(Beside { storage: self.clone(), file: |state| &mut state.journal }))
    }

    fn replace(&self) -> Result<(), Failure> {
        let mut state = self.0.lock();
        let fault = state.next().err();
        let is_done = state.random.as_mut().is_some_and(|random| random.below(2) == 0);
        if fault.is_none() || is_done {
            state.database = std::mem::take(&mut state.replacement);
        }
        fault.map_or(Ok(()), |_| Err(Failure("the file could not be renamed".to_owned())))
    }

    fn mark_encrypted(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn discard_replacement(&self) -> Result<(), Failure> {
        self.0.lock().replacement = File::default();
        Ok(())
    }

    fn check_room(&self) -> Result<(), Failure> {
        match self.0.lock().fault {
            Some(Fault::Broken { .. }) => Err(Failure("no".to_owned())),
            _ => Ok(()),
        }
    }

    fn size(&self) -> Result<u64, Failure> {
        Ok(self.0.lock().database.memory.len() as u64)
    }
}

fn write(image: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if image.len() < end {
        image.resize(end, 0);
    }
    image[offset..end].copy_from_slice(bytes);
}

/// Whether `bytes` is a part of `image`. The standard library's optimised code looks for the first
/// byte: a loop in a debug build would take most of a test's time.
fn is_part(bytes: &[u8], mut image: &[u8]) -> bool {
    let Some((first, rest)) = bytes.split_first() else { return true };
    while let Ok(1..) = image.skip_until(*first) {
        if image.starts_with(rest) {
            return true;
        }
    }
    false
}

/// Returns the parts of a write in different sectors.
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

/// A repeatable random number generator.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below a limit.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

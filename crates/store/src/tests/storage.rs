//! Storage in memory that fails as disks do: with an error, or because the power goes.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use redb::StorageBackend;

/// What a disk writes at once: of a write that was not synchronised, each of these is there or not.
const SECTOR: usize = 512;

/// Handles of one storage share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Storage(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// What survives a power failure for certain.
    durable: Vec<u8>,
    /// What is read.
    current: Vec<u8>,
    /// What was done since the last synchronisation.
    pending: Vec<Change>,
    /// Changes and synchronisations so far.
    operations: u64,
    fault: Option<Fault>,
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
    /// It and everything after it fail.
    PowerFailure { at: u64 },
}

impl Storage {
    pub(super) fn with_fault(fault: Fault) -> Self {
        let storage = Self::default();
        storage.0.lock().fault = Some(fault);
        storage
    }

    /// Changes and synchronisations so far.
    pub(super) fn operations(&self) -> u64 {
        self.0.lock().operations
    }

    /// What is on the disk when the power is back: everything that was synchronised, and any part of
    /// what was not.
    pub(super) fn after_power_failure(&self, chance: &mut Chance) -> Self {
        let state = self.0.lock();
        let mut image = state.durable.clone();
        // From hardly anything to nearly everything.
        let odds = chance.below(11);
        for change in &state.pending {
            match change {
                Change::Length(length) if chance.below(10) < odds => image.resize(*length, 0),
                Change::Length(_) => {}
                Change::Write { offset, bytes } => {
                    for sector in sectors(*offset, bytes.len()) {
                        if chance.below(10) < odds {
                            let part = &bytes[sector.start - offset..sector.end - offset];
                            write(&mut image, sector.start, part);
                        }
                    }
                }
            }
        }
        Self::holding(image)
    }

    /// What is on the disk when the process ends, however it does.
    pub(super) fn after_exit(&self) -> Self {
        Self::holding(self.0.lock().current.clone())
    }

    pub(super) fn fail(&self, fault: Fault) {
        self.0.lock().fault = Some(fault);
    }

    fn holding(image: Vec<u8>) -> Self {
        let state = State { durable: image.clone(), current: image, ..State::default() };
        Self(Arc::new(Mutex::new(state)))
    }
}

impl State {
    /// Whether the next operation succeeds; counts it.
    fn next(&mut self) -> Result<(), Fault> {
        self.operations += 1;
        match self.fault {
            Some(fault @ Fault::Error { at }) if self.operations == at => Err(fault),
            Some(fault @ Fault::PowerFailure { at }) if self.operations >= at => Err(fault),
            _ => Ok(()),
        }
    }

    fn apply(&mut self, change: Change) -> io::Result<()> {
        let done = match self.next() {
            Ok(()) => change,
            Err(Fault::Error { .. }) => match change {
                Change::Write { offset, bytes } => {
                    Change::Write { offset, bytes: bytes[..bytes.len() / 2].to_vec() }
                }
                Change::Length(_) => return Err(full()),
            },
            // A write that was under way may be on the disk in part.
            Err(Fault::PowerFailure { .. }) => {
                self.pending.push(change);
                return Err(gone());
            }
        };
        done.apply(&mut self.current);
        self.pending.push(done);
        match self.fault {
            Some(Fault::Error { at }) if at == self.operations => Err(full()),
            _ => Ok(()),
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
        Ok(self.0.lock().current.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.0.lock();
        if matches!(state.fault, Some(Fault::PowerFailure { at }) if state.operations >= at) {
            return Err(gone());
        }
        let bytes = state.current.get(offset as usize..).and_then(|rest| rest.get(..out.len()));
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.lock().apply(Change::Length(len as usize))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.0.lock();
        match state.next() {
            Ok(()) => {
                let State { durable, pending, .. } = &mut *state;
                pending.drain(..).for_each(|change| change.apply(durable));
                Ok(())
            }
            Err(Fault::Error { .. }) => Err(full()),
            Err(Fault::PowerFailure { .. }) => Err(gone()),
        }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.lock().apply(Change::Write { offset: offset as usize, bytes: data.to_vec() })
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
#[derive(Debug)]
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

//! The state that the committer and the readers share: the medium, the index, the horizon, and
//! whether the store takes writes.

use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tokio::sync::oneshot;

use crate::engine::{Engine, Failure};
use crate::horizon::Horizon;
use crate::index::{Index, Version};
use crate::measures::Measures;
use crate::replay::Portion;
use crate::{At, Error, Follower, Key, Record, Revision};

/// The channel for the result of a job of the committer.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// The state that the committer and the readers share.
pub(crate) struct Shared {
    pub(crate) engine: Box<dyn Engine>,
    pub(crate) index: RwLock<Index>,
    pub(crate) horizon: Arc<Horizon>,
    pub(crate) status: Mutex<Status>,
    pub(crate) measures: Measures,
}

/// Whether the store takes writes, or why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Open,
    Failed(Failure),
    Closed,
}

impl Shared {
    /// Makes the state of a medium whose log was read.
    pub(crate) fn new(engine: Box<dyn Engine>, index: Index) -> Self {
        Self {
            horizon: Arc::new(Horizon::new(index.base(), index.newest())),
            index: RwLock::new(index),
            engine,
            status: Mutex::new(Status::Open),
            measures: Measures::default(),
        }
    }

    /// Returns an error with the reason if the store takes no writes.
    pub(crate) fn writable(&self) -> Result<(), Error> {
        match &*self.status.lock() {
            Status::Open => Ok(()),
            Status::Failed(failure) => Err(failure.clone().into()),
            Status::Closed => Err(Error::Closed),
        }
    }

    /// Stops taking writes because of the medium's error.
    pub(crate) fn fail(&self, failure: Failure) {
        *self.status.lock() = Status::Failed(failure);
    }

    /// Takes writes again after the medium was reopened.
    pub(crate) fn resume(&self) {
        *self.status.lock() = Status::Open;
    }

    /// Stops taking writes because the store is closed.
    pub(crate) fn close(&self) {
        let mut status = self.status.lock();
        if *status == Status::Open {
            *status = Status::Closed;
        }
    }

    /// Returns why the committer does not reply: the store is closed, or the committer panicked.
    pub(crate) fn stopped(&self) -> Error {
        let mut status = self.status.lock();
        if *status == Status::Open {
            *status = Status::Failed(Failure("the committer stopped".to_owned()));
        }
        drop(status);
        self.writable().err().unwrap_or(Error::Closed)
    }

    /// Returns the error of a write whose committer does not reply. If it panicked, it may have
    /// committed the write before.
    pub(crate) fn write_lost(&self) -> Error {
        match self.stopped() {
            Error::Failed { reason } => Error::Unknown { reason },
            error => error,
        }
    }

    /// Returns the record of a key at a revision.
    pub(crate) fn get(&self, key: &Key, at: At) -> Result<Option<Record>, Error> {
        let pin = self.horizon.pin(at)?;
        let version = self.index.read().at(key, pin.revision).filter(|version| version.live());
        version.map(|version| self.read(version.revision())).transpose()
    }

    /// Returns the records of a collection at a revision.
    pub(crate) fn list(
        &self,
        collection: &str,
        prefix: &str,
        at: At,
    ) -> Result<Vec<Record>, Error> {
        let pin = self.horizon.pin(at)?;
        let revisions = self.index.read().list(collection, prefix, pin.revision);
        revisions.into_iter().map(|revision| self.read(revision)).collect()
    }

    /// Reads a record that the index has.
    pub(crate) fn read(&self, revision: Revision) -> Result<Record, Error> {
        let missing = || Failure(format!("the record of revision {revision} is missing"));
        let record = self.engine.read(revision).map_err(|failure| self.unreadable(failure))?;
        Ok(record.ok_or_else(missing)?)
    }

    /// Whether a record that the index has is stored in the current form.
    pub(crate) fn is_current(&self, revision: Revision) -> Result<bool, Error> {
        self.engine.is_current(revision).map_err(|failure| self.unreadable(failure))
    }

    /// Returns why the medium cannot be read: the store is closed, or the medium's failure.
    pub(crate) fn unreadable(&self, failure: Failure) -> Error {
        match &*self.status.lock() {
            Status::Closed => Error::Closed,
            Status::Open | Status::Failed(_) => failure.into(),
        }
    }

    /// Gives a follower the next records after a revision: those of the state at `floor`, and all
    /// newer ones. Returns the revision up to which the follower has them.
    ///
    /// The caller keeps `floor` pinned.
    pub(crate) fn replay(
        &self,
        follower: &dyn Follower,
        floor: Revision,
        after: Revision,
    ) -> Result<Revision, Error> {
        let head = self.horizon.head();
        let mut portion = Portion::default();
        let scanned = self.engine.scan(after, &mut |record| Ok(!portion.add(record)));
        scanned.map_err(|failure| self.unreadable(failure))?;
        let Some(last) = portion.records.last().map(|record| record.revision) else {
            return Ok(head);
        };
        {
            let index = self.index.read();
            portion.records.retain_mut(|record| {
                let Record { revision, .. } = *record;
                let visible = Some(Version::new(revision, true));
                index.share(&mut record.key);
                revision <= head && (revision > floor || index.at(&record.key, floor) == visible)
            });
        }
        portion.deliver(follower);
        Ok(last.min(head))
    }
}

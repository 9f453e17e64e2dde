//! The revisioned store: a totally ordered log of committed writes. It can be read at a revision
//! and followed from one.
//!
//! A store accepts a [`Write`] with an expected revision, assigns the next [`Revision`], makes it
//! durable, passes it to its followers in order, and then acknowledges it (law 2: durable, then
//! visible, then acknowledged).
//!
//! It must not know what the values mean: JSON, objects and selectors.
//!
//! Invariants:
//! - Revisions only grow, over all collections and restarts. Writes that are committed together may
//!   share one; then they are also applied together. So a follower that resumes after the head of a
//!   [`Follower::apply`] call misses nothing. The embedded stores give each write its own revision,
//!   the next one.
//! - A follower sees every committed write exactly once, in order, and only after it is durable.
//!   Before a [`Follower::reset`] it may have missed some.
//! - A write is acknowledged after the followers of this process have it. Followers of another
//!   process on the same database get it later: [`Store::fresh`] returns the revision for which a
//!   reader must wait.
//! - A write whose future was dropped or returned [`Error::Unknown`] is committed or not: followers
//!   see it later at its revision, or never. After any other error it is not committed and never
//!   will be.
//! - After the medium failed, nothing is written until it was reopened. Reopening first makes
//!   everything durable that can be read. The store retries to reopen the medium by itself.

mod committer;
mod compaction;
#[cfg(any(test, feature = "conformance"))]
#[path = "tests/conformance.rs"]
pub mod conformance;
mod damage;
mod encoding;
mod engine;
pub mod entries;
mod failure;
mod history;
mod horizon;
mod index;
mod inspection;
mod layout;
mod local;
mod measures;
mod opening;
mod record;
mod replay;
mod restoration;
mod shared;
mod stopped;
mod stored_state;
mod template;
#[cfg(test)]
mod tests;
mod threads;
mod transformer;

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

pub use damage::is_guarded;
pub use horizon::{Horizon, LastingPin, Pin};
pub use inspection::{Inspection, inspect};
pub use layout::{Layout, Mismatch};
pub use measures::{BATCH_BOUNDS, COMMIT_BOUNDS, Measures};
pub use opening::LocalOpening;
pub use record::{Key, Kind, Record, Revision};
pub use restoration::{Restoration, refuse_unfinished};
pub use stopped::stopped_state;
pub use stored_state::{StoredState, sealed, unsealed};
pub use template::Template;
pub use transformer::{TransformError, Transformed, Transformer, undecryptable, why_undecryptable};

/// A boxed future, so that [`Store`] can be a trait object.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Selects the newest revision or a past one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The newest revision.
    Head,
    /// The state just after this revision.
    Revision(Revision),
}

/// Options of a store on disk.
#[derive(Clone, Debug)]
pub struct Options {
    /// The store's own directory; created if it does not exist.
    pub dir: PathBuf,
    /// How durable a write must be before it is acknowledged.
    pub durability: Durability,
    /// The bound on past states, in bytes of the written records.
    pub history_bytes_max: u64,
    /// Encrypts values at rest; `None` to store them in plain text.
    pub transformer: Option<Arc<dyn Transformer>>,
}

/// How durable a write must be before it is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// It is synchronised to disk: it survives a power failure.
    #[default]
    Disk,
    /// The operating system has it: it survives the end of the process. A power failure may damage
    /// the store beyond repair, so this is for tests and measurements.
    System,
}

/// Opens the store in a directory, or creates one. Only one process can have it open.
pub fn open(options: &Options) -> Result<LocalOpening, Error> {
    restoration::refuse_unfinished(&options.dir)?;
    damage::guard(|| {
        let (dir, transformer) = (&options.dir, options.transformer.clone());
        let engine = engine::DiskEngine::open(dir, options.durability, transformer)?;
        LocalOpening::of(engine, options.history_bytes_max)
    })
}

/// Makes a store in memory. `history_bytes_max` bounds past states, in bytes of the written
/// records.
pub fn memory(history_bytes_max: u64) -> Result<LocalOpening, Error> {
    LocalOpening::of(engine::MemoryEngine::default(), history_bytes_max)
}

/// The precondition of a write on its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The key is absent: the write creates it.
    Absent,
    /// The key was last written at this revision.
    At(Revision),
    /// The key is as the previous write of the [`Group`] left it. So a key can be updated and
    /// deleted in one group, and followers see both.
    AfterPrevious,
}

/// The effect of a write.
#[derive(Clone, Debug)]
pub enum Change {
    /// The key's new value.
    Put(Template),
    /// Deletes the key; the template holds its last value, for followers.
    Delete(Template),
}

impl Change {
    /// Returns the written value.
    pub const fn template(&self) -> &Template {
        match self {
            Self::Put(template) | Self::Delete(template) => template,
        }
    }
}

/// A write of one key.
#[derive(Clone, Debug)]
pub struct Write {
    /// The key.
    pub key: Key,
    /// The precondition.
    pub expect: Expect,
    /// The effect.
    pub change: Change,
    /// Data of the writer for its followers, so that they need not decode the bytes. It is never
    /// stored: a record from disk or from another process has none.
    pub note: Option<Arc<dyn std::any::Any + Send + Sync>>,
}

/// Writes that are committed together: all or none.
#[derive(Debug)]
pub struct Group {
    /// The main write.
    pub first: Write,
    /// The other writes, each of another key, except those with [`Expect::AfterPrevious`].
    pub rest: Vec<Write>,
    /// Preconditions: these keys are still at these revisions.
    pub unchanged: Vec<(Key, Revision)>,
}

/// Which writes a store can commit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// Any writes, even unrelated ones, each at its own revision.
    Each,
    /// Writes that share one revision, each of a key in another collection. Further writes of a
    /// group to a collection are committed before or after these.
    Shared,
    /// One write: the other writes of its group are committed before or after it.
    Single,
}

/// Receives every committed write.
pub trait Follower: Send + Sync {
    /// Applies the next records, in order. With them the follower has everything up to `head`,
    /// which is the last record's revision or a newer one. Without records only the head moves.
    ///
    /// Readers see the applied records, and writers are acknowledged, only after this returns: it
    /// must be quick and must not fail.
    ///
    /// Records up to the floor make up the state at the floor. While a store opens, several of them
    /// may have the same key, and some may be deletions, which an unfinished compaction left.
    /// A deletion by another process has no value; its last value is the one that the follower has.
    fn apply(&self, records: &[Record], head: Revision);

    /// Replaces everything after a loss of history: the database was compacted meanwhile, or
    /// restored from a backup. `state` is the whole state at `head`, which may be older than what
    /// was applied before.
    fn reset(&self, state: &[Record], head: Revision);
}

/// A store whose log is not read yet.
pub trait Opening: Send {
    /// Returns the oldest readable revision. Older records are state, not history.
    fn floor(&self) -> Revision;

    /// Reads the log. The follower gets all records and all later writes, as from
    /// [`Store::follow`].
    fn read_to(
        self: Box<Self>,
        follower: Arc<dyn Follower>,
    ) -> BoxFuture<'static, Result<Arc<dyn Store>, Error>>;
}

/// A durable, totally ordered store.
pub trait Store: Send + Sync {
    /// Returns the newest revision that followers have.
    fn head(&self) -> Revision;

    /// Returns the oldest readable revision: states before it are compacted. The store raises it by
    /// itself when past states exceed their bound.
    fn floor(&self) -> Revision;

    /// Whether other processes write to the database, so that followers may lack acknowledged
    /// writes.
    fn is_shared(&self) -> bool;

    /// Returns a revision that includes every write acknowledged before the call, by any process on
    /// the same database.
    fn fresh(&self) -> BoxFuture<'_, Result<Revision, Error>>;

    /// Commits a group with no other write in between. Returns the records in the order of the
    /// writes when they are durable and every follower has them. Concurrent groups share one
    /// synchronisation of the disk. If a precondition of the rest or of `unchanged` fails, the
    /// error is [`Error::CompanionConflict`].
    fn commit(&self, group: Group) -> BoxFuture<'_, Result<Vec<Record>, Error>>;

    /// Returns which writes the store can commit together.
    fn grouping(&self) -> Grouping;

    /// Returns the record of a key at a revision.
    fn get(&self, key: &Key, at: At) -> BoxFuture<'_, Result<Option<Record>, Error>>;

    /// Returns the records of a collection whose items begin with `prefix`, ordered by item.
    fn list(
        &self,
        collection: &str,
        prefix: &str,
        at: At,
    ) -> BoxFuture<'_, Result<Vec<Record>, Error>>;

    /// Whether a key's value is stored in the form in which it would be written now. In a shared
    /// database it may have the form of another release until it is rewritten.
    fn is_current(&self, key: &Key) -> BoxFuture<'_, Result<bool, Error>>;

    /// Registers a follower: it gets the state at [`Store::floor`] (records with revisions up to
    /// it), then every later write. Returns when it has all that is committed now.
    fn follow(&self, follower: Arc<dyn Follower>) -> BoxFuture<'_, Result<(), Error>>;

    /// Returns the state at the head for a backup. Its records stay until it is dropped, and
    /// compaction waits.
    fn stored_state(&self) -> BoxFuture<'_, Result<Box<dyn StoredState>, Error>>;

    /// Drops states before `floor` and frees their space.
    fn compact(&self, floor: Revision) -> BoxFuture<'_, Result<(), Error>>;

    /// Returns an error with the reason if the store takes no writes.
    fn check(&self) -> Result<(), Error>;

    /// Returns an error with the reason if the store takes no writes until the server is started
    /// again. A database that does not respond may respond again.
    fn check_life(&self) -> Result<(), Error> {
        self.check()
    }

    /// Returns an error with the reason if the store is too slow for its server to be ready.
    fn ready(&self) -> Result<(), Error> {
        self.check()
    }

    /// Returns the store's size on disk in bytes, if it is on disk.
    fn disk_bytes(&self) -> Option<u64>;

    /// Returns the measures of commits, if the store itself commits.
    fn measures(&self) -> Option<&Measures> {
        None
    }

    /// Stops taking writes; returns when the writes in progress are done and another process may
    /// open the store, even if this handle is not dropped. Reads may be refused from then on.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// The errors of a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The key is not at the expected revision; `current` is its record, if it has one.
    #[error("the key was written at another revision")]
    Conflict {
        /// The key's newest record, `None` if the key is absent. Followers have it already.
        current: Option<Box<Record>>,
    },
    /// A companion key of the group is not at its expected revision.
    #[error("{} in {} was written at another revision", key.item, key.collection)]
    CompanionConflict {
        /// The key.
        key: Key,
    },
    /// The requested revision is compacted.
    #[error("revision {requested} is compacted, the oldest is {floor}")]
    Compacted {
        /// The requested revision.
        requested: Revision,
        /// The oldest readable revision.
        floor: Revision,
    },
    /// The requested revision does not exist yet.
    #[error("revision {requested} is in the future, the newest is {head}")]
    Future {
        /// The requested revision.
        requested: Revision,
        /// The newest revision.
        head: Revision,
    },
    /// Another process has the store open.
    #[error(
        "{path} is in use by another server, or is read by `pintle doctor`; stop it, or choose another \
         --data-dir"
    )]
    InUse {
        /// The store's directory.
        path: String,
    },
    /// The directory has foreign files, and no store.
    #[error("{path} is not a store: it contains {name}; choose an empty directory")]
    Foreign {
        /// The directory.
        path: String,
        /// A file that does not belong to a store.
        name: String,
    },
    /// The process may not write to the directory.
    #[error(
        "cannot write to {path}: {why}; give this process's user the right to write there, or choose another directory"
    )]
    Unwritable {
        /// The file or directory.
        path: String,
        /// The system's error.
        why: String,
    },
    /// The files are of a format that this version does not read.
    #[error("{path} has storage format {found}; this version reads formats 1 to {supported}")]
    Format {
        /// The store's directory.
        path: String,
        /// The format number in the files.
        found: u32,
        /// The newest format that this version reads.
        supported: u32,
    },
    /// A restore to the directory did not end.
    #[error(
        "{path} is what an interrupted restore left; run `pintle snapshot restore` again with the same \
         --data-dir, or remove {path} to begin without any objects"
    )]
    Unfinished {
        /// The directory that the restore left.
        path: String,
    },
    /// A restore needs an empty directory.
    #[error("{path} is not empty: it has {entry}; restore to a new directory")]
    NotEmpty {
        /// The directory.
        path: String,
        /// The name of an entry in it.
        entry: String,
    },
    /// There is no store in the directory.
    #[error("{path} has no store")]
    Absent {
        /// The directory.
        path: String,
    },
    /// The medium failed before, or the database does not respond: the write is not committed.
    #[error("the store takes no writes: {reason}")]
    Failed {
        /// The medium's error.
        reason: String,
    },
    /// The medium failed during the write, or the committer panicked: it is committed or not.
    #[error("the store failed, and whether this was written is unknown: {reason}")]
    Unknown {
        /// The medium's error.
        reason: String,
    },
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
}

//! The revisioned store: one order of committed writes, read at a revision, followed from one.
//!
//! Purpose: durability and order. A store accepts a [`Write`] with an expected revision, gives it the
//! next [`Revision`], makes it durable, hands it to its followers in order, and only then acknowledges
//! it (law 2: durable, then visible, then acknowledged).
//!
//! Must not know: what the bytes mean. No JSON, no object, no selector is at home here.
//!
//! Invariants:
//! - Revisions only grow, over all collections, also over restarts. Writes that are committed together
//!   may share one; then they are applied together, too. So whoever was given the records of a call of
//!   [`Follower::apply`], and goes on after the head that came with them, misses nothing. The embedded
//!   stores give every write a revision of its own, the next one.
//! - A follower sees every committed write exactly once, in order, and never one that is not durable;
//!   but for a [`Follower::reset`], before which it may have missed some.
//! - A write is acknowledged when the followers of this process have it. Followers of another process
//!   on the same database have it later: [`Store::fresh`] says how far a reader must wait for them.
//! - A write whose future resolved to [`Error::Unknown`], or was dropped, has happened or not: followers
//!   see it later at its revision, or never. After any other error it has not happened and
//!   never will.
//! - After a failure of the medium nothing is written until the medium was opened again, which makes
//!   all that is then read durable first. The store tries that by itself.

mod committer;
mod compaction;
#[cfg(any(test, feature = "conformance"))]
#[path = "tests/conformance.rs"]
pub mod conformance;
mod encoding;
mod engine;
mod history;
mod horizon;
mod index;
mod layout;
mod local;
mod opening;
mod record;
mod replay;
mod template;
#[cfg(test)]
mod tests;
mod transformer;

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

pub use horizon::{Horizon, Pin};
pub use layout::{Layout, Mismatch};
pub use opening::LocalOpening;
pub use record::{Key, Kind, Record, Revision};
pub use template::Template;
pub use transformer::{TransformError, Transformed, Transformer, undecryptable, why_undecryptable};

/// A boxed future, so that [`Store`] can be a trait object.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The newest revision, or one of the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Whatever is newest now.
    Head,
    /// The state just after this revision.
    Revision(Revision),
}

/// How a store on disk is opened.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory it lies in, for itself alone; made where there is none.
    pub dir: PathBuf,
    /// How durable a write must be before it is acknowledged.
    pub durability: Durability,
    /// How much of the past is kept at most, in bytes of the records written.
    pub history_bytes_max: u64,
    /// What encrypts values on the disk; `None` where nothing does.
    pub transformer: Option<Arc<dyn Transformer>>,
}

/// What must have happened before a write is visible and acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// It is on disk: it survives a power failure.
    #[default]
    Disk,
    /// The operating system has it: it survives the process. After a power failure the store may be
    /// beyond repair, so this is for tests and measurements.
    System,
}

/// Opens the store in a directory, or begins one. Only one process can have it open.
pub fn open(options: &Options) -> Result<LocalOpening, Error> {
    let engine =
        engine::DiskEngine::open(&options.dir, options.durability, options.transformer.clone())?;
    LocalOpening::of(engine, options.history_bytes_max)
}

/// A store that lives and dies with the process, and how much of the past it keeps at most, in bytes of
/// the records written.
pub fn memory(history_bytes_max: u64) -> Result<LocalOpening, Error> {
    LocalOpening::of(engine::MemoryEngine::default(), history_bytes_max)
}

/// What must be true of a key for a write to be committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The key is absent: this creates it.
    Absent,
    /// The key was last written at this revision.
    At(Revision),
    /// The key is as the write before it in its [`Group`] leaves it: what is told before something goes.
    Left,
}

/// What a write does.
#[derive(Clone, Debug)]
pub enum Change {
    /// The key's new value.
    Put(Template),
    /// The key goes; the template holds its last state, for followers.
    Delete(Template),
}

impl Change {
    /// The value that is written.
    pub const fn template(&self) -> &Template {
        match self {
            Self::Put(template) | Self::Delete(template) => template,
        }
    }
}

/// One write.
#[derive(Clone, Debug)]
pub struct Write {
    /// What is written.
    pub key: Key,
    /// What must hold for it.
    pub expect: Expect,
    /// The change itself.
    pub change: Change,
    /// Anything the writer wants its followers to have with the record, so that they need not read it
    /// out of the bytes again. Never stored: a record from disk or from another process has none.
    pub note: Option<Arc<dyn std::any::Any + Send + Sync>>,
}

/// Writes that are committed as one: all of them or none.
#[derive(Debug)]
pub struct Group {
    /// The write that it is about.
    pub first: Write,
    /// What is written with it, each of another key, but for those that expect [`Expect::Left`].
    pub rest: Vec<Write>,
    /// Keys that are not written, but must still have been written last at these revisions.
    pub unchanged: Vec<(Key, Revision)>,
}

/// Which writes a store commits as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// Any, each at a revision of its own: also writes that have nothing to do with each other.
    Each,
    /// All at one revision. So a group is an object with what belongs to it, and what it has of one
    /// collection beyond one key goes before or after it.
    Shared,
    /// One write: the others of its group go before or after it.
    Single,
}

/// Who wants to see every committed write.
pub trait Follower: Send + Sync {
    /// The next records, in order; with them everything up to `head` has been told, which is the last
    /// record's revision or a newer one. There may be no records: then only the head has moved.
    ///
    /// What is applied here is visible to readers, and writers are acknowledged after it returns; so it
    /// must be quick and must not fail.
    ///
    /// Records up to the floor make the state at the floor, one after the other: while a store is
    /// opened they may be several of one key, a deletion among them, which an unfinished compaction
    /// left. A deletion by another process has no value: the last state is what the follower had.
    fn apply(&self, records: &[Record], head: Revision);

    /// The history since the last call is lost: the database was compacted meanwhile, or restored from
    /// a backup. This is the whole state at `head`, which may be older than what was told before.
    fn reset(&self, state: &[Record], head: Revision);
}

/// A store whose records are still to be read.
pub trait Opening: Send {
    /// The oldest revision at which the store can be read: what is older is state, not history.
    fn floor(&self) -> Revision;

    /// Reads the records. The follower is given them meanwhile, and every write to come, as by
    /// [`Store::follow`].
    fn read_to(
        self: Box<Self>,
        follower: Arc<dyn Follower>,
    ) -> BoxFuture<'static, Result<Arc<dyn Store>, Error>>;
}

/// A durable, totally ordered store.
pub trait Store: Send + Sync {
    /// The newest revision that followers have seen.
    fn head(&self) -> Revision;

    /// The oldest revision at which the store can still be read: states before it are compacted away.
    /// The store raises it by itself where it would keep more of the past than it may.
    fn floor(&self) -> Revision;

    /// Whether other processes write to the database, too, so that followers may not have seen yet what
    /// was acknowledged.
    fn is_shared(&self) -> bool;

    /// A revision that is not older than any write that was acknowledged before the call, by whichever
    /// process on the same database.
    fn fresh(&self) -> BoxFuture<'_, Result<Revision, Error>>;

    /// Commits one write; resolves when it is durable and every follower has it. Writes that wait at
    /// the same time share one synchronisation of the disk.
    fn commit(&self, write: Write) -> BoxFuture<'_, Result<Record, Error>>;

    /// Commits several writes as one, with no other write between them. Resolves to their records, in
    /// their order; where one of the rest expects what is not so, or a key is not unchanged, the error
    /// is [`Error::CompanionConflict`].
    fn commit_together(&self, group: Group) -> BoxFuture<'_, Result<Vec<Record>, Error>>;

    /// Which writes it commits as one.
    fn grouping(&self) -> Grouping;

    /// The record of a key at a revision.
    fn get(&self, key: &Key, at: At) -> BoxFuture<'_, Result<Option<Record>, Error>>;

    /// The records of a collection whose items begin with `prefix`, in the order of their items.
    fn list(
        &self,
        collection: &str,
        prefix: &str,
        at: At,
    ) -> BoxFuture<'_, Result<Vec<Record>, Error>>;

    /// Whether what is kept of a key has the form in which it would be written now. In a shared database it
    /// may have that of another release, until it is written again.
    fn is_current(&self, key: &Key) -> BoxFuture<'_, Result<bool, Error>>;

    /// Gives the follower the state at [`Store::floor`] (as records with revisions up to it), then
    /// every write since, then every write to come. Returns when it has all that is committed now.
    fn follow(&self, follower: Arc<dyn Follower>) -> BoxFuture<'_, Result<(), Error>>;

    /// Forgets states before `floor` and gives their space back.
    fn compact(&self, floor: Revision) -> BoxFuture<'_, Result<(), Error>>;

    /// Whether the store takes writes; the error is the reason why not.
    fn check(&self) -> Result<(), Error>;

    /// Whether it takes them soon enough for its server to be given requests.
    fn ready(&self) -> Result<(), Error> {
        self.check()
    }

    /// How many bytes the store takes on the disk, where it is on one.
    fn disk_bytes(&self) -> Option<u64>;

    /// Stops taking writes, and returns when those under way are done.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Why a store did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The write expected another revision of its key; `current` is the key's record, if it has one.
    #[error("the key was written at another revision")]
    Conflict {
        /// The key's newest record, `None` where the key is absent. Followers have it already.
        current: Option<Box<Record>>,
    },
    /// Another write of its group, or the group itself, expected another revision of this key.
    #[error("{} in {} was written at another revision", key.item, key.collection)]
    CompanionConflict {
        /// The key.
        key: Key,
    },
    /// The revision asked for is older than the store keeps.
    #[error("revision {asked} is compacted, the oldest is {floor}")]
    Compacted {
        /// The revision asked for.
        asked: Revision,
        /// The oldest that can be read.
        floor: Revision,
    },
    /// The revision asked for is yet to come.
    #[error("revision {asked} is in the future, the newest is {head}")]
    Future {
        /// The revision asked for.
        asked: Revision,
        /// The newest there is.
        head: Revision,
    },
    /// Another process has the store open.
    #[error("{path} is in use by another server; stop it, or choose another --data-dir")]
    InUse {
        /// The store's directory.
        path: String,
    },
    /// The files are of a format that this version does not read.
    #[error("{path} has storage format {found}, this version reads {supported}")]
    Format {
        /// The store's directory.
        path: String,
        /// What the files say.
        found: u32,
        /// What this version reads.
        supported: u32,
    },
    /// The medium failed before, or the database does not answer: the write has not happened.
    #[error("the store takes no writes: {reason}")]
    Failed {
        /// What the medium said.
        reason: String,
    },
    /// The medium failed while the write was under way: it has happened or not.
    #[error("the store failed, and whether this was written is unknown: {reason}")]
    Unknown {
        /// What the medium said.
        reason: String,
    },
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
}

//! What a caller asks of the registry: a target, options, and perhaps a body.

use std::fmt;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use pintle_measure::Counter;
use pintle_meta::{Status, User};
use pintle_value::{Str, Value};

use crate::Resource;
use crate::admission::Waited;

/// What a request is about.
#[derive(Clone)]
pub struct Target {
    /// The resource, in the version that was asked for.
    pub resource: Arc<Resource>,
    /// The namespace in the URL; `""` for cluster-scoped resources and for all namespaces.
    pub namespace: Str,
    /// The name in the URL; `""` for collections.
    pub name: Str,
    /// The subresource in the URL, or `""`.
    pub subresource: Str,
}

/// Who asks, and when: everything of the outside world that a write depends on.
#[derive(Clone, Debug)]
pub struct Context {
    /// The time of the request.
    pub now: Now,
    /// Who asks.
    pub user: Arc<User>,
    /// The `User-Agent`, from which a field manager's name is derived.
    pub user_agent: Str,
    /// What the client should hear.
    pub warnings: Warnings,
    /// How long it waited for webhooks, in nanoseconds: whoever asks them adds it.
    pub waited: Arc<Counter>,
    /// Whether what was refused is refused for good.
    pub refusal: Refusal,
    /// Who records the request, if it is audited.
    pub recorder: Option<Arc<dyn Recorder>>,
}

/// Records a request for an audit log. It belongs to the request and not to its outcome, as warnings do.
pub trait Recorder: fmt::Debug + Send + Sync {
    /// The object in the request's body, in the version that the client sent: what its metadata says counts
    /// where the URL says nothing.
    fn object(&self, sent: &Value);

    /// Whether [`Self::request_object`] is recorded.
    fn wants_objects(&self) -> bool;

    /// The request's object, or what else its body is, as JSON.
    fn request_object(&self, json: Bytes);

    /// Something to be known about the request. What is said first of a key counts.
    fn annotate(&self, key: &str, value: &str);
}

/// Whether the refusal of a request stands on whatever state it would be decided again. It belongs to the
/// request, as its warnings do.
#[derive(Clone, Debug, Default)]
pub struct Refusal(Arc<AtomicBool>);

impl Refusal {
    /// Notes that it stands.
    pub(crate) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it stands.
    pub(crate) fn stands(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Texts for `Warning` headers. They belong to the request and not to its outcome: a client hears them
/// whether or not its request succeeds (FV-06, DEP-12).
#[derive(Clone, Debug, Default)]
pub struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    /// One more.
    pub fn add(&self, text: impl Into<String>) {
        self.0.lock().push(text.into());
    }

    /// More of them.
    pub fn extend(&self, texts: impl IntoIterator<Item = String>) {
        self.0.lock().extend(texts);
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Forgets all but so many of the first.
    pub(crate) fn truncate(&self, count: usize) {
        self.0.lock().truncate(count);
    }

    /// All so far, in their order.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

/// A point in time: microseconds since 1970, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now {
    /// Microseconds since 1970, UTC.
    pub unix_micros: i64,
}

impl Now {
    /// Whole seconds since 1970.
    pub const fn unix_seconds(self) -> i64 {
        self.unix_micros.div_euclid(1_000_000)
    }
}

/// A request body that has not been read yet.
#[derive(Clone, Debug)]
pub struct Body {
    /// The bytes as they came.
    pub bytes: Bytes,
    /// What they are.
    pub encoding: Encoding,
}

/// The encodings of whole objects in bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// `application/json`
    Json,
    /// `application/yaml`
    Yaml,
    /// `application/vnd.kubernetes.protobuf`; for built-in kinds only.
    Protobuf,
    /// `application/cbor`; where its feature gate is on.
    Cbor,
}

/// The patch media types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// `application/json-patch+json`
    Json,
    /// `application/merge-patch+json`
    Merge,
    /// `application/strategic-merge-patch+json`
    StrategicMerge,
    /// `application/apply-patch+yaml`, or in another encoding
    Apply(Encoding),
}

/// What to do about unknown and duplicate fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drop them silently.
    Ignore,
    /// Drop them and warn.
    #[default]
    Warn,
    /// Refuse.
    Strict,
}

impl FieldValidation {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ignore => "Ignore",
            Self::Warn => "Warn",
            Self::Strict => "Strict",
        }
    }
}

/// Whether the client may also create, where what it asked for was a change: PUT to a free name and
/// apply create, and upstream asks once more then.
pub trait MayCreate: Send + Sync {
    /// The error is the refusal.
    fn ask(&self) -> Waited<'_, ()>;
}

impl<F: Fn() -> Result<(), Status> + Send + Sync> MayCreate for F {
    fn ask(&self) -> Waited<'_, ()> {
        Box::pin(ready(self()))
    }
}

/// The answer to [`MayCreate`] for those who may do anything: the server itself.
///
/// # Errors
/// Never.
pub const fn granted() -> Result<(), Status> {
    Ok(())
}

/// Options of create, update and patch.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Everything but the commit.
    pub dry_run: bool,
    /// Who owns what this changes; `""` where it is to be derived from the user agent.
    pub field_manager: Str,
    /// What to do about unknown and duplicate fields, where the client says so.
    pub field_validation: Option<FieldValidation>,
    /// Apply only: take what others own.
    pub force: bool,
}

impl WriteOptions {
    /// What to do about unknown and duplicate fields.
    pub fn strictness(&self) -> FieldValidation {
        self.field_validation.unwrap_or_default()
    }
}

/// What becomes of the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    Orphan,
    Background,
    Foreground,
}

impl Propagation {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Orphan => "Orphan",
            Self::Background => "Background",
            Self::Foreground => "Foreground",
        }
    }
}

/// The name of [`DeleteOptions::ignore_read_errors`].
pub const IGNORE_READ_ERRORS: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

/// Options of delete.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// Everything but the commit.
    pub dry_run: bool,
    /// How long the object may live on; `None` for the kind's default.
    pub grace_period_seconds: Option<i64>,
    /// Only if the object has this uid.
    pub uid: Option<Str>,
    /// Only if the object has this resource version.
    pub resource_version: Option<Str>,
    /// What becomes of dependents.
    pub propagation: Option<Propagation>,
    /// The deprecated way to say it.
    pub orphan_dependents: Option<bool>,
    /// The object cannot be read, and goes all the same, whatever it may have said of who it waits for. One
    /// that can be read does not go.
    pub ignore_read_errors: bool,
}

/// How a given resource version is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    /// The state just after it.
    Exact,
    /// That state or a newer one.
    NotOlderThan,
}

/// Options of list, watch and deletecollection, as the client gave them: [`ListOptions::check`] tells
/// which combinations make sense.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// `labelSelector`, `""` for everything.
    pub label_selector: Str,
    /// `fieldSelector`, `""` for everything.
    pub field_selector: Str,
    /// `resourceVersion`, `""` where it is not given.
    pub resource_version: Str,
    /// `resourceVersionMatch`, as given; `""` where it is not.
    pub version_match: Str,
    /// `limit`, 0 where it is not given.
    pub limit: u64,
    /// `continue`, `""` where it is not given.
    pub continue_token: Str,
    /// `allowWatchBookmarks`
    pub bookmarks: bool,
    /// `sendInitialEvents`
    pub send_initial_events: Option<bool>,
}

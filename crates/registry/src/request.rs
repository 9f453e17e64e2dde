//! Requests to the registry: the target, the options, and a body.

use std::fmt;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use pintle_meta::{Status, User};
use pintle_trace::Timing;
use pintle_value::{Str, Value};

pub use crate::now::Now;
use crate::results::Waited;
use crate::{Resource, Verb};

/// The resource, object or collection that a request names.
#[derive(Clone)]
pub struct Target {
    /// The resource, in the requested version.
    pub resource: Arc<Resource>,
    /// The namespace in the URL; `""` for cluster-scoped resources and for all namespaces.
    pub namespace: Str,
    /// The name in the URL; `""` for collections.
    pub name: Str,
    /// The subresource in the URL, or `""`.
    pub subresource: Str,
}

/// The user, the time, and everything else outside the registry that a write depends on.
#[derive(Clone, Debug)]
pub struct Context {
    /// The time of the request.
    pub now: Now,
    /// The user who sends the request.
    pub user: Arc<User>,
    /// The verb of the request; `None` for the server's own writes.
    pub verb: Option<Verb>,
    /// The `User-Agent`, from which a field manager's name is derived.
    pub user_agent: Str,
    /// Texts for `Warning` headers.
    pub warnings: Warnings,
    /// How long the request spends in each layer.
    pub timing: Arc<Timing>,
    /// Whether a refusal is final.
    pub refusal: Refusal,
    /// Records the request for the audit log, if it is audited.
    pub recorder: Option<Arc<dyn Recorder>>,
}

/// Records a request for the audit log. It belongs to the request and not to its outcome, as
/// warnings do.
pub trait Recorder: fmt::Debug + Send + Sync {
    /// Records the object in the request's body, in the version that the client sent. Its metadata
    /// gives the name and namespace where the URL does not.
    fn object(&self, sent: &Value);

    /// Whether [`Self::request_object`] is recorded.
    fn wants_objects(&self) -> bool;

    /// Records the request's object, or another body, as JSON.
    fn request_object(&self, json: Bytes);

    /// Adds an audit annotation. The first value of a key counts.
    fn annotate(&self, key: &str, value: &str);
}

/// Whether a refusal is final: a retry on a newer state would be refused, too. The flag belongs to
/// the request and not to its outcome, as warnings do.
#[derive(Clone, Debug, Default)]
pub struct Refusal(Arc<AtomicBool>);

impl Refusal {
    /// Marks the refusal as final.
    pub(crate) fn make_final(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the refusal is final.
    pub(crate) fn is_final(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Texts for `Warning` headers. They belong to the request and not to its outcome: a client gets
/// them even if its request fails (FV-06, DEP-12).
#[derive(Clone, Debug, Default)]
pub struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    /// Adds a text.
    pub fn add(&self, text: impl Into<String>) {
        self.0.lock().push(text.into());
    }

    /// Adds texts.
    pub fn extend(&self, texts: impl IntoIterator<Item = String>) {
        self.0.lock().extend(texts);
    }

    /// Returns the number of texts.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Drops all but the first `count` texts.
    pub(crate) fn truncate(&self, count: usize) {
        self.0.lock().truncate(count);
    }

    /// Removes and returns all texts, in their order.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

/// A request body that has not been decoded yet.
#[derive(Clone, Debug)]
pub struct Body {
    /// The bytes as the client sent them.
    pub bytes: Bytes,
    /// The encoding of the bytes.
    pub encoding: Encoding,
}

/// The encodings of whole objects in bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// What the server does about unknown and duplicate fields: the `fieldValidation` parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drops them silently.
    Ignore,
    /// Drops them and warns.
    #[default]
    Warn,
    /// Refuses the request.
    Strict,
}

impl FieldValidation {
    /// Returns the value of the parameter.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ignore => "Ignore",
            Self::Warn => "Warn",
            Self::Strict => "Strict",
        }
    }
}

/// Decides whether an update of a missing object may create it. PUT and apply can create, and
/// upstream then authorizes the verb `create`, too.
pub trait MayCreate: Send + Sync {
    /// Returns the refusal as the error.
    fn ask(&self) -> Waited<'_, ()>;
}

impl<F: Fn() -> Result<(), Status> + Send + Sync> MayCreate for F {
    fn ask(&self) -> Waited<'_, ()> {
        Box::pin(ready(self()))
    }
}

/// The [`MayCreate`] of the server itself, which may do anything.
///
/// # Errors
/// Never.
pub const fn granted() -> Result<(), Status> {
    Ok(())
}

/// Options of create, update and patch.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Whether the write is not committed.
    pub dry_run: bool,
    /// The manager that will own the changed fields; `""` to derive it from the user agent.
    pub field_manager: Str,
    /// The client's `fieldValidation`, if the request has it.
    pub field_validation: Option<FieldValidation>,
    /// Apply only: takes over fields that conflict with other managers.
    pub force: bool,
}

impl WriteOptions {
    /// Returns what to do about unknown and duplicate fields.
    pub fn strictness(&self) -> FieldValidation {
        self.field_validation.unwrap_or_default()
    }
}

/// What happens to the dependents of a deleted object: `propagationPolicy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    Orphan,
    Background,
    Foreground,
}

impl Propagation {
    /// Returns the value of the field.
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
    /// Whether the deletion is not committed.
    pub dry_run: bool,
    /// The grace period; `None` for the kind's default.
    pub grace_period_seconds: Option<i64>,
    /// A precondition: the object's uid.
    pub uid: Option<Str>,
    /// A precondition: the object's resource version.
    pub resource_version: Option<Str>,
    /// What happens to dependents.
    pub propagation: Option<Propagation>,
    /// `orphanDependents`: the deprecated form of `propagation`.
    pub orphan_dependents: Option<bool>,
    /// Deletes an unreadable object at once, without its finalizers and grace period, which cannot
    /// be read. A readable object is not deleted.
    pub ignore_read_errors: bool,
}

/// How `resourceVersion` selects a state: `resourceVersionMatch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    /// The state just after the revision.
    Exact,
    /// The state just after the revision, or a newer one.
    NotOlderThan,
}

/// Options of list, watch and deletecollection, as the client sent them. The module `revision`
/// checks their combinations.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// `labelSelector`, `""` for everything.
    pub label_selector: Str,
    /// `fieldSelector`, `""` for everything.
    pub field_selector: Str,
    /// `resourceVersion`, `""` if absent.
    pub resource_version: Str,
    /// `resourceVersionMatch`, unparsed; `""` if absent.
    pub version_match: Str,
    /// `limit`, 0 if absent.
    pub limit: u64,
    /// `continue`, `""` if absent.
    pub continue_token: Str,
    /// `allowWatchBookmarks`
    pub bookmarks: bool,
    /// `sendInitialEvents`
    pub send_initial_events: Option<bool>,
    /// Whether a list that fails names all its objects that cannot be read, not only the first.
    pub names_unreadable: bool,
}

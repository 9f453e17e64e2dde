//! Commits: encodes an object and commits it at the expected revision.

use std::sync::Arc;
use std::time::Instant;

use pintle_meta::{Reason, Status, object};
use pintle_schema::protobuf;
use pintle_store::{Change, Error, Expect, Group, Key, Kind, Record, Template};
use pintle_trace::Layer;
use pintle_value::{OBJECT_DEPTH_MAX, Value, json};

use super::Write;
use crate::allocation::{Companion, Part};
use crate::definer::DefinerState;
use crate::object::{ObjectHead, template, template_unchanged, template_with_metadata};
use crate::request::Now;
use crate::results::{Outcome, ResponseBody};
use crate::{Object, Registry, Resource, StorageConverter};

/// The outcome of a commit.
pub(super) enum Committed {
    /// The write is durable and visible.
    Done(Arc<Object>),
    /// The key is not at the expected revision; the caller decides what that means.
    Conflict,
    /// A companion is not at its expected revision: for example, another object took the assigned
    /// address.
    CompanionConflict,
}

impl Committed {
    /// Returns the outcome of a committed group. The group begins with the object's records, which
    /// have the same key; the last of these records has the object's state.
    pub(super) fn by(records: &[Record]) -> Result<Self, Status> {
        let key = records.first().map(|record| &record.key);
        let last = records.iter().take_while(|record| Some(&record.key) == key).last();
        let last =
            last.ok_or_else(|| Status::internal("a write was committed without a record"))?;
        Ok(Self::Done(Object::from_record(last)))
    }
}

impl Registry {
    /// Commits `tree`, of the stored form, with its companions, if the key is at the expected
    /// revision.
    pub(super) async fn commit(
        &self,
        resource: &Resource,
        namespaced_name: (&str, &str),
        tree: &Value,
        expect: Expect,
        kind: Kind,
        companions: Vec<Companion>,
    ) -> Result<Committed, Status> {
        self.commit_encoded(encode(resource, namespaced_name, tree, expect, kind)?, companions)
            .await
    }

    pub(super) async fn commit_encoded(
        &self,
        first: pintle_store::Write,
        companions: Vec<Companion>,
    ) -> Result<Committed, Status> {
        let (mut rest, mut unchanged, mut postings) = (Vec::new(), Vec::new(), Vec::new());
        for Companion(part) in companions {
            match part {
                Part::Write(write) => rest.push(write),
                Part::Unchanged(key, revision) => unchanged.push((key, revision)),
                Part::Posting(posting) => postings.push(posting),
            }
        }
        let group = Group { first, rest, unchanged };
        if !postings.is_empty() {
            return self.post(group, postings).await;
        }
        match self.store.commit(group).await {
            Ok(records) => Committed::by(&records),
            Err(Error::Conflict { .. }) => Ok(Committed::Conflict),
            Err(Error::CompanionConflict { .. }) => Ok(Committed::CompanionConflict),
            Err(error) => Err(store_failed(error)),
        }
    }

    /// Returns the precondition for creating an object whose resource has a definer: the definer is
    /// unchanged and not terminating.
    pub(super) fn definer_precondition(
        &self,
        resource: &Resource,
        name: &str,
    ) -> Result<Option<Companion>, Status> {
        let defined = resource.storage.as_ref().and_then(|storage| storage.definer.as_ref());
        let Some(definer) = defined else { return Ok(None) };
        let key = Key { collection: definer.collection().clone(), item: definer.name().into() };
        let found = self.cache.collection(&key.collection).get(&key.item);
        let found = found.ok_or_else(Status::no_such_path)?;
        match definer.state(&found) {
            DefinerState::Live => Ok(Some(Companion(Part::Unchanged(key, found.revision)))),
            DefinerState::Gone => Err(Status::no_such_path()),
            DefinerState::Terminating => {
                let why = "create not allowed while custom resource definition is terminating";
                Err(Status::forbidden(&resource.group_resource(), name, why))
            }
        }
    }

    /// Returns what the allocator must write when an object of a resource changes from `old` to
    /// `new`.
    pub(super) fn companions(
        &self,
        resource: &Resource,
        old: Option<&Value>,
        new: Option<&Value>,
        now: Now,
    ) -> Result<Vec<Companion>, Status> {
        match &resource.allocator {
            Some(allocator) => allocator.companions(self, old, new, now),
            None => Ok(Vec::new()),
        }
    }
}

/// The error for the client of a write on which the store failed: it was not committed, or that is
/// unknown.
pub(super) fn store_failed(error: Error) -> Status {
    let is_unknown = matches!(error, Error::Unknown { .. });
    tracing::error!(%error, is_unknown, "the store failed to commit a write");
    Status::internal(error)
}

/// Encodes an object as a write, if it is neither too large nor nested too deep to be read again.
/// Every stored object is encoded here, or copied by [`encode_metadata`] or [`copy_unchanged`].
pub(super) fn encode(
    resource: &Resource,
    (namespace, name): (&str, &str),
    tree: &Value,
    expect: Expect,
    kind: Kind,
) -> Result<pintle_store::Write, Status> {
    let key = resource.key(namespace, name)?;
    // A removal is never refused for its size: the object is stored, perhaps by a release with
    // other bounds.
    let is_bounded = kind != Kind::Deleted;
    if is_bounded && !json::nests_within(tree, OBJECT_DEPTH_MAX) {
        return Err(Status::bad_request(format!(
            "the object is nested more than {OBJECT_DEPTH_MAX} levels deep, its managed fields included"
        )));
    }
    let template = template(&resource.definition, tree, kind);
    let is_long = is_bounded && template.len() > OBJECT_BYTES_MAX;
    if is_long && message_len(resource, tree) > OBJECT_BYTES_MAX {
        return Err(Status::failure(Reason::Unknown, too_large(&template, resource, tree)));
    }
    let mut index = resource.index(tree);
    if resource.converter().is_some_and(StorageConverter::writes_own_form) {
        index.view_of = resource.number;
    }
    let change = change(template, kind);
    Ok(pintle_store::Write { key, expect, change, note: Some(Arc::new(index)) })
}

/// Encodes a stored object with other metadata as a write: the members besides the metadata are
/// copied. Returns `None` if all of the object must be encoded: it is unknown where its metadata is,
/// or it may be too large.
pub(super) fn encode_metadata(
    resource: &Resource,
    (namespace, name): (&str, &str),
    (stored, changed): (&Object, &ObjectHead),
    expect: Expect,
    kind: Kind,
) -> Result<Option<pintle_store::Write>, Status> {
    let key = resource.key(namespace, name)?;
    let template = template_with_metadata(&resource.definition, stored, changed, kind);
    let is_bounded = kind != Kind::Deleted;
    let is_small = |template: &Template| !is_bounded || template.len() <= OBJECT_BYTES_MAX;
    let Some(template) = template.filter(is_small) else { return Ok(None) };
    let index = stored.shared_index(resource)?;
    Ok(Some(pintle_store::Write { key, expect, change: change(template, kind), note: Some(index) }))
}

/// Copies a stored object as a write that removes it. Returns `None` if it must be encoded: its bytes
/// have no resource version to replace.
pub(super) fn copy_unchanged(
    resource: &Resource,
    (namespace, name): (&str, &str),
    stored: &Object,
    expect: Expect,
) -> Result<Option<pintle_store::Write>, Status> {
    let key = resource.key(namespace, name)?;
    let Some(template) = template_unchanged(stored) else { return Ok(None) };
    let (change, index) = (Change::Delete(template), stored.shared_index(resource)?);
    Ok(Some(pintle_store::Write { key, expect, change, note: Some(index) }))
}

fn change(template: Template, kind: Kind) -> Change {
    match kind {
        Kind::Created | Kind::Updated => Change::Put(template),
        Kind::Deleted => Change::Delete(template),
    }
}

impl Write<'_> {
    /// Commits a state of the target's object with its companions. If the object is too large, it
    /// is committed without `managedFields`, except by an apply (SSAI-08).
    pub(super) async fn commit(
        &self,
        name: &str,
        tree: &Value,
        expect: Expect,
        kind: Kind,
        companions: Vec<Companion>,
    ) -> Result<Committed, Status> {
        let (registry, resource) = (self.registry, &self.target.resource);
        let namespaced_name = (self.target.namespace.as_str(), name);
        let write = match encode(resource, namespaced_name, tree, expect, kind) {
            Err(refusal) if is_too_large(&refusal) => {
                let mut bare = tree.clone();
                let managers = object::metadata_mut(&mut bare).remove("managedFields");
                if self.is_apply || managers.is_none() {
                    return Err(refusal);
                }
                encode(resource, namespaced_name, &bare, expect, kind)?
            }
            write => write?,
        };
        let began = Instant::now();
        let committed = registry.commit_encoded(write, companions).await;
        self.context.timing.spent(Layer::Store, began);
        committed
    }

    /// Makes a response from an object that is not in the store: of a dry run, or removed by the
    /// write.
    pub(super) fn uncommitted(&self, mut tree: Value) -> ResponseBody {
        let resource = &self.target.resource;
        resource.to_served(&mut tree);
        ResponseBody::Value(tree, resource.schema.get(resource.ty).name.to_string())
    }
}

impl Outcome {
    /// Returns 200 with a body; nothing was committed.
    pub(crate) const fn ok(body: ResponseBody) -> Self {
        Self { body, created: false, accepted: false, committed: false }
    }

    /// Returns 200 with a body after a commit.
    pub(crate) const fn committed(body: ResponseBody) -> Self {
        Self { body, created: false, accepted: false, committed: true }
    }
}

/// The largest object that is stored, in bytes: etcd's default limit of a request.
const OBJECT_BYTES_MAX: usize = 1536 * 1024;
/// The largest request that upstream's etcd client sends.
const SENT_BYTES_MAX: usize = 2 * 1024 * 1024;
/// etcd's error for a request that is too large; upstream passes it on.
const TOO_LARGE: &str = "etcdserver: request is too large";
/// The error of upstream's etcd client, which checks the size before it sends the request.
const TOO_LARGE_TO_SEND: &str = "trying to send message larger than max";

/// The error message for an object that is too large.
fn too_large(template: &pintle_store::Template, resource: &Resource, tree: &Value) -> String {
    let bytes = template.len().min(message_len(resource, tree));
    if bytes > SENT_BYTES_MAX {
        return format!(
            "rpc error: code = ResourceExhausted desc = {TOO_LARGE_TO_SEND} ({bytes} vs. \
             {SENT_BYTES_MAX})"
        );
    }
    TOO_LARGE.to_owned()
}

fn is_too_large(refusal: &Status) -> bool {
    refusal.message == TOO_LARGE || refusal.message.contains(TOO_LARGE_TO_SEND)
}

/// Returns the length of an object in Protobuf, which upstream stores for built-in kinds;
/// `usize::MAX` for a custom resource, which upstream stores as JSON.
fn message_len(resource: &Resource, tree: &Value) -> usize {
    if resource.typed_items {
        return usize::MAX;
    }
    let mut message = Vec::new();
    protobuf::encode(&resource.schema, resource.stored_type(), tree, &mut message).len()
}

//! A stage that a request has reached, with the facts that are known of the request then.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use pintle_audit::{Annotations, Event, ObjectReference, Request, Response, Stage, TRUNCATED};
use pintle_auth::User;
use pintle_meta::object;
use pintle_value::Value;

use super::Record;
use crate::header_text::text;
use crate::request_info::ResourceInfo;

/// The size in bytes up to which a request's annotations are recorded.
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// A stage that a request has reached. A backend encodes it as one event.
pub(super) struct Moment {
    pub(super) record: Arc<Record>,
    pub(super) stage: Stage,
    pub(super) unix_micros: i64,
    pub(super) facts: Facts,
}

/// The facts of a request that become known after its head.
#[derive(Clone, Default)]
pub(super) struct Facts {
    pub(super) impersonated: Option<Arc<User>>,
    pub(super) impersonation_constraint: Option<&'static str>,
    pub(super) body: BodyMetadata,
    pub(super) response: Option<Response>,
    pub(super) request_object: Option<Bytes>,
    pub(super) response_object: Option<Bytes>,
    annotations: Annotations,
    annotations_bytes: usize,
}

/// The metadata of the object in a request's body.
#[derive(Clone, Default)]
pub(super) struct BodyMetadata {
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
}

impl Moment {
    /// Calls `then` with the event.
    pub(super) fn with_event<T>(&self, then: impl FnOnce(&Event<'_>) -> T) -> T {
        let (record, facts) = (&*self.record, &self.facts);
        let head = &record.head;
        let named = record.info.resource.as_ref();
        let request = Request {
            audit_id: &text(&head.audit_id),
            uri: head.uri(),
            verb: &record.info.verb.to_text(),
            user: record.user.as_deref(),
            source_ips: &head.source_ips,
            user_agent: &head.user_agent(),
            received_unix_micros: head.received_unix_micros,
            text: &record.request_text,
        };
        then(&Event {
            level: record.recording.level,
            stage: self.stage,
            stage_unix_micros: self.unix_micros,
            request,
            impersonated: facts.impersonated.as_deref(),
            impersonation_constraint: facts.impersonation_constraint,
            object: named.map(|named| facts.body.reference(named)),
            response: facts.response.as_ref(),
            request_object: facts.request_object.as_deref(),
            response_object: facts.response_object.as_deref(),
            omits_managed_fields: record.recording.omits_managed_fields,
            annotations: &facts.annotations,
        })
    }

    /// Whether it has objects, whose encoding may take long.
    pub(super) const fn has_objects(&self) -> bool {
        self.facts.request_object.is_some() || self.facts.response_object.is_some()
    }

    /// Its approximate size in memory, in bytes.
    pub(super) fn size(&self) -> usize {
        /// Includes a connection's buffer of usual size, which the head shares.
        const BASE_BYTES: usize = 8 * 1024;
        /// The text of a request has about what its head has, an address in up to 42 bytes.
        const TEXT_FACTOR: usize = 4;
        let facts = &self.facts;
        let head = self.record.head.size() * TEXT_FACTOR;
        let object = |object: &Option<Bytes>| object.as_ref().map_or(0, Bytes::len);
        let objects = object(&facts.request_object) + object(&facts.response_object);
        BASE_BYTES + head + objects + facts.annotations_bytes
    }
}

impl Facts {
    /// Adds an annotation, unless the key has one. Over the size limit, marks the annotations as
    /// truncated instead.
    pub(super) fn annotate(&mut self, key: Cow<'static, str>, value: Cow<'static, str>) {
        let bytes = self.annotations_bytes + key.len() + value.len();
        if self.annotations.contains_key(&key) {
            return;
        }
        if bytes > ANNOTATIONS_BYTES_MAX {
            self.annotations.insert(TRUNCATED.into(), "true".into());
            return;
        }
        self.annotations_bytes = bytes;
        self.annotations.insert(key, value);
    }
}

impl BodyMetadata {
    /// Copies the members that are still empty from an object.
    pub(super) fn add(&mut self, sent: &Value) {
        let metadata = |member| object::text(sent, member);
        for (known, text) in [
            (&mut self.namespace, metadata("namespace")),
            (&mut self.name, metadata("name")),
            (&mut self.uid, metadata("uid")),
            (&mut self.resource_version, metadata("resourceVersion")),
        ] {
            if known.is_empty() {
                text.clone_into(known);
            }
        }
    }

    /// The object that a request names: by its path, or by its body where the path lacks a part.
    fn reference<'a>(&'a self, named: &'a ResourceInfo) -> ObjectReference<'a> {
        let or = |path: &'a str, body: &'a str| if path.is_empty() { body } else { path };
        ObjectReference {
            resource: &named.resource,
            namespace: or(&named.namespace, &self.namespace),
            name: or(&named.name, &self.name),
            uid: &self.uid,
            group: &named.group,
            version: &named.version,
            resource_version: &self.resource_version,
            subresource: &named.subresource,
        }
    }
}

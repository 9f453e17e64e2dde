//! `Status`: the body of every error response and of some successful ones. Its constructors in this
//! module are the only ones; their messages are those of `k8s.io/apimachinery/pkg/api/errors`.

mod reason;
mod relayed;
#[cfg(test)]
mod tests;

use std::fmt;

use pintle_value::{Map, Value};

use crate::{GroupKind, GroupResource, field, quote::quote};

pub use reason::Reason;

/// An entry of `details.causes`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// The machine-readable reason, such as `FieldValueInvalid`.
    pub reason: String,
    /// The human-readable message.
    pub message: String,
    /// The path of the field; empty if the cause is not about a field.
    pub field: String,
}

/// The object or resource that a `Status` refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// The object's name.
    pub name: String,
    /// The API group.
    pub group: String,
    /// The resource, or the kind for reason `Invalid`.
    pub kind: String,
    /// The object's uid.
    pub uid: String,
    /// The individual errors.
    pub causes: Vec<Cause>,
    /// The number of seconds after which the client should retry; also sent as `Retry-After`.
    pub retry_after_seconds: Option<u32>,
}

/// A response of kind `Status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Whether this reports a success.
    pub success: bool,
    /// The human-readable message.
    pub message: String,
    /// The reason of the failure; `None` for a success, and for [`Status::without_reason`].
    pub reason: Option<Reason>,
    /// The object or resource that the status refers to.
    pub details: Option<Box<Details>>,
    /// The HTTP status code.
    pub code: u16,
    /// `metadata.continue`: set only where an expired list can be resumed inconsistently.
    pub continue_token: Option<String>,
}

impl Status {
    /// A failure without details.
    pub fn failure(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            success: false,
            message: message.into(),
            reason: Some(reason),
            details: None,
            code: reason.code(),
            continue_token: None,
        }
    }

    /// The rejection by a webhook, which chooses the code and the reason. A code below 400 becomes
    /// 400, an unknown reason becomes none.
    pub fn denied(message: impl Into<String>, code: u16, word: &str) -> Self {
        let reason = Reason::ALL.into_iter().find(|reason| reason.word() == word);
        let reason = reason.unwrap_or(Reason::Unknown);
        Self { code: code.max(400), ..Self::failure(reason, message) }
    }

    /// The rejection by an admission policy, which chooses the reason.
    pub fn denied_by_policy(
        resource: &GroupResource,
        name: &str,
        why: &str,
        reason: Reason,
    ) -> Self {
        let forbidden = Self::forbidden(resource, name, why).with_cause("", why, "");
        Self { reason: Some(reason), code: reason.code(), ..forbidden }
    }

    /// The rejection after mutating admission policies failed. The message and the optional reason
    /// are those of the first failure; as upstream, the code stays 403.
    pub fn failed_by_policies(
        resource: &GroupResource,
        name: &str,
        whys: &[String],
        reason: Option<Reason>,
    ) -> Self {
        let mut status = Self::forbidden(resource, name, "");
        status.message = whys.first().cloned().unwrap_or_default();
        status.reason = reason.or(status.reason);
        whys.iter().fold(status, |status, why| status.with_cause("", why, ""))
    }

    /// A failure that refers to the object `name` of a resource.
    fn about(reason: Reason, resource: &GroupResource, name: &str, message: String) -> Self {
        let mut status = Self::failure(reason, message);
        status.details = Some(Box::new(Details {
            name: name.to_owned(),
            group: resource.group.to_string(),
            kind: resource.resource.to_string(),
            ..Details::default()
        }));
        status
    }

    /// The response to a delete that removed the object at once (DEL-08).
    pub fn deleted(resource: &GroupResource, name: &str, uid: &str) -> Self {
        Self {
            success: true,
            message: String::new(),
            reason: None,
            details: Some(Box::new(Details {
                name: name.to_owned(),
                group: resource.group.to_string(),
                kind: resource.resource.to_string(),
                uid: uid.to_owned(),
                ..Details::default()
            })),
            code: 200,
            continue_token: None,
        }
    }

    /// A success with a specific code, such as 201 after a binding or an eviction.
    pub const fn success(code: u16) -> Self {
        Self {
            success: true,
            message: String::new(),
            reason: None,
            details: None,
            code,
            continue_token: None,
        }
    }

    /// 500 without a reason, where an upstream plugin returns an error that is not a status.
    pub fn without_reason(message: impl Into<String>) -> Self {
        let mut status = Self::failure(Reason::InternalError, message);
        status.reason = None;
        status
    }

    /// 404 for a missing object.
    pub fn not_found(resource: &GroupResource, name: &str) -> Self {
        let message = format!("{resource} {} not found", quote(name));
        Self::about(Reason::NotFound, resource, name, message)
    }

    /// 404 for a path that matches no resource.
    pub fn no_such_path() -> Self {
        let mut status =
            Self::failure(Reason::NotFound, "the server could not find the requested resource");
        status.details = Some(Box::default());
        status
    }

    /// Whether this is the status of [`Status::no_such_path`].
    pub fn is_no_such_path(&self) -> bool {
        *self == Self::no_such_path()
    }

    /// 409: a create of an object that exists.
    pub fn already_exists(resource: &GroupResource, name: &str) -> Self {
        let message = format!("{resource} {} already exists", quote(name));
        Self::about(Reason::AlreadyExists, resource, name, message)
    }

    /// 409: a write that conflicts with the stored object.
    pub fn conflict(resource: &GroupResource, name: &str, why: &str) -> Self {
        let name_shown = quote(name);
        let message = format!("Operation cannot be fulfilled on {resource} {name_shown}: {why}");
        Self::about(Reason::Conflict, resource, name, message)
    }

    /// 409: the client's resource version is not the current one (UPD-01).
    pub fn stale(resource: &GroupResource, name: &str) -> Self {
        const WHY: &str = "the object has been modified; please apply your changes to the latest \
                           version and try again";
        Self::conflict(resource, name, WHY)
    }

    /// 409: a precondition on the uid or the resource version failed. The text is that of
    /// upstream's storage, which clients match, so `key` is the key in etcd.
    pub fn failed_precondition(
        resource: &GroupResource,
        name: &str,
        key: &str,
        (what, wanted, found): (&str, &str, &str),
    ) -> Self {
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, \
             AdditionalErrorMsg: Precondition failed: {what} in precondition: {wanted}, {what} in \
             object meta: {found}"
        );
        Self::conflict(resource, name, &why)
    }

    /// 409: a create with `generateName` only generated names that exist (META-30).
    pub fn generate_name_conflict(
        resource: &GroupResource,
        name: &str,
        retry_after_seconds: u32,
    ) -> Self {
        let name_shown = quote(name);
        let message = format!(
            "{resource} {name_shown} already exists, the server was not able to generate a unique \
             name for the object"
        );
        Self::about(Reason::AlreadyExists, resource, name, message).retry(retry_after_seconds)
    }

    /// 409: an apply conflict, with a cause for each field that another manager owns.
    pub fn apply_conflict(causes: Vec<Cause>, message: impl Into<String>) -> Self {
        let mut status = Self::failure(Reason::Conflict, message);
        status.details = Some(Box::new(Details { causes, ..Details::default() }));
        status
    }

    /// 403. `why` follows `pods "x" is forbidden: `, or `forbidden: ` without a resource.
    pub fn forbidden(resource: &GroupResource, name: &str, why: &str) -> Self {
        let message = if resource.group.is_empty() && resource.resource.is_empty() {
            format!("forbidden: {why}")
        } else if name.is_empty() {
            format!("{resource} is forbidden: {why}")
        } else {
            format!("{resource} {} is forbidden: {why}", quote(name))
        };
        Self::about(Reason::Forbidden, resource, name, message)
    }

    /// 422: an invalid object, with a cause for each error, up to [`field::ERRORS_MAX`].
    pub fn invalid(kind: &GroupKind, name: &str, errors: &[field::Error]) -> Self {
        let mut message = format!("{kind} {} is invalid", quote(name));
        if !errors.is_empty() {
            message.push_str(": ");
            message.push_str(&field::aggregate(errors));
        }
        let mut status = Self::failure(Reason::Invalid, message);
        status.details = Some(Box::new(Details {
            name: name.to_owned(),
            group: kind.group.to_string(),
            kind: kind.kind.to_string(),
            causes: errors
                .iter()
                .take(field::ERRORS_MAX)
                .map(|e| Cause {
                    reason: e.error_type.reason().to_owned(),
                    message: e.body(),
                    field: e.field.clone(),
                })
                .collect(),
            ..Details::default()
        }));
        status
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::failure(Reason::BadRequest, message)
    }

    /// 401.
    pub fn unauthorized() -> Self {
        Self::failure(Reason::Unauthorized, "Unauthorized")
    }

    /// 405: the resource does not support the verb.
    pub fn method_not_allowed(resource: &GroupResource, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind \"{resource}\"");
        Self::about(Reason::MethodNotAllowed, resource, "", message)
    }

    /// 422: a well-formed patch that cannot be applied. Upstream's NewGenericServerResponse does
    /// not tell the client why, and kubectl depends on that, so the caller should log the reason.
    pub fn unprocessable() -> Self {
        let message = "the server rejected our request due to an error in our request";
        let mut status = Self::failure(Reason::Invalid, message);
        status.details = Some(Box::default());
        status
    }

    /// 413: a body or a part of it exceeds a limit.
    pub fn too_large(message: impl fmt::Display) -> Self {
        let message = format!("Request entity too large: {message}");
        Self::failure(Reason::RequestEntityTooLarge, message)
    }

    /// 406: the client accepts none of the supported `types`.
    pub fn not_acceptable(types: &str) -> Self {
        let message = format!("only the following media types are accepted: {types}");
        Self::failure(Reason::NotAcceptable, message)
    }

    /// 406 from the router: `types` are the media types that the route produces.
    pub fn no_representation(types: &str) -> Self {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {types}");
        Self { details: Some(Box::default()), ..Self::failure(Reason::NotAcceptable, message) }
    }

    /// 415 from the router: no route consumes the body's media type.
    pub fn no_route_for_media_type() -> Self {
        let failure = Self::failure(Reason::UnsupportedMediaType, "415: Unsupported Media Type");
        Self { details: Some(Box::default()), ..failure }
    }

    /// 415: the body's media type is none of the supported `types`.
    pub fn unsupported_media_type(types: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: \
             {types}"
        );
        Self::failure(Reason::UnsupportedMediaType, message)
    }

    /// 429 with a hint when to retry.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        Self::failure(Reason::TooManyRequests, message).retry(retry_after_seconds)
    }

    /// 500: the operation failed temporarily.
    pub fn server_timeout(
        resource: &GroupResource,
        operation: &str,
        retry_after_seconds: u32,
    ) -> Self {
        let message = format!(
            "The {operation} operation against {resource} could not be completed at this time, \
             please try again."
        );
        // Upstream puts the operation into the field of the object's name.
        Self::about(Reason::ServerTimeout, resource, operation, message).retry(retry_after_seconds)
    }

    /// 503.
    pub fn service_unavailable(message: impl Into<String>) -> Self {
        Self::failure(Reason::ServiceUnavailable, message)
    }

    /// 405 for a path that exists, but not with this method.
    pub fn wrong_method() -> Self {
        let mut status = Self::failure(
            Reason::MethodNotAllowed,
            "the server does not allow this method on the requested resource",
        );
        status.details = Some(Box::default());
        status
    }

    /// 501: a known feature that this server does not implement.
    pub fn not_implemented(what: &str) -> Self {
        let mut status = Self::failure(Reason::Unknown, format!("{what} is not implemented"));
        status.code = 501;
        status
    }

    /// 410: the resource version is older than the history that is kept.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::failure(Reason::Expired, message)
    }

    /// 500. The message is sent to the client; the caller should log the cause.
    pub fn internal(message: impl fmt::Display) -> Self {
        let mut status =
            Self::failure(Reason::InternalError, format!("Internal error occurred: {message}"));
        status.details = Some(Box::new(Details {
            causes: vec![Cause { message: message.to_string(), ..Cause::default() }],
            ..Details::default()
        }));
        status
    }

    /// 500 for a list, with a cause for each object that cannot be read.
    pub fn unreadable_objects(resource: &GroupResource, causes: Vec<Cause>) -> Self {
        let message = format!("failed to read one or more {resource} from the storage");
        let mut status = Self::about(Reason::StorageReadError, resource, "list", message);
        if let Some(details) = &mut status.details {
            details.causes = causes;
        }
        status
    }

    /// 504 with a hint when to retry.
    pub fn timeout(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let message = format!("Timeout: {}", message.into());
        Self::failure(Reason::Timeout, message).retry(retry_after_seconds)
    }

    /// 504: the request asks for a resource version that this server has not reached (RV-29).
    pub fn too_large_resource_version(asked: u64, current: u64) -> Self {
        let message = format!("Too large resource version: {asked}, current: {current}");
        let cause = "Too large resource version";
        Self::timeout(message, 1).with_cause("ResourceVersionTooLarge", cause, "")
    }

    /// Sets the retry hint; 0 removes it.
    fn retry(mut self, after_seconds: u32) -> Self {
        let details = self.details.get_or_insert_default();
        details.retry_after_seconds = (after_seconds > 0).then_some(after_seconds);
        self
    }

    /// Adds a cause.
    #[must_use]
    pub fn with_cause(mut self, reason: &str, message: &str, field: &str) -> Self {
        self.details.get_or_insert_default().causes.push(Cause {
            reason: reason.to_owned(),
            message: message.to_owned(),
            field: field.to_owned(),
        });
        self
    }

    /// Returns the status as an object of `v1`. The schema
    /// `io.k8s.apimachinery.pkg.apis.meta.v1.Status` gives upstream's order of members.
    pub fn to_value(&self) -> Value {
        let mut status = Map::new();
        status.insert("kind", "Status");
        status.insert("apiVersion", "v1");
        let mut metadata = Map::new();
        if let Some(token) = &self.continue_token {
            metadata.insert("continue", token.as_str());
        }
        status.insert("metadata", metadata);
        status.insert("status", if self.success { "Success" } else { "Failure" });
        insert_text(&mut status, "message", &self.message);
        insert_text(&mut status, "reason", self.reason.map_or("", Reason::word));
        if let Some(details) = &self.details {
            status.insert("details", details.to_value());
        }
        // Upstream's response to a completed delete has no code.
        if self.code != 0 && (!self.success || self.code != 200) {
            status.insert("code", i64::from(self.code));
        }
        Value::Object(status)
    }
}

impl Details {
    fn to_value(&self) -> Value {
        let mut details = Map::new();
        insert_text(&mut details, "name", &self.name);
        insert_text(&mut details, "group", &self.group);
        insert_text(&mut details, "kind", &self.kind);
        insert_text(&mut details, "uid", &self.uid);
        if !self.causes.is_empty() {
            let causes: Vec<Value> = self.causes.iter().map(Cause::to_value).collect();
            details.insert("causes", causes);
        }
        if let Some(seconds) = self.retry_after_seconds {
            details.insert("retryAfterSeconds", i64::from(seconds));
        }
        Value::Object(details)
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        let mut cause = Map::new();
        insert_text(&mut cause, "reason", &self.reason);
        insert_text(&mut cause, "message", &self.message);
        insert_text(&mut cause, "field", &self.field);
        Value::Object(cause)
    }
}

fn insert_text(map: &mut Map, key: &str, text: &str) {
    if !text.is_empty() {
        map.insert(key, text);
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

//! Events as JSON, exactly as Go's encoder writes upstream's types: members are in the order of the
//! types' fields, empty ones are omitted, and `<`, `>` and `&` are escaped.

use std::borrow::Cow;

use pintle_auth::User;

use pintle_meta::Reason;
use pintle_meta::status::Details;
use pintle_schema::{builtin, builtin_kind, encode, protobuf};
use pintle_value::{Value, cbor, json, yaml};

use crate::members::{Members, address, key, list, texts};
use crate::{Event, ObjectReference, Request, RequestText, Response};

/// The prefix of self-described CBOR (RFC 8949, section 3.4.6).
const CBOR_MARK: [u8; 3] = [0xd9, 0xd9, 0xf7];

/// The first members of an event, which name its type. An item of a list does not have them.
pub(crate) const TYPE: &str = r#","kind":"Event","apiVersion":"audit.k8s.io/v1""#;

impl Event<'_> {
    /// Appends the event as a JSON object in one line, without a line end.
    pub(crate) fn write_json(&self, out: &mut Vec<u8>) {
        let event = Members::begin(out);
        event.out.extend_from_slice(TYPE.as_bytes());
        self.members(event);
    }

    /// Appends the event as an item of a list, without its kind.
    pub(crate) fn write_item(&self, out: &mut Vec<u8>) {
        self.members(Members::begin(out));
    }

    fn members(&self, mut event: Members<'_>) {
        let request = &self.request;
        event.text(key!("level"), self.level.name());
        event.text(key!("auditID"), request.audit_id);
        event.text(key!("stage"), self.stage.name());
        let shared = request.text.get_or_init(|| request_text(request));
        event.out.extend_from_slice(shared.until_user());
        if let Some(impersonated) = self.impersonated {
            event.member(key!("impersonatedUser"), |out| user(Some(impersonated), out));
        }
        if let Some(constraint) = self.impersonation_constraint {
            event.member(key!("authenticationMetadata"), |out| {
                let mut metadata = Members::begin(out);
                metadata
                    .text(key!("impersonationConstraint"), &format!("impersonate:{constraint}"));
                metadata.end();
            });
        }
        event.out.extend_from_slice(shared.addresses_and_agent());
        if let Some(object) = &self.object {
            event.member(key!("objectRef"), |out| reference(object, out));
        }
        if let Some(answer) = self.response {
            event.member(key!("responseStatus"), |out| response(answer, out));
        }
        if let Some(object) = self.request_object {
            let json = decoded(object);
            event.member(key!("requestObject"), |out| {
                document(&json, self.omits_managed_fields, out)
            });
        }
        if let Some(object) = self.response_object {
            let json = decoded_response(object);
            event.member(key!("responseObject"), |out| {
                document(&json, self.omits_managed_fields, out)
            });
        }
        event.out.extend_from_slice(shared.received());
        event.time(key!("stageTimestamp"), self.stage_unix_micros);
        if !self.annotations.is_empty() {
            event.member(key!("annotations"), |out| {
                let mut annotations = Members::begin(out);
                for (key, value) in self.annotations {
                    annotations.entry(key, |out| json::write_string(value, out));
                }
                annotations.end();
            });
        }
        event.end();
    }
}

/// Encodes the members that all events of a request have in common.
fn request_text(request: &Request<'_>) -> RequestText {
    let mut members = Vec::with_capacity(512);
    let mut shared = Members::begin(&mut members);
    shared.text(key!("requestURI"), request.uri);
    shared.text(key!("verb"), request.verb);
    shared.member(key!("user"), |out| user(request.user, out));
    let user_end = shared.out.len();
    shared.member(key!("sourceIPs"), |out| list(request.source_ips, out, address));
    shared.some_text(key!("userAgent"), request.user_agent);
    let agent_end = shared.out.len();
    shared.time(key!("requestReceivedTimestamp"), request.received_unix_micros);
    RequestText { members, user_end, agent_end }
}

/// Writes the `EventList` of items of [`crate::Form::Item`].
pub fn event_list(items: &[u8]) -> Vec<u8> {
    const HEAD: &[u8] =
        br#"{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":["#;
    let items = items.strip_suffix(b",").unwrap_or(items);
    [HEAD, items, b"]}"].concat()
}

fn user(user: Option<&User>, out: &mut Vec<u8>) {
    let mut members = Members::begin(out);
    if let Some(User { name, uid, groups, extra }) = user {
        members.some_text(key!("username"), name);
        members.some_text(key!("uid"), uid);
        members.texts(key!("groups"), groups);
        if !extra.is_empty() {
            members.member(key!("extra"), |out| {
                let mut members = Members::begin(out);
                for (key, values) in extra {
                    members.entry(key, |out| texts(values, out));
                }
                members.end();
            });
        }
    }
    members.end();
}

fn reference(object: &ObjectReference<'_>, out: &mut Vec<u8>) {
    let mut members = Members::begin(out);
    members.some_text(key!("resource"), object.resource);
    members.some_text(key!("namespace"), object.namespace);
    members.some_text(key!("name"), object.name);
    members.some_text(key!("uid"), object.uid);
    members.some_text(key!("apiGroup"), object.group);
    members.some_text(key!("apiVersion"), object.version);
    members.some_text(key!("resourceVersion"), object.resource_version);
    members.some_text(key!("subresource"), object.subresource);
    members.end();
}

fn response(response: &Response, out: &mut Vec<u8>) {
    let mut members = Members::begin(out);
    members.member(key!("metadata"), |out| out.extend_from_slice(b"{}"));
    match response {
        Response::Code(_) => {}
        Response::Status(status, _) => {
            members.text(key!("status"), if status.success { "Success" } else { "Failure" });
            members.some_text(key!("message"), &status.message);
            members.some_text(key!("reason"), status.reason.map_or("", Reason::word));
            if let Some(found) = &status.details {
                members.member(key!("details"), |out| details(found, out));
            }
        }
        Response::ClosedEarly => {
            members.text(key!("status"), "Success");
            members.text(key!("message"), "Connection closed early");
        }
    }
    members.number(key!("code"), u32::from(response.code()));
    members.end();
}

fn details(details: &Details, out: &mut Vec<u8>) {
    let mut members = Members::begin(out);
    members.some_text(key!("name"), &details.name);
    members.some_text(key!("group"), &details.group);
    members.some_text(key!("kind"), &details.kind);
    members.some_text(key!("uid"), &details.uid);
    if !details.causes.is_empty() {
        members.member(key!("causes"), |out| {
            list(&details.causes, out, |cause, out| {
                let mut members = Members::begin(out);
                members.some_text(key!("reason"), &cause.reason);
                members.some_text(key!("message"), &cause.message);
                members.some_text(key!("field"), &cause.field);
                members.end();
            });
        });
    }
    if let Some(seconds) = details.retry_after_seconds.filter(|seconds| *seconds > 0) {
        members.number(key!("retryAfterSeconds"), seconds);
    }
    members.end();
}

/// Writes a JSON document in one line; anything else is written as a string.
fn document(bytes: &[u8], omits_managed_fields: bool, out: &mut Vec<u8>) {
    if json::check(bytes).is_err() {
        json::write_string(&String::from_utf8_lossy(bytes), out);
        return;
    }
    if omits_managed_fields && let Ok(mut object) = json::parse(bytes) {
        remove_managed_fields(&mut object);
        json::write(&object, out);
        return;
    }
    compact(bytes, out);
}

/// An answer's object as JSON. The server wrote it, so text that is not JSON is YAML.
fn decoded_response(bytes: &[u8]) -> Cow<'_, [u8]> {
    let bytes = decoded(bytes);
    if json::check(&bytes).is_ok() {
        return bytes;
    }
    match yaml::parse(&bytes) {
        Ok(object) => Cow::Owned(json::to_string(&object).into_bytes()),
        Err(_) => bytes,
    }
}

/// Converts Protobuf and CBOR to JSON; other formats remain.
fn decoded(bytes: &[u8]) -> Cow<'_, [u8]> {
    let from_message = || {
        let (api_version, kind) = protobuf::type_meta(bytes).ok()?;
        let ty = builtin_kind(&api_version, &kind)?;
        let object = protobuf::decode(builtin(), ty, bytes).ok()?;
        let mut json = Vec::with_capacity(2 * bytes.len());
        encode::write(builtin(), ty, &object, &mut json);
        Some(json)
    };
    let json = if protobuf::is_message(bytes) {
        from_message()
    } else if bytes.starts_with(&CBOR_MARK) {
        cbor::parse(bytes).ok().map(|object| json::to_string(&object).into_bytes())
    } else {
        None
    };
    json.map_or(Cow::Borrowed(bytes), Cow::Owned)
}

/// Removes the managed fields of an object, of a list's items, and of the objects in a Table's
/// rows.
fn remove_managed_fields(object: &mut Value) {
    fn of_one(object: &mut Value) {
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.remove("managedFields");
        }
    }
    of_one(object);
    if let Some(Value::Array(items)) = object.get_mut("items") {
        items.iter_mut().for_each(of_one);
    }
    if let Some(Value::Array(rows)) = object.get_mut("rows") {
        rows.iter_mut().filter_map(|row| row.get_mut("object")).for_each(of_one);
    }
}

/// Writes valid JSON without space between its tokens, with the escapes of Go's encoder.
fn compact(json: &[u8], out: &mut Vec<u8>) {
    out.reserve(json.len());
    let (mut in_string, mut is_escaped) = (false, false);
    let mut rest = json;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match byte {
            b'<' | b'>' | b'&' => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            0xe2 if behind.starts_with(&[0x80, 0xa8]) || behind.starts_with(&[0x80, 0xa9]) => {
                out.extend_from_slice(format!("\\u20{:02x}", behind[1] - 0x80).as_bytes());
                rest = &behind[2..];
            }
            b' ' | b'\t' | b'\r' | b'\n' if !in_string => {}
            _ => out.push(byte),
        }
        in_string ^= byte == b'"' && !is_escaped;
        is_escaped = in_string && byte == b'\\' && !is_escaped;
    }
}

//! Events as JSON, exactly as Go's encoder writes upstream's types: members are in the order of the
//! types' fields, empty ones are omitted, and `<`, `>` and `&` are escaped.

use std::borrow::Cow;
use std::io::Write as _;
use std::net::IpAddr;

use pintle_auth::User;

use pintle_meta::status::Details;
use pintle_meta::{Reason, time};
use pintle_schema::{builtin, builtin_kind, encode, protobuf};
use pintle_value::{Value, cbor, json, yaml};

use crate::{Event, ObjectReference, Response};

/// The prefix of self-described CBOR (RFC 8949, section 3.4.6).
const CBOR_MARK: [u8; 3] = [0xd9, 0xd9, 0xf7];

/// The members that an event begins with. The items of a list have none of them.
pub(crate) const TYPE: &str = r#""kind":"Event","apiVersion":"audit.k8s.io/v1","#;

impl Event<'_> {
    /// Appends the event as a JSON object in one line, without a line end.
    pub(crate) fn write_json(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        out.extend_from_slice(TYPE.as_bytes());
        self.members(Members { out, is_first: true });
    }

    /// Appends the event as an item of a list, without its kind.
    pub(crate) fn write_item(&self, out: &mut Vec<u8>) {
        self.members(Members::begin(out));
    }

    fn members(&self, mut event: Members<'_>) {
        let request = &self.request;
        event.text("level", self.level.name());
        event.text("auditID", request.audit_id);
        event.text("stage", self.stage.name());
        event.text("requestURI", request.uri);
        event.text("verb", request.verb);
        event.member("user", |out| user(request.user, out));
        if let Some(impersonated) = self.impersonated {
            event.member("impersonatedUser", |out| user(Some(impersonated), out));
        }
        if let Some(constraint) = self.impersonation_constraint {
            event.member("authenticationMetadata", |out| {
                let mut metadata = Members::begin(out);
                metadata.text("impersonationConstraint", &format!("impersonate:{constraint}"));
                metadata.end();
            });
        }
        event.member("sourceIPs", |out| list(request.source_ips, out, address));
        event.some_text("userAgent", request.user_agent);
        if let Some(object) = &self.object {
            event.member("objectRef", |out| reference(object, out));
        }
        if let Some(answer) = self.response {
            event.member("responseStatus", |out| response(answer, out));
        }
        if let Some(object) = self.request_object {
            let json = decoded(object);
            event.member("requestObject", |out| document(&json, self.omits_managed_fields, out));
        }
        if let Some(object) = self.response_object {
            let json = decoded_response(object);
            event.member("responseObject", |out| document(&json, self.omits_managed_fields, out));
        }
        event.time("requestReceivedTimestamp", request.received_unix_micros);
        event.time("stageTimestamp", self.stage_unix_micros);
        if !self.annotations.is_empty() {
            event.member("annotations", |out| {
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
        members.some_text("username", name);
        members.some_text("uid", uid);
        members.texts("groups", groups);
        if !extra.is_empty() {
            members.member("extra", |out| {
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
    members.some_text("resource", object.resource);
    members.some_text("namespace", object.namespace);
    members.some_text("name", object.name);
    members.some_text("uid", object.uid);
    members.some_text("apiGroup", object.group);
    members.some_text("apiVersion", object.version);
    members.some_text("resourceVersion", object.resource_version);
    members.some_text("subresource", object.subresource);
    members.end();
}

fn response(response: &Response, out: &mut Vec<u8>) {
    let mut members = Members::begin(out);
    members.member("metadata", |out| out.extend_from_slice(b"{}"));
    match response {
        Response::Code(_) => {}
        Response::Status(status, _) => {
            members.text("status", if status.success { "Success" } else { "Failure" });
            members.some_text("message", &status.message);
            members.some_text("reason", status.reason.map_or("", Reason::word));
            if let Some(found) = &status.details {
                members.member("details", |out| details(found, out));
            }
        }
        Response::ClosedEarly => {
            members.text("status", "Success");
            members.text("message", "Connection closed early");
        }
    }
    members.number("code", u32::from(response.code()));
    members.end();
}

fn details(details: &Details, out: &mut Vec<u8>) {
    let mut members = Members::begin(out);
    members.some_text("name", &details.name);
    members.some_text("group", &details.group);
    members.some_text("kind", &details.kind);
    members.some_text("uid", &details.uid);
    if !details.causes.is_empty() {
        members.member("causes", |out| {
            list(&details.causes, out, |cause, out| {
                let mut members = Members::begin(out);
                members.some_text("reason", &cause.reason);
                members.some_text("message", &cause.message);
                members.some_text("field", &cause.field);
                members.end();
            });
        });
    }
    if let Some(seconds) = details.retry_after_seconds.filter(|seconds| *seconds > 0) {
        members.number("retryAfterSeconds", seconds);
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

/// An answer's object as JSON. The server wrote it, so anything else is YAML.
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

/// Writes the members of a JSON object.
struct Members<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
}

impl<'a> Members<'a> {
    fn begin(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, is_first: true }
    }

    /// Writes a member of one of upstream's types, whose name needs no escapes.
    fn member(&mut self, name: &'static str, write: impl FnOnce(&mut Vec<u8>)) {
        self.separate();
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        write(self.out);
    }

    /// Writes an entry of a map.
    fn entry(&mut self, key: &str, write: impl FnOnce(&mut Vec<u8>)) {
        self.separate();
        json::write_string(key, self.out);
        self.out.push(b':');
        write(self.out);
    }

    fn separate(&mut self) {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
    }

    fn text(&mut self, name: &'static str, text: &str) {
        self.member(name, |out| json::write_string(text, out));
    }

    fn time(&mut self, name: &'static str, unix_micros: i64) {
        self.member(name, |out| {
            out.push(b'"');
            time::write_micro(unix_micros, out);
            out.push(b'"');
        });
    }

    /// Omitted if it is empty.
    fn some_text(&mut self, name: &'static str, text: &str) {
        if !text.is_empty() {
            self.text(name, text);
        }
    }

    /// Omitted if there are none.
    fn texts(&mut self, name: &'static str, all: &[String]) {
        if !all.is_empty() {
            self.member(name, |out| texts(all, out));
        }
    }

    fn number(&mut self, name: &'static str, number: u32) {
        self.member(name, |out| out.extend_from_slice(number.to_string().as_bytes()));
    }

    fn end(self) {
        self.out.push(b'}');
    }
}

fn address(ip: &IpAddr, out: &mut Vec<u8>) {
    let _ = write!(out, "\"{ip}\""); // writing to a Vec cannot fail
}

fn texts(texts: &[String], out: &mut Vec<u8>) {
    list(texts, out, |text, out| json::write_string(text, out));
}

fn list<T>(items: &[T], out: &mut Vec<u8>, write: impl Fn(&T, &mut Vec<u8>)) {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}

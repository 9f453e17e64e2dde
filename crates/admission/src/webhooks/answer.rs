//! Decodes the response of a webhook into an `AdmissionReview`, with the errors of upstream's client.

use ::base64::Engine as _;
use ::base64::engine::general_purpose::STANDARD;
use pintle_schema::decode::base64;
use pintle_value::{Map, Value, json, yaml};

const GROUP: &str = "admission.k8s.io";
const KIND: &str = "AdmissionReview";

/// The prefix of the errors about a body's kind.
const UNKNOWN_KIND: &str = "couldn't get version/kind; json parse error: ";

/// The Go type that the kind is decoded into.
const TOP: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
                   Kind string \"json:\\\"kind,omitempty\\\"\" }";

/// The type of a member, with the name of its Go type.
enum Type {
    Bool,
    Int32,
    /// Base64, or a list of numbers as kube-rs writes it.
    Bytes,
    Text(&'static str),
    List(&'static str, &'static Type),
    Map(&'static str, &'static Type),
    Struct(&'static str, &'static [(&'static str, Type)]),
}

const STRING: Type = Type::Text("string");
const UID: Type = Type::Text("types.UID");

/// The members of a review that the server reads.
const REVIEW: &[(&str, Type)] = &[("response", Type::Struct("AdmissionResponse", RESPONSE))];

const RESPONSE: &[(&str, Type)] = &[
    ("uid", UID),
    ("allowed", Type::Bool),
    ("status", Type::Struct("Status", STATUS)),
    ("patch", Type::Bytes),
    ("patchType", Type::Text("v1.PatchType")),
    ("auditAnnotations", Type::Map("map[string]string", &STRING)),
    ("warnings", Type::List("[]string", &STRING)),
];

const STATUS: &[(&str, Type)] = &[
    ("status", STRING),
    ("message", STRING),
    ("reason", Type::Text("v1.StatusReason")),
    ("details", Type::Struct("StatusDetails", DETAILS)),
    ("code", Type::Int32),
];

const DETAILS: &[(&str, Type)] = &[
    ("name", STRING),
    ("group", STRING),
    ("kind", STRING),
    ("uid", UID),
    ("causes", Type::List("[]v1.StatusCause", &Type::Struct("StatusCause", CAUSE))),
    ("retryAfterSeconds", Type::Int32),
];

const CAUSE: &[(&str, Type)] =
    &[("reason", Type::Text("v1.CauseType")), ("message", STRING), ("field", STRING)];

/// Decodes a response to a webhook that gets reviews of `version`. The members that the server
/// reads have their types or are null.
pub(super) fn decode(answer: &[u8], version: &str) -> Result<Value, String> {
    let review = parse(answer)?;
    let Some(members) = review.as_object() else {
        return match review {
            Value::Null => Ok(Value::object()),
            other => {
                let found = other.type_name();
                let why = format!("json: cannot unmarshal {found} into Go value of type {TOP}");
                Err(format!("{UNKNOWN_KIND}{why}"))
            }
        };
    };
    check_kind(members, version)?;
    check_members(members, REVIEW, KIND, "")?;
    Ok(review)
}

fn parse(answer: &[u8]) -> Result<Value, String> {
    if answer.trim_ascii_start().starts_with(b"{") {
        return json::parse(answer).map_err(|why| format!("{UNKNOWN_KIND}{why}"));
    }
    yaml::parse(answer).map_err(|why| {
        let why = why.to_string();
        why.strip_prefix("error converting YAML to JSON: ").unwrap_or(&why).to_owned()
    })
}

/// Checks the kind and the version, which may be absent.
fn check_kind(members: &Map, version: &str) -> Result<(), String> {
    let expected = format!("{GROUP}/{version}");
    let text = |member| match members.get(member) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(other) => {
            let found = other.type_name();
            let why = format!("cannot unmarshal {found} into Go struct field .{member}");
            Err(format!("{UNKNOWN_KIND}json: {why} of type string"))
        }
    };
    let or = |text: &'_ str, usual: &str| if text.is_empty() { usual } else { text }.to_owned();
    let (api_version, kind) = (or(text("apiVersion")?, &expected), or(text("kind")?, KIND));
    let other = api_version.strip_prefix(GROUP).and_then(|rest| rest.strip_prefix('/'));
    match other.filter(|other| kind == KIND && matches!(*other, "v1" | "v1beta1")) {
        Some(other) if other == version => Ok(()),
        Some(other) => {
            Err(format!("converting ({other}.{KIND}) to ({version}.{KIND}): unknown conversion"))
        }
        None => Err(format!(
            "no kind {kind:?} is registered for version {api_version:?} in scheme \
             \"pkg/runtime/scheme.go:111\""
        )),
    }
}

/// Checks the types of a Go struct's members; `path` is its own path, with a dot at the end.
fn check_members(
    members: &Map,
    types: &[(&str, Type)],
    owner: &str,
    path: &str,
) -> Result<(), String> {
    types.iter().try_for_each(|(member, ty)| match members.get(member) {
        Some(value) => ty.check(value, owner, &format!("{path}{member}")),
        None => Ok(()),
    })
}

impl Type {
    fn check(&self, value: &Value, owner: &str, path: &str) -> Result<(), String> {
        let fits_int32 = |value: &Value| value.as_int().is_some_and(|n| i32::try_from(n).is_ok());
        match (self, value) {
            (_, Value::Null) | (Self::Bool, Value::Bool(_)) | (Self::Text(_), Value::String(_)) => {
                return Ok(());
            }
            (Self::Int32, value) if fits_int32(value) => return Ok(()),
            (Self::Bytes, Value::String(text)) => {
                return base64::canonical(text).map(drop).map_err(|why| why.to_string());
            }
            (Self::Bytes, Value::Array(items)) => {
                return match items.iter().find(|item| !item.is_null() && byte(item).is_none()) {
                    Some(wrong) => Err(mismatch(wrong, owner, path, "uint8")),
                    None => Ok(()),
                };
            }
            (Self::List(_, ty), Value::Array(items)) => {
                return items.iter().try_for_each(|item| ty.check(item, owner, path));
            }
            (Self::Map(_, ty), Value::Object(members)) => {
                return members.iter().try_for_each(|(_, item)| ty.check(item, owner, path));
            }
            (Self::Struct(name, types), Value::Object(members)) => {
                return check_members(members, types, name, &format!("{path}."));
            }
            _ => {}
        }
        Err(mismatch(value, owner, path, &self.go_name()))
    }

    fn go_name(&self) -> String {
        match self {
            Self::Bool => "bool".to_owned(),
            Self::Int32 => "int32".to_owned(),
            Self::Bytes => "[]uint8".to_owned(),
            Self::Text(name) | Self::List(name, _) | Self::Map(name, _) => (*name).to_owned(),
            Self::Struct(name, _) => format!("v1.{name}"),
        }
    }
}

/// The text of Go's JSON decoder.
fn mismatch(found: &Value, owner: &str, path: &str, go_type: &str) -> String {
    let is_outside = matches!(go_type, "int32" | "uint8") && found.type_name() == "number";
    let found = match is_outside {
        true => format!("number {}", json::to_string(found)),
        false => found.type_name().to_owned(),
    };
    format!("json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {go_type}")
}

fn byte(item: &Value) -> Option<u8> {
    item.as_int().and_then(|item| u8::try_from(item).ok())
}

/// Reads the bytes of a member of [`Type::Bytes`].
pub(super) fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => {
            let canonical = base64::canonical(text).ok();
            canonical.and_then(|text| STANDARD.decode(&*text).ok()).unwrap_or_default()
        }
        Value::Array(items) => items.iter().map(|item| byte(item).unwrap_or_default()).collect(),
        _ => Vec::new(),
    }
}

//! `AdmissionReview`: the request to a webhook, and the checks of its response (WH-02, WH-03).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pintle_meta::Status;
use pintle_registry::Resource;
use pintle_registry::admission::Attributes;
use pintle_value::{Map, Str, Value, json};

use super::webhook::Webhook;
use crate::request::describe;

/// The request of a review.
pub(super) struct Review<'a> {
    pub(super) uid: &'a str,
    /// `v1` or `v1beta1`
    pub(super) version: &'a str,
    pub(super) write: &'a Attributes<'a>,
    /// The version of the resource that the webhook matches.
    pub(super) resource: &'a Resource,
    pub(super) object: Option<&'a Value>,
    pub(super) old: Option<&'a Value>,
}

/// The response of a webhook.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Verdict {
    pub(super) allowed: bool,
    /// A JSON patch.
    pub(super) patch: Option<Vec<u8>>,
    pub(super) warnings: Vec<String>,
    /// Annotations for the audit event.
    pub(super) annotations: Vec<(String, String)>,
    /// The `Status` of the response.
    pub(super) result: Value,
}

impl Review<'_> {
    /// Encodes the request. The objects are written and not copied, because all webhooks are called
    /// at once.
    pub(super) fn body(&self) -> Vec<u8> {
        let version = Value::from(format!("admission.k8s.io/{}", self.version));
        let request = json::to_string(&self.request().into());
        let object = |object: Option<&Value>| json::to_string(object.unwrap_or(&Value::Null));
        let parts = [
            r#"{"kind":"AdmissionReview","apiVersion":"#,
            &json::to_string(&version),
            r#","request":"#,
            request.strip_suffix('}').unwrap_or(&request), // it has members
            r#","object":"#,
            &object(self.object),
            r#","oldObject":"#,
            &object(self.old),
            "}}",
        ];
        parts.concat().into_bytes()
    }

    /// Returns the request without the objects.
    pub(super) fn request(&self) -> Map {
        let mut request = describe(self.write, self.resource);
        request.insert("uid", self.uid);
        request
    }

    /// Sets the attributes of the call's span.
    pub(super) fn span(&self, webhook: &Webhook, span: &mut pintle_trace::Attributes) {
        span.text("configuration", &webhook.configuration);
        span.text("webhook", &webhook.name);
        span.text("resource", &self.resource.group_resource().to_string());
        span.text("subresource", self.write.subresource);
        span.text("operation", self.write.operation.name());
        span.text("UID", self.uid);
    }

    /// Parses and checks the response.
    pub(super) fn verdict(&self, answer: &[u8]) -> Result<Verdict, String> {
        let answer = json::parse(answer).map_err(|error| error.to_string())?;
        let text = |path: &[&str]| answer.str_at(path).unwrap_or_default();
        let expected = format!("admission.k8s.io/{}", self.version);
        let (version, kind) = (text(&["apiVersion"]), text(&["kind"]));
        let is_typed = version == expected && kind == "AdmissionReview";
        // Webhooks of v1beta1 may omit the type.
        if !is_typed && (self.version == "v1" || !version.is_empty() || !kind.is_empty()) {
            return Err(format!(
                "expected webhook response of {expected}, Kind=AdmissionReview, got {version}, Kind={kind}"
            ));
        }
        let Some(response) = answer.get("response").filter(|r| r.as_object().is_some()) else {
            return Err("webhook response was absent".to_owned());
        };
        let uid = text(&["response", "uid"]);
        if self.version == "v1" && uid != self.uid {
            return Err(format!("expected response.uid={:?}, got {uid:?}", self.uid));
        }
        let patch = response.get("patch").map(bytes).transpose()?.filter(|patch| !patch.is_empty());
        let patch_type = text(&["response", "patchType"]);
        if self.version == "v1" && patch.is_some() && patch_type != "JSONPatch" {
            return Err(format!(
                "webhook returned response.patch but not response.patchType of \"JSONPatch\": \
                 {patch_type:?}"
            ));
        }
        let warnings = response.get("warnings").and_then(Value::as_array).unwrap_or_default();
        let annotations = response.get("auditAnnotations").and_then(Value::as_object);
        let annotation =
            |(key, value): (&Str, &Value)| Some((key.to_string(), value.as_str()?.to_owned()));
        Ok(Verdict {
            allowed: response.get("allowed") == Some(&Value::Bool(true)),
            patch,
            warnings: warnings.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            annotations: annotations
                .into_iter()
                .flat_map(Map::iter)
                .filter_map(annotation)
                .collect(),
            result: response.get("result").or(response.get("status")).cloned().unwrap_or_default(),
        })
    }
}

/// Reads bytes as Go does: from base64, or from a list of numbers as kube-rs writes them.
pub(super) fn bytes(value: &Value) -> Result<Vec<u8>, String> {
    let byte = |item: &Value| item.as_int().and_then(|item| u8::try_from(item).ok());
    let bytes = match value {
        Value::Null => Some(Vec::new()),
        Value::String(text) => return STANDARD.decode(text).map_err(|error| error.to_string()),
        Value::Array(items) => items.iter().map(byte).collect(),
        _ => None,
    };
    bytes.ok_or_else(|| "json: response.patch cannot be unmarshaled into bytes".to_owned())
}

/// Returns the refusal for a webhook's `Status` (upstream: `webhookerrors.ToStatusErr`).
pub(super) fn denial(webhook: &str, result: &Value) -> Status {
    let text = |member| result.str_at(&[member]).unwrap_or_default();
    let denied = format!("admission webhook {webhook:?} denied the request");
    let message = match (text("message"), text("reason")) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    let code = result.get("code").and_then(Value::as_int).and_then(|c| u16::try_from(c).ok());
    Status::denied(message, code.unwrap_or(0), text("reason"))
}

//! `AdmissionReview`: the request to a webhook, and the checks of its response (WH-02, WH-03).

use pintle_meta::Status;
use pintle_meta::status::{Cause, Details};
use pintle_registry::Resource;
use pintle_registry::admission::Attributes;
use pintle_value::{Map, Value, json};

use super::answer::{self, bytes};
use super::webhook::Webhook;
use crate::measures::Step;
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
    /// A JSON patch with operations.
    pub(super) patch: Option<Vec<u8>>,
    /// Why the patch cannot be used. The call has failed then, but the warnings and annotations
    /// count.
    pub(super) unusable: Option<String>,
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

    /// Decodes and checks the response; an error is that of the call.
    pub(super) fn verdict(&self, answer: &[u8], step: Step) -> Result<Verdict, String> {
        let failed = |why| format!("failed to call webhook: {why}");
        let review = answer::decode(answer, self.version).map_err(failed)?;
        let invalid = |why| format!("received invalid webhook response: {why}");
        let response = self.verify(&review, step).map_err(invalid)?;
        let allowed = response.get("allowed") == Some(&Value::Bool(true));
        let patch = (allowed && step == Step::Admit).then(|| self.patch(response)).transpose();
        let (patch, unusable) = match patch {
            Ok(patch) => (patch.flatten(), None),
            Err(why) => (None, Some(why)),
        };
        let warnings = response.get("warnings").and_then(Value::as_array).unwrap_or_default();
        let annotations = response.get("auditAnnotations").and_then(Value::as_object);
        let annotations = annotations.into_iter().flat_map(Map::iter);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(Verdict {
            allowed,
            patch,
            unusable,
            warnings: warnings.iter().map(text).collect(),
            annotations: annotations.map(|(key, value)| (key.to_string(), text(value))).collect(),
            result: response.get("status").cloned().unwrap_or_default(),
        })
    }

    /// Returns the response of a review if its members fit each other (upstream:
    /// `VerifyAdmissionResponse`).
    fn verify<'r>(&self, review: &'r Value, step: Step) -> Result<&'r Value, String> {
        let response = review.get("response").filter(|response| !response.is_null());
        let response = response.ok_or("webhook response was absent")?;
        // Reviews of v1beta1 need neither a uid nor a type, and a validating webhook's patch is
        // ignored.
        if self.version != "v1" {
            return Ok(response);
        }
        let text = |path: &[&str]| review.str_at(path).unwrap_or_default();
        let uid = text(&["response", "uid"]);
        if uid != self.uid {
            return Err(format!("expected response.uid={:?}, got {uid:?}", self.uid));
        }
        let (api_version, kind) = (text(&["apiVersion"]), text(&["kind"]));
        if api_version.is_empty() || kind.is_empty() {
            let found = if api_version.is_empty() { "/" } else { api_version };
            return Err(format!(
                "expected webhook response of {}, got {found}, Kind={kind}",
                "admission.k8s.io/v1, Kind=AdmissionReview"
            ));
        }
        let has_patch = response.get("patch").is_some_and(|patch| !bytes(patch).is_empty());
        let patch_type = response.str_at(&["patchType"]);
        let why = match (step, has_patch, patch_type) {
            (_, false, None) => return Ok(response),
            (Step::Validate, true, _) => "validating webhook may not return response.patch",
            (Step::Validate, ..) => "validating webhook may not return response.patchType",
            (_, true, None) => "webhook returned response.patch but not response.patchType",
            (_, false, _) => "webhook returned response.patchType but not response.patch",
            (_, _, Some("")) => r#"webhook returned invalid response.patchType of """#,
            _ => return Ok(response),
        };
        Err(why.to_owned())
    }

    /// Returns the JSON patch of a response, unless it has no operations.
    fn patch(&self, response: &Value) -> Result<Option<Vec<u8>>, String> {
        let patch = response.get("patch").map(bytes).filter(|patch| !patch.is_empty());
        let Some(patch) = patch else { return Ok(None) };
        let undecodable =
            |why: String| Err(format!("received undecodable patch in webhook response: {why}"));
        let mismatch = |found: &Value, ty| {
            let found = found.type_name();
            undecodable(format!("json: cannot unmarshal {found} into Go value of type {ty}"))
        };
        let operations = match json::parse(&patch) {
            Ok(Value::Array(operations)) => operations,
            Ok(Value::Null) => return Ok(None),
            Ok(other) => return mismatch(&other, "jsonpatch.Patch"),
            Err(why) => return undecodable(why.to_string()),
        };
        let is_wrong = |item: &&Value| !matches!(item, Value::Object(_) | Value::Null);
        if let Some(wrong) = operations.iter().find(is_wrong) {
            return mismatch(wrong, "jsonpatch.Operation");
        }
        // The type was not checked in v1beta1.
        let patch_type = response.str_at(&["patchType"]).unwrap_or_default();
        if self.version == "v1" && patch_type != "JSONPatch" && !operations.is_empty() {
            return Err(format!("unsupported patch type {patch_type:?}"));
        }
        Ok((!operations.is_empty()).then_some(patch))
    }
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
    let details = result.get("details").filter(|details| !details.is_null()).map(details);
    let status = Status::denied(message, code.unwrap_or(0), text("reason"));
    Status { details: details.map(Box::new), ..status }
}

fn details(details: &Value) -> Details {
    let text = |of: &Value, member| of.str_at(&[member]).unwrap_or_default().to_owned();
    let causes = details.get("causes").and_then(Value::as_array).unwrap_or_default();
    let cause = |cause: &Value| Cause {
        reason: text(cause, "reason"),
        message: text(cause, "message"),
        field: text(cause, "field"),
    };
    let seconds = details.get("retryAfterSeconds").and_then(Value::as_int);
    Details {
        name: text(details, "name"),
        group: text(details, "group"),
        kind: text(details, "kind"),
        uid: text(details, "uid"),
        causes: causes.iter().map(cause).collect(),
        retry_after_seconds: seconds.and_then(|seconds| u32::try_from(seconds).ok()),
    }
}

//! Conversion by a webhook: builds the request and validates the response (upstream:
//! `pkg/apiserver/conversion/webhook_converter.go`). The caller sends the request.

use std::sync::Arc;
use std::time::Duration;

use pintle_meta::{Reason, Status, field, object, validation};
use pintle_registry::webhook::{Caller, Conversion, ConversionFailure, Endpoint};
use pintle_value::{Map, Path, Str, Value, json};

use crate::definition::Crd;

#[cfg(test)]
mod tests;

/// The timeout of a conversion (upstream: the webhook client's timeout).
const TIMEOUT: Duration = Duration::from_secs(30);

/// The conversion webhook of a definition.
pub(crate) struct Webhook {
    /// The name of the definition.
    definition: Str,
    endpoint: Endpoint,
    /// The first listed version of ConversionReview that this crate supports: `v1` or `v1beta1`.
    review_version: Option<&'static str>,
    caller: Arc<dyn Caller>,
}

impl Webhook {
    /// The webhook of a definition, if it has one.
    pub(crate) fn of(crd: Crd<'_>, caller: Arc<dyn Caller>) -> Option<Self> {
        let conversion = crd.0.at(&["spec", "conversion"])?;
        if conversion.str_at(&["strategy"]) != Some("Webhook") {
            return None;
        }
        let webhook = conversion.get("webhook")?;
        let known =
            |given: &Value| ["v1", "v1beta1"].into_iter().find(|v| given.as_str() == Some(v));
        let given = webhook.get("conversionReviewVersions").and_then(Value::as_array);
        let review_version = given.unwrap_or_default().iter().find_map(known);
        let mut endpoint = Endpoint::of(webhook.get("clientConfig")?);
        if endpoint.ca_bundle.trim_ascii().is_empty() {
            endpoint.ca_bundle.clear(); // a bundle of white space counts as none
        }
        let endpoint = endpoint.within(TIMEOUT.as_secs());
        let definition = object::name(crd.0).into();
        Some(Self { definition, endpoint, review_version, caller })
    }

    /// Converts objects to a version; objects that are already in it are not sent.
    pub(crate) async fn convert(
        &self,
        mut objects: Vec<Value>,
        wanted: &str,
    ) -> Result<Vec<Value>, Status> {
        let is_other = |object: &&mut Value| object.str_at(&["apiVersion"]) != Some(wanted);
        let mut to_convert: Vec<&mut Value> = objects.iter_mut().filter(is_other).collect();
        let Some(first) = to_convert.first() else { return Ok(objects) };
        let from = first.str_at(&["apiVersion"]).unwrap_or_default().to_owned();
        let kind = first.str_at(&["kind"]).unwrap_or_default();
        let head = format!("conversion webhook for {from}, Kind={kind}");
        let began = self.caller.now();
        let outcome = self.exchange(&mut to_convert, wanted).await;
        let conversion = Conversion {
            definition: &self.definition,
            from: version(&from),
            to: version(wanted),
            failure: outcome.as_ref().err().map(|(failure, _)| *failure),
        };
        self.caller.converted(&conversion, began);
        // Without reason and details, as upstream returns the bare error.
        let fail = |why| Status::failure(Reason::Unknown, format!("{head} {why}"));
        outcome.map_err(|(_, why)| fail(why))?;
        Ok(objects)
    }

    /// Converts objects in place. An error has the kind of the failure and the message.
    async fn exchange(
        &self,
        to_convert: &mut [&mut Value],
        wanted: &str,
    ) -> Result<(), (ConversionFailure, String)> {
        let sent: Vec<Value> = to_convert.iter().map(|object| (**object).clone()).collect();
        let failed = |(failure, why)| (failure, format!("failed: {why}"));
        let converted = self.ask(&sent, wanted).await.map_err(failed)?;
        if converted.len() != sent.len() {
            let (got, expected) = (converted.len(), sent.len());
            let why = format!("returned {got} objects, expected {expected}");
            return Err((ConversionFailure::PartialResponse, why));
        }
        let is_list = sent.len() > 1;
        for (i, (object, answer)) in to_convert.iter_mut().zip(converted).enumerate() {
            **object = keep_metadata(object, answer, wanted).map_err(|fault| {
                (ConversionFailure::InvalidConvertedObject, fault.message(is_list, i))
            })?;
        }
        Ok(())
    }

    async fn ask(
        &self,
        objects: &[Value],
        wanted: &str,
    ) -> Result<Vec<Value>, (ConversionFailure, String)> {
        let unsupported =
            || (ConversionFailure::Call, "no supported conversion review versions".to_owned());
        let version = self.review_version.ok_or_else(unsupported)?;
        let api_version = format!("apiextensions.k8s.io/{version}");
        let uid = self.caller.uid();
        let review = Value::from([
            ("kind", Value::from("ConversionReview")),
            ("apiVersion", Value::from(api_version.clone())),
            (
                "request",
                Value::from([
                    ("uid", Value::from(uid.clone())),
                    ("desiredAPIVersion", Value::from(wanted)),
                    ("objects", Value::Array(objects.to_vec())),
                ]),
            ),
        ]);
        let body = json::to_string(&review).into_bytes();
        let answer = self
            .caller
            .call(&self.endpoint, body, TIMEOUT, None)
            .await
            .map_err(|unanswered| (ConversionFailure::Call, unanswered.why))?;
        let answer = json::parse(&answer);
        let answer = answer.map_err(|error| (ConversionFailure::Call, error.to_string()))?;
        let malformed = |why| (ConversionFailure::MalformedResponse, why);
        read_answer(answer, version, &uid).map_err(malformed)
    }
}

/// The version part of an `apiVersion`.
fn version(api_version: &str) -> &str {
    api_version.rsplit('/').next().unwrap_or_default()
}

/// The converted objects of a successful response.
fn read_answer(mut answer: Value, version: &str, uid: &str) -> Result<Vec<Value>, String> {
    let text = |path: &[&str]| answer.str_at(path).unwrap_or_default();
    if version == "v1" {
        let (api_version, kind) = (text(&["apiVersion"]), text(&["kind"]));
        if (api_version, kind) != ("apiextensions.k8s.io/v1", "ConversionReview") {
            return Err(format!(
                "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got \
                 {api_version}, Kind={kind}"
            ));
        }
    }
    if answer.get("response").and_then(Value::as_object).is_none() {
        return Err("no response provided".to_owned());
    }
    let given = text(&["response", "uid"]);
    if version == "v1" && given != uid {
        return Err(format!("expected response.uid={uid:?}, got {given:?}"));
    }
    let status = text(&["response", "result", "status"]);
    if status != "Success" {
        return Err(match text(&["response", "result", "message"]) {
            "" => format!("response.result.status was '{status}', not 'Success'"),
            message => message.to_owned(),
        });
    }
    let converted = answer.get_mut("response").and_then(|r| r.get_mut("convertedObjects"));
    Ok(match converted {
        Some(Value::Array(objects)) => std::mem::take(objects),
        _ => Vec::new(),
    })
}

/// Why a converted object is rejected.
enum Fault {
    /// It has another version or kind.
    Type(String),
    /// It is another object.
    Object(String),
    Metadata(String),
}

impl Fault {
    /// The message, which in upstream differs for one object and for several.
    fn message(self, is_list: bool, index: usize) -> String {
        match (self, is_list) {
            (Self::Type(why), false) => format!("returned invalid object at index 0: {why}"),
            (Self::Object(why), false) => format!("returned invalid object: {why}"),
            (Self::Metadata(why), false) => format!("returned invalid metadata: {why}"),
            (Self::Type(why) | Self::Object(why), true) => {
                format!("returned invalid converted object at index {index}: {why}")
            }
            (Self::Metadata(why), true) => {
                format!("returned invalid metadata in object at index {index}: {why}")
            }
        }
    }
}

/// Combines the converted object with the metadata of the original: a webhook may only change
/// labels and annotations.
fn keep_metadata(original: &Value, mut converted: Value, wanted: &str) -> Result<Value, Fault> {
    let wrong = |what: &str, expected: &str, got: &str| {
        Err(Fault::Type(format!("{what} (expected {expected}, received {got})")))
    };
    let text = |object: &Value, key: &str| object.str_at(&[key]).unwrap_or_default().to_owned();
    let version = text(&converted, "apiVersion");
    if version != wanted {
        return wrong("invalid groupVersion", wanted, &version);
    }
    let (expected, got) = (text(original, "kind"), text(&converted, "kind"));
    if expected != got {
        return wrong("invalid kind", &expected, &got);
    }
    for (key, word) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (expected, got) = (object::text(original, key), object::text(&converted, key));
        if expected != got {
            let why = format!("must have the same {word}: {expected} != {got}");
            return Err(Fault::Object(why));
        }
    }
    let metadata = restored(original, &converted).map_err(Fault::Metadata)?;
    converted.make_object().insert("metadata", metadata);
    Ok(converted)
}

fn restored(original: &Value, converted: &Value) -> Result<Map, String> {
    let given = match converted.get("metadata") {
        None => return Err("missing metadata in converted object".to_owned()),
        Some(Value::Object(given)) => given,
        Some(_) => return Err("invalid metadata of type in converted object".to_owned()),
    };
    let original = original.get("metadata").and_then(Value::as_object);
    let mut metadata = original.cloned().unwrap_or_default();
    for key in ["labels", "annotations"] {
        match given.get(key) {
            None | Some(Value::Null) => _ = metadata.remove(key),
            Some(Value::Object(texts)) => {
                if let Some((name, _)) = texts.iter().find(|(_, text)| text.as_str().is_none()) {
                    return Err(format!(
                        "metadata.{key}[{name}] must be a string in converted object"
                    ));
                }
                let path = Path::new("metadata").field(key);
                let errors = match key {
                    "labels" => validation::labels(Some(texts), &path),
                    _ => validation::annotations(Some(texts), &path),
                };
                let changed = metadata.get(key).and_then(Value::as_object) != Some(texts);
                if changed && !errors.is_empty() {
                    return Err(field::aggregate(&errors));
                }
                metadata.insert(key, texts.clone());
            }
            Some(_) => return Err(format!("invalid metadata.{key} in converted object")),
        }
    }
    Ok(metadata)
}

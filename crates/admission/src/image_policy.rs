//! Asks a webhook whether a pod's images may run (upstream: `ImagePolicyWebhook`).

mod configuration;

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pintle_registry::Registry;
use pintle_registry::admission::{Admission, Attributes, Hook, Hooks, Operation, Waited};
use pintle_registry::webhook::ResponseFuture;
use pintle_value::{Map, Value, json};

pub use configuration::ImagePolicy;

use crate::annotations::annotate;
use crate::forbidden;
use crate::lru_cache::LruCache;
use crate::pods::items;

/// The prefix of audit annotations.
const ANNOTATION_PREFIX: &str = "imagepolicywebhook.image-policy.k8s.io/";
/// The key of the audit annotation for a pod that passes because the webhook failed.
const FAILED_OPEN: &str = "failed-open";
const API_VERSION: &str = "imagepolicy.k8s.io/v1alpha1";
const KIND: &str = "ImageReview";
/// The largest number of cached verdicts.
const VERDICTS_MAX: usize = 1024;
/// The timeout of a review with all attempts.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Sends reviews to the webhook.
pub trait ImageReviewer: Send + Sync {
    /// Posts a review as JSON and retries temporary failures until the timeout; `first_pause` is
    /// the delay before the first retry. The size of a response is bounded.
    fn review(&self, body: Vec<u8>, first_pause: Duration, timeout: Duration)
    -> ResponseFuture<'_>;
}

/// The plugin.
pub struct ImagePolicyWebhook {
    policy: ImagePolicy,
    reviewer: Box<dyn ImageReviewer>,
    /// The cached verdicts, by the JSON of the review's spec; `None` until the webhook answers.
    verdicts: Mutex<LruCache<Option<Cached>>>,
}

/// The webhook's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Verdict {
    allowed: bool,
    reason: String,
    /// The webhook's audit annotations, by keys without the prefix.
    annotations: Vec<(String, String)>,
}

struct Cached {
    verdict: Verdict,
    expires: Instant,
}

impl ImagePolicyWebhook {
    /// The plugin's name.
    pub const NAME: &str = "ImagePolicyWebhook";

    /// A plugin that calls its webhook through `reviewer`.
    pub fn new(policy: ImagePolicy, reviewer: Box<dyn ImageReviewer>) -> Self {
        Self { policy, reviewer, verdicts: Mutex::new(LruCache::new(VERDICTS_MAX)) }
    }

    /// Returns an error if the images may not run. `annotate` receives the audit annotations.
    async fn decide(&self, spec: Value, annotate: impl Fn(&str, &str)) -> Result<(), String> {
        let key = json::to_string(&spec).into_bytes();
        let verdict = match self.cached(&key) {
            Some(verdict) => verdict,
            None => match self.ask(spec).await {
                Ok(verdict) => self.cache(&key, verdict),
                Err(why) if self.policy.default_allow => {
                    tracing::warn!(%why, "the image policy webhook failed; defaultAllow lets the pod pass");
                    annotate(FAILED_OPEN, "true");
                    return Ok(());
                }
                Err(why) => return Err(why),
            },
        };
        verdict.annotations.iter().for_each(|(key, value)| annotate(key, value));
        match (verdict.allowed, verdict.reason.as_str()) {
            (true, _) => Ok(()),
            (false, "") => Err("one or more images rejected by webhook backend".to_owned()),
            (false, reason) => {
                Err(format!("image policy webhook backend denied one or more images: {reason}"))
            }
        }
    }

    fn cached(&self, key: &[u8]) -> Option<Verdict> {
        let mut verdicts = self.verdicts.lock();
        let cached = verdicts.entry(key, || None).as_ref();
        cached.filter(|cached| Instant::now() < cached.expires).map(|cached| cached.verdict.clone())
    }

    fn cache(&self, key: &[u8], verdict: Verdict) -> Verdict {
        let expires = Instant::now() + self.policy.ttl(verdict.allowed);
        let cached = Cached { verdict: verdict.clone(), expires };
        *self.verdicts.lock().entry(key, || None) = Some(cached);
        verdict
    }

    async fn ask(&self, spec: Value) -> Result<Verdict, String> {
        let review = Value::from([
            ("apiVersion", API_VERSION.into()),
            ("kind", KIND.into()),
            ("spec", spec),
        ]);
        let body = json::to_string(&review).into_bytes();
        let answer = self.reviewer.review(body, self.policy.retry_backoff, TIMEOUT).await;
        verdict(&answer.map_err(|why| why.why)?)
    }
}

impl Admission for ImagePolicyWebhook {
    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::ValidateRegistered])
    }

    fn validate_registered<'a>(
        &'a self,
        write: &'a Attributes<'a>,
        _: &'a Registry,
    ) -> Option<Waited<'a, ()>> {
        let of = &write.resource.resource;
        let is_pod = of.resource == "pods" && of.group.is_empty();
        let is_new = matches!(write.operation, Operation::Create | Operation::Update);
        let containers: &[&str] = match write.subresource {
            "" => &["containers", "initContainers"],
            "ephemeralcontainers" => &["ephemeralContainers"],
            _ => return None,
        };
        let pod = write.object.filter(|_| is_pod && is_new)?;
        let spec = spec(pod, containers, write.namespace);
        Some(Box::pin(async move {
            let verdict = self.decide(spec, |key, value| {
                annotate(write, &format!("{ANNOTATION_PREFIX}{key}"), || value.to_owned());
            });
            let verdict = verdict.await;
            verdict.map_err(|why| forbidden(write, pod, &why))
        }))
    }
}

/// Returns the spec of a review of the images in some of a pod's lists of containers.
fn spec(pod: &Value, lists: &[&str], namespace: &str) -> Value {
    let containers = lists.iter().flat_map(|list| items(pod, &["spec", list]));
    let images = containers.map(|container| {
        let image = container.str_at(&["image"]).filter(|image| !image.is_empty());
        image.map_or_else(Value::object, |image| Value::from([("image", Value::from(image))]))
    });
    let mut spec = Map::new();
    let images: Vec<Value> = images.collect();
    if !images.is_empty() {
        spec.insert("containers", images);
    }
    let annotations = pod.at(&["metadata", "annotations"]).and_then(Value::as_object);
    let annotations = annotations.into_iter().flat_map(Map::iter);
    let mut shown = Map::new();
    for (name, value) in annotations.filter(|(name, _)| name.contains(".image-policy.k8s.io/")) {
        shown.insert(name.as_str(), value.clone());
    }
    if !shown.is_empty() {
        spec.insert("annotations", shown);
    }
    if !namespace.is_empty() {
        spec.insert("namespace", namespace);
    }
    spec.into()
}

/// Reads an answer.
fn verdict(answer: &[u8]) -> Result<Verdict, String> {
    let answer = json::parse(answer).map_err(|why| why.to_string())?;
    let text = |path: &[&str]| answer.str_at(path).unwrap_or_default();
    let (version, kind) = (text(&["apiVersion"]), text(&["kind"]));
    if version != API_VERSION || kind != KIND {
        return Err(format!("no kind {kind:?} is registered for version {version:?}"));
    }
    let annotations = answer.at(&["status", "auditAnnotations"]).and_then(Value::as_object);
    let annotations = annotations.into_iter().flat_map(Map::iter);
    let text_of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(Verdict {
        annotations: annotations.map(|(key, value)| (key.to_string(), text_of(value))).collect(),
        allowed: answer.at(&["status", "allowed"]) == Some(&Value::Bool(true)),
        reason: text(&["status", "reason"]).to_owned(),
    })
}

#[cfg(test)]
mod tests;

//! The webhook authorizer: posts a SubjectAccessReview and caches the ruling (upstream:
//! `plugin/pkg/authorizer/webhook`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use pintle_auth::configuration;
use pintle_auth::review::{self, Verdict};
use pintle_auth::{
    Attributes, Authorizer, Decision, Objects, Rules, Ruling, RulingFuture, Subject, User,
};
use pintle_registry::webhook::CallError;
use pintle_value::{Value, json};
use tokio::sync::Semaphore;

use super::measures::Measures;
use crate::backends::Dialers;
use crate::expiring::ExpiringCache;
use crate::webhooks::{Remote, retry};

/// The timeout of a review with all attempts.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum number of concurrent reviews; others wait.
const QUESTIONS_MAX: usize = 512;
/// The maximum number of cached rulings.
const VERDICTS_MAX: usize = 8192;
/// A ruling is cached only if the client's part of the review has fewer bytes.
const REMEMBERED_MAX: usize = 10_000;

/// The authorizer.
pub(super) struct Webhook(Arc<Inner>);

struct Inner {
    name: String,
    settings: configuration::Webhook,
    remote: Remote,
    verdicts: ExpiringCache<Verdict>,
    open: Semaphore,
    measures: Arc<Measures>,
}

/// A review that must be posted.
struct Question {
    /// The spec of the review and its text, which is the cache key.
    spec: Value,
    key: Box<[u8]>,
    is_remembered: bool,
}

impl Webhook {
    /// # Errors
    /// The error of the kubeconfig.
    pub(super) fn new(
        name: String,
        settings: configuration::Webhook,
        dialers: &Dialers,
        measures: Arc<Measures>,
    ) -> Result<Self, String> {
        let remote = Remote::read(&settings.kubeconfig, dialers);
        let remote = remote.map_err(|why| format!("{}: {why}", settings.kubeconfig.display()))?;
        let (verdicts, open) = (ExpiringCache::new(VERDICTS_MAX), Semaphore::new(QUESTIONS_MAX));
        Ok(Self(Arc::new(Inner { name, settings, remote, verdicts, open, measures })))
    }
}

impl Authorizer for Webhook {
    fn authorize<'a>(&self, attributes: &'a Attributes<'a>) -> RulingFuture<'a> {
        match self.0.without_call(attributes) {
            Ok(ruling) => ruling.into(),
            Err(question) => {
                let asker = self.0.clone();
                RulingFuture::pending(async move { asker.ask(question).await })
            }
        }
    }

    fn rules(&self, _: &User, _: &str) -> Rules {
        Rules {
            incomplete: true,
            error: "webhook authorizer does not support user rule resolution".to_owned(),
            ..Rules::default()
        }
    }
}

impl Inner {
    /// The ruling if it needs no call; otherwise the review.
    fn without_call(&self, attributes: &Attributes<'_>) -> Result<Ruling, Question> {
        let spec = review::question(attributes);
        match self.is_concerned(&spec) {
            Ok(true) => {}
            Ok(false) => return Ok(Ruling::NO_OPINION),
            Err(why) => return Ok(self.failed(why)),
        }
        let key: Box<[u8]> = json::to_string(&spec).into_bytes().into();
        if let Some(verdict) = self.verdicts.get(&key) {
            return Ok(ruling(verdict));
        }
        Err(Question { spec, key, is_remembered: chosen_bytes(attributes) < REMEMBERED_MAX })
    }

    /// Whether the match conditions hold.
    fn is_concerned(&self, spec: &Value) -> Result<bool, String> {
        let conditions = &self.settings.conditions;
        if conditions.is_empty() {
            return Ok(true);
        }
        let began = Instant::now();
        let holds = conditions.hold(spec);
        self.measures.webhooks.matched(&self.name, &holds, began.elapsed());
        holds
    }

    async fn ask(&self, question: Question) -> Ruling {
        let Question { spec, key, is_remembered } = question;
        let version = self.settings.version;
        let body = Bytes::from(review::request(&spec, version));
        let answer = tokio::time::timeout(TIMEOUT, self.attempts(body)).await;
        let (answer, result) = match answer {
            Ok(answer) => answer,
            Err(_) => (Err("context deadline exceeded".to_owned()), "timeout"),
        };
        let verdict = match answer {
            Ok(verdict) => verdict,
            Err(why) => {
                tracing::error!("the authorization webhook {:?} did not answer: {why}", self.name);
                if self.settings.on_failure == Decision::NoOpinion {
                    self.measures.webhooks.failed_open(&self.name, result);
                }
                return self.failed(why);
            }
        };
        let settings = &self.settings;
        let ttl = if verdict.allowed { settings.authorized_ttl } else { settings.unauthorized_ttl };
        if is_remembered && !ttl.is_zero() {
            self.verdicts.put(key, verdict.clone(), Instant::now() + ttl);
        }
        ruling(verdict)
    }

    /// Posts a review, and retries after temporary failures.
    async fn attempts(&self, body: Bytes) -> (Result<Verdict, String>, &'static str) {
        let Ok(_permit) = self.open.acquire().await else {
            return (Err("closed".to_owned()), "error");
        };
        let answer = retry::with_backoff(retry::FIRST_PAUSE, || self.attempt(body.clone())).await;
        let result = result(&answer);
        let verdict = answer.map_err(|why| why.to_string());
        (verdict.and_then(|answer| review::verdict(&answer, self.settings.version)), result)
    }

    async fn attempt(&self, body: Bytes) -> Result<Vec<u8>, CallError> {
        let began = Instant::now();
        let answer = self.remote.post(body, self.settings.timeout).await;
        self.measures.webhooks.asked(&self.name, result(&answer), began.elapsed());
        answer
    }

    /// The ruling after a failure.
    fn failed(&self, why: String) -> Ruling {
        Ruling { error: Some(why), ..Ruling::new(self.settings.on_failure, "") }
    }
}

fn result(answer: &Result<Vec<u8>, CallError>) -> &'static str {
    match answer {
        Ok(_) => "success",
        Err(why) if why.code == 504 || why.why.ends_with("context deadline exceeded") => "timeout",
        Err(_) => "error",
    }
}

fn ruling(verdict: Verdict) -> Ruling {
    let Verdict { allowed, denied, reason } = verdict;
    let decision = match (denied, allowed) {
        (true, _) => Decision::Deny,
        (false, true) => Decision::Allow,
        (false, false) => Decision::NoOpinion,
    };
    let both = "webhook subject access review returned both allow and deny response";
    let error = (denied && allowed).then(|| both.to_owned());
    Ruling { error, ..Ruling::with_reason(decision, reason) }
}

/// The bytes of a review that the client chooses.
fn chosen_bytes(attributes: &Attributes<'_>) -> usize {
    let of_subject = match attributes.subject {
        Subject::Path(path) => path.len(),
        Subject::Resource(objects) => {
            let Objects { group, version, resource, subresource, namespace, name, .. } = objects;
            [group, version, resource, subresource, namespace, name].map(str::len).iter().sum()
        }
    };
    attributes.verb.len() + of_subject
}

use std::sync::Arc;

use pintle_registry::webhook::CallError;
use pintle_value::yaml;

use super::*;

/// Responds with the answers in order, repeating the last one, and records the requests.
#[derive(Clone, Default)]
struct Webhook {
    answers: Vec<Result<&'static str, u16>>,
    reviews: Arc<Mutex<Vec<String>>>,
}

impl ImageReviewer for Webhook {
    fn review(&self, body: Vec<u8>, _: Duration, _: Duration) -> ResponseFuture<'_> {
        let mut reviews = self.reviews.lock();
        let answer = self.answers[reviews.len().min(self.answers.len() - 1)];
        reviews.push(String::from_utf8(body).unwrap());
        Box::pin(async move {
            let refused =
                |code| CallError { why: format!("code {code}"), code, is_transient: false };
            answer.map(|text| text.as_bytes().to_vec()).map_err(refused)
        })
    }
}

fn plugin(members: &str, answers: &[Result<&'static str, u16>]) -> (ImagePolicyWebhook, Webhook) {
    let text = format!("imagePolicy: {{kubeConfigFile: k, retryBackoff: 1, {members}}}");
    let policy = ImagePolicy::read(&yaml::parse(text.as_bytes()).unwrap()).unwrap();
    let webhook = Webhook { answers: answers.to_vec(), ..Webhook::default() };
    (ImagePolicyWebhook::new(policy, Box::new(webhook.clone())), webhook)
}

const YES: &str = r#"{"apiVersion":"imagepolicy.k8s.io/v1alpha1","kind":"ImageReview","status":{"allowed":true}}"#;
const NO: &str = r#"{"apiVersion":"imagepolicy.k8s.io/v1alpha1","kind":"ImageReview","status":{"reason":"old"}}"#;
const MUTE: &str = r#"{"apiVersion":"imagepolicy.k8s.io/v1alpha1","kind":"ImageReview"}"#;

/// Upstream: `plugin/pkg/admission/imagepolicy/admission_test.go`.
#[tokio::test]
async fn answers_count_and_failures_as_configured() {
    let denied = "image policy webhook backend denied one or more images: old";
    for (members, answer, expected) in [
        ("", Ok(YES), Ok(())),
        ("", Ok(NO), Err(denied)),
        ("defaultAllow: true", Ok(NO), Err(denied)),
        ("", Ok(MUTE), Err("one or more images rejected by webhook backend")),
        ("", Err(400), Err("code 400")),
        ("", Err(500), Err("code 500")),
        ("defaultAllow: true", Err(500), Ok(())),
        ("", Ok("{}"), Err("no kind \"\" is registered for version \"\"")),
        ("defaultAllow: true", Ok("no JSON"), Ok(())),
    ] {
        let (plugin, _) = plugin(members, &[answer]);
        let verdict = plugin.decide(Value::object(), |_, _| {}).await;
        assert_eq!(verdict, expected.map_err(str::to_owned), "{members} {answer:?}");
    }
}

#[tokio::test]
async fn verdicts_are_cached_by_question_and_failures_never() {
    let spec = |image: &str| Value::from([("image", Value::from(image))]);
    let (plugin, webhook) = plugin("denyTTL: -1", &[Ok(YES), Ok(NO), Err(400), Ok(YES)]);
    for (image, expected, times) in [
        ("a", true, 1),
        ("a", true, 1),
        ("b", false, 2),
        ("b", false, 3),
        ("b", true, 4),
        ("a", true, 4),
        ("b", true, 4),
    ] {
        assert_eq!(plugin.decide(spec(image), |_, _| {}).await.is_ok(), expected, "{image}");
        assert_eq!(webhook.reviews.lock().len(), times, "{image}");
    }
}

/// Upstream: `AuditKeyPrefix` and `ImagePolicyFailedOpenKeySuffix`. A cached verdict annotates each
/// pod.
#[tokio::test]
async fn audit_events_have_the_annotations_of_the_webhook_and_its_failures() {
    let response = r#"{"apiVersion":"imagepolicy.k8s.io/v1alpha1","kind":"ImageReview",
        "status":{"auditAnnotations":{"who":"scanner","what":"old"}}}"#;
    for (answer, expected) in [
        (Ok(response), &["what=old", "who=scanner"][..]),
        (Ok(YES), &[]),
        (Err(500), &["failed-open=true"]),
    ] {
        let (plugin, _) = plugin("defaultAllow: true", &[answer]);
        for _ in 0..2 {
            let annotations = Mutex::new(Vec::new());
            let annotate =
                |key: &str, value: &str| annotations.lock().push(format!("{key}={value}"));
            let _ = plugin.decide(Value::object(), annotate).await; // another test covers the verdict
            assert_eq!(*annotations.lock(), expected, "{answer:?}");
        }
    }
}

/// A write of the subresource `ephemeralcontainers` sends the ephemeral containers.
#[test]
fn cve_2023_2727_each_kind_of_container_is_reviewed() {
    let pod = json::parse(
        br#"{"metadata":{"annotations":{"a.image-policy.k8s.io/ticket":"1","other":"2"}},
            "spec":{"initContainers":[{"image":"i"}],"containers":[{"image":"c"},{}],
            "ephemeralContainers":[{"image":"e"}]}}"#,
    )
    .unwrap();
    for (lists, expected) in [
        (
            &["containers", "initContainers"][..],
            r#"{"annotations":{"a.image-policy.k8s.io/ticket":"1"},"containers":[{"image":"c"},{},{"image":"i"}],"namespace":"n"}"#,
        ),
        (
            &["ephemeralContainers"],
            r#"{"annotations":{"a.image-policy.k8s.io/ticket":"1"},"containers":[{"image":"e"}],"namespace":"n"}"#,
        ),
    ] {
        assert_eq!(json::to_string(&spec(&pod, lists, "n")), expected);
    }
}

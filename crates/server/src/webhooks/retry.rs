//! Decides whether and when a failed call of a webhook is repeated.

use std::time::Duration;

use http::StatusCode;
use http::header::RETRY_AFTER;
use http::response::Parts;
use pintle_registry::webhook::CallError;
use pintle_value::Value;

use crate::machine::random;

/// The most requests for one call if each response has `Retry-After` (upstream: client-go's
/// `rest.Request` retries ten times).
pub(super) const ANSWERS_MAX: usize = 11;
/// The first delay of [`with_backoff`], unless a configuration sets one.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The most attempts of [`with_backoff`].
const ATTEMPTS_MAX: u32 = 5;

/// The reasons of temporary failures (upstream: `DefaultShouldRetry` of
/// `apiserver/pkg/util/webhook`).
const TRANSIENT: [&str; 3] = ["InternalError", "Timeout", "TooManyRequests"];
/// The other reasons that upstream's client knows. They override the codes 500 and 504.
const PERMANENT: [&str; 16] = [
    "AlreadyExists",
    "BadRequest",
    "Conflict",
    "Expired",
    "Forbidden",
    "Gone",
    "Invalid",
    "MethodNotAllowed",
    "NotAcceptable",
    "NotFound",
    "RequestEntityTooLarge",
    "ServerTimeout",
    "ServiceUnavailable",
    "StorageReadError",
    "Unauthorized",
    "UnsupportedMediaType",
];

/// The delay before a retry that an overloaded server asks for (upstream: client-go's `checkWait`).
pub(super) fn after(head: &Parts) -> Option<Duration> {
    let is_transient =
        head.status == StatusCode::TOO_MANY_REQUESTS || head.status.is_server_error();
    seconds(head).filter(|_| is_transient).map(Duration::from_secs)
}

/// Parses `Retry-After` in seconds; dates are ignored.
fn seconds(head: &Parts) -> Option<u64> {
    head.headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()
}

/// Whether a response without a Status is a temporary failure (upstream:
/// `NewGenericServerResponse`, then `DefaultShouldRetry`).
pub(super) fn is_transient(head: &Parts) -> bool {
    let by_code = match head.status.as_u16() {
        429 => true,
        503 => false,
        code => code >= 500,
    };
    by_code || seconds(head).is_some_and(|seconds| seconds > 0)
}

/// Whether a Status is a temporary failure, judged by its reason, its code or its
/// `retryAfterSeconds`. The retry does not use these seconds as its delay.
pub(super) fn status_is_transient(status: &Value) -> bool {
    let reason = status.str_at(&["reason"]).unwrap_or_default();
    let code = status.get("code").and_then(Value::as_int).unwrap_or_default();
    let by_code = code == 429 || matches!(code, 500 | 504) && !PERMANENT.contains(&reason);
    let suggests_delay = |details: &Value| {
        let seconds = details.get("retryAfterSeconds").and_then(Value::as_int);
        reason == "ServerTimeout" || seconds.is_some_and(|seconds| seconds > 0)
    };
    TRANSIENT.contains(&reason)
        || by_code
        || status.get("details").filter(|details| !details.is_null()).is_some_and(suggests_delay)
}

/// Retries until there is a response, a permanent failure or [`ATTEMPTS_MAX`] failures (upstream:
/// `WithExponentialBackoff` of `apiserver/pkg/util/webhook`). Each delay is 1.5 times the one
/// before.
pub(crate) async fn with_backoff<F>(
    first_pause: Duration,
    mut ask: impl FnMut() -> F,
) -> Result<Vec<u8>, CallError>
where
    F: Future<Output = Result<Vec<u8>, CallError>>,
{
    let (mut pause, mut attempt) = (first_pause, 1);
    loop {
        match ask().await {
            Err(why) if attempt < ATTEMPTS_MAX && why.is_transient => {}
            answer => return answer,
        }
        tokio::time::sleep(jittered(pause)).await;
        (pause, attempt) = (pause * 3 / 2, attempt + 1);
    }
}

/// Adds up to a fifth of the delay, so that servers do not retry at the same time.
fn jittered(pause: Duration) -> Duration {
    let mut byte = [0];
    random(&mut byte);
    pause + pause * u32::from(byte[0]) / (5 * 256)
}

#[cfg(test)]
mod tests {
    use http::Response;

    use super::*;

    #[test]
    fn retry_after_sets_the_delay() {
        for (code, header, expected) in [
            (429, "0", Some(0)),
            (429, "7", Some(7)),
            (500, "1", Some(1)),
            (503, "1", Some(1)),
            (599, "1", Some(1)),
            (200, "1", None),
            (404, "1", None),
            (503, "", None),
            (503, "-1", None),
            (503, "1.5", None),
            (503, "Wed, 21 Oct 2026 07:28:00 GMT", None),
        ] {
            let answer = Response::builder().status(code).header(RETRY_AFTER, header);
            let (head, ()) = answer.body(()).unwrap().into_parts();
            assert_eq!(after(&head), expected.map(Duration::from_secs), "{code} {header:?}");
        }
    }

    #[tokio::test]
    async fn transient_failures_are_retried_with_a_bound() {
        for (codes, expected, times) in [
            (&[500, 429, 200][..], Ok(()), 3),
            (&[504, 504, 504, 504, 504, 200], Err(504), 5),
            (&[400, 200], Err(400), 1),
        ] {
            let mut asked = 0;
            let answer = with_backoff(Duration::from_nanos(1), || {
                asked += 1;
                let code = codes[asked - 1];
                let refusal = CallError { why: String::new(), code, is_transient: code > 400 };
                std::future::ready(if code == 200 { Ok(Vec::new()) } else { Err(refusal) })
            });
            let answer = answer.await.map(drop).map_err(|why| why.code);
            assert_eq!((answer, asked), (expected, times), "{codes:?}");
        }
    }
}

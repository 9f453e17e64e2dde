//! The status for an error response of another server, such as a kubelet.

use super::{Details, Reason, Status};
use crate::GroupResource;
use crate::quote::quote;

/// The reason and the message for a status code; `None` repeats the other server's message.
const WORDS: &[(u16, Reason, Option<&str>)] = &[
    (400, Reason::BadRequest, Some("the server rejected our request for an unknown reason")),
    (401, Reason::Unauthorized, Some("the server has asked for the client to provide credentials")),
    (403, Reason::Forbidden, None),
    (404, Reason::NotFound, Some("the server could not find the requested resource")),
    (
        405,
        Reason::MethodNotAllowed,
        Some("the server does not allow this method on the requested resource"),
    ),
    (406, Reason::NotAcceptable, None),
    (409, Reason::Conflict, Some("the server reported a conflict")),
    (415, Reason::UnsupportedMediaType, None),
    (422, Reason::Invalid, Some("the server rejected our request due to an error in our request")),
    (
        429,
        Reason::TooManyRequests,
        Some("the server has received too many requests and has asked us to try again later"),
    ),
    (503, Reason::ServiceUnavailable, Some("the server is currently unable to handle the request")),
    (
        504,
        Reason::Timeout,
        Some(
            "the server was unable to return a response in the time allotted, but may still be processing \
             the request",
        ),
    ),
];

impl Status {
    /// The failure of a request about an object that another server answered with `code` and `body`
    /// (upstream: `NewGenericServerResponse`).
    pub fn relayed(code: u16, resource: &GroupResource, name: &str, body: &str) -> Self {
        let known = WORDS.iter().find(|(known, ..)| *known == code);
        let (reason, words) = match known {
            Some((_, reason, words)) => (*reason, words.unwrap_or(body).to_owned()),
            None if code >= 500 => {
                let body = quote(body);
                let words = format!(
                    "an error on the server ({body}) has prevented the request from succeeding"
                );
                (Reason::InternalError, words)
            }
            None => {
                let words = format!(
                    "the server responded with the status code {code} but did not return more information"
                );
                (Reason::Unknown, words)
            }
        };
        // Upstream's format has a verb here, which it leaves empty.
        let mut status = Self::failure(reason, format!("{words} ( {resource} {name})"));
        status.code = code;
        status.details = Some(Box::new(Details {
            group: resource.group.to_string(),
            kind: resource.resource.to_string(),
            name: name.to_owned(),
            ..Details::default()
        }));
        status
    }
}

impl Status {
    /// A remote command exited with a non-zero code (upstream: `codeExitToStatusError`).
    pub fn exited(code: u8) -> Self {
        let message = format!(
            "command terminated with non-zero exit code: command terminated with exit code {code}"
        );
        let status = Self::failure(Reason::NonZeroExitCode, message);
        status.with_cause("ExitCode", &code.to_string(), "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_codes_match_upstream() {
        let resource = GroupResource::new("", "pods/log");
        for (code, body, expected) in [
            (404, "no", "the server could not find the requested resource ( pods/log p)"),
            (403, "no", "no ( pods/log p)"),
            (
                502,
                "a \"b\"",
                r#"an error on the server ("a \"b\"") has prevented the request from succeeding ( pods/log p)"#,
            ),
            (
                302,
                "",
                "the server responded with the status code 302 but did not return more information \
                 ( pods/log p)",
            ),
        ] {
            let status = Status::relayed(code, &resource, "p", body);
            assert_eq!((status.code, status.message.as_str()), (code, expected));
        }
    }
}

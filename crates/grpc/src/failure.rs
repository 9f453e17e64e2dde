//! Why a call failed, and whether the service may have executed it.

use std::error::Error;
use std::fmt;

use http::{HeaderMap, StatusCode};

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Failure {
    /// The status of the service, or the one that gRPC's own clients report in its place.
    pub code: Code,
    /// The message of the service, or what happened.
    pub message: String,
    /// How far the call went.
    pub stage: Stage,
}

/// How far a call went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The request was not sent.
    Unsent,
    /// The service ended the call with a status other than [`Code::OK`].
    Answered,
    /// There is no status, or no usable response with it: the request may have been executed.
    Lost,
}

impl Failure {
    /// The failure of a call whose request was not sent.
    pub fn unsent(why: impl fmt::Display) -> Self {
        Self { code: Code::UNAVAILABLE, message: why.to_string(), stage: Stage::Unsent }
    }

    /// The failure of a call that may have been executed.
    pub fn lost(code: Code, why: impl fmt::Display) -> Self {
        Self { code, message: why.to_string(), stage: Stage::Lost }
    }
}

/// Returns an error's text with the texts of its causes: hyper's errors name only the layer that
/// failed.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// A gRPC status code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub u16);

/// The names of the codes, from 0.
const NAMES: [&str; Code::KNOWN] = [
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
];

impl Code {
    /// The call succeeded.
    pub const OK: Self = Self(0);
    /// The caller gave the call up.
    pub const CANCELED: Self = Self(1);
    /// The service did not name a code.
    pub const UNKNOWN: Self = Self(2);
    /// The deadline of the caller has passed.
    pub const DEADLINE_EXCEEDED: Self = Self(4);
    /// What the call names does not exist.
    pub const NOT_FOUND: Self = Self(5);
    /// The caller may not make the call.
    pub const PERMISSION_DENIED: Self = Self(7);
    /// The service lacks space, or too many requests are in progress.
    pub const RESOURCE_EXHAUSTED: Self = Self(8);
    /// A number is outside of what exists.
    pub const OUT_OF_RANGE: Self = Self(11);
    /// The response does not follow the protocol.
    pub const INTERNAL: Self = Self(13);
    /// Also used for a failed connection, as in gRPC's own clients.
    pub const UNAVAILABLE: Self = Self(14);
    /// The number of codes with a name.
    pub const KNOWN: usize = 17;

    /// Returns the name of a code that has one.
    pub fn name(self) -> Option<&'static str> {
        NAMES.get(usize::from(self.0)).copied()
    }

    /// Returns the code for an HTTP status in place of a gRPC status (gRPC's
    /// `doc/http-grpc-status-mapping.md`).
    pub(crate) const fn of_http(status: StatusCode) -> Self {
        match status.as_u16() {
            400 => Self::INTERNAL,
            401 => Self(16),
            403 => Self(7),
            404 => Self(12),
            429 | 502..=504 => Self::UNAVAILABLE,
            _ => Self::UNKNOWN,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "code {}", self.0),
        }
    }
}

/// Returns the outcome in headers or trailers; `None` if they have none.
pub(crate) fn ending(headers: &HeaderMap) -> Option<Result<(), Failure>> {
    let code = headers.get("grpc-status")?.to_str().ok().and_then(|code| code.parse().ok());
    let code = code.map_or(Code::UNKNOWN, Code);
    if code == Code::OK {
        return Some(Ok(()));
    }
    let message = headers.get("grpc-message").map_or(&b""[..], |message| message.as_bytes());
    Some(Err(Failure { code, message: unescaped(message), stage: Stage::Answered }))
}

/// Decodes `%XX` in a status message.
fn unescaped(text: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let hex =
            after.get(..2).filter(|hex| byte == b'%' && hex.iter().all(u8::is_ascii_hexdigit));
        let hex = hex.and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_of_a_call_is_read_from_headers() {
        let answered = |code, message: &str| Failure {
            code: Code(code),
            message: message.to_owned(),
            stage: Stage::Answered,
        };
        let rows = [
            (vec![], None),
            (vec![("grpc-message", "a")], None),
            (vec![("grpc-status", "0"), ("grpc-message", "ignored")], Some(Ok(()))),
            (vec![("grpc-status", "5")], Some(Err(answered(5, "")))),
            (vec![("grpc-status", "5"), ("grpc-message", "a%20b")], Some(Err(answered(5, "a b")))),
            (vec![("grpc-status", "99")], Some(Err(answered(99, "")))),
            (vec![("grpc-status", "none")], Some(Err(answered(2, "")))),
            (vec![("grpc-status", "-1")], Some(Err(answered(2, "")))),
        ];
        for (headers, expected) in rows {
            let mut map = HeaderMap::new();
            for (name, value) in &headers {
                map.insert(*name, value.parse().expect("a header's value"));
            }
            assert_eq!(ending(&map), expected, "{headers:?}");
        }
    }

    #[test]
    fn codes_have_names() {
        let rows = [(0, "OK"), (4, "DeadlineExceeded"), (16, "Unauthenticated"), (17, "code 17")];
        for (code, name) in rows {
            assert_eq!(Code(code).to_string(), name);
        }
    }

    #[test]
    fn texts_of_statuses_are_unescaped() {
        let rows =
            [("a b", "a b"), ("%41%c3%bc", "Aü"), ("100%", "100%"), ("%zz", "%zz"), ("%+1", "%+1")];
        for (text, expected) in rows {
            assert_eq!(unescaped(text.as_bytes()), expected);
        }
    }
}

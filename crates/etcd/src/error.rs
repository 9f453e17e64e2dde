//! The errors of calls to etcd; they tell whether a call may have had an effect.

use pintle_grpc::{Code, Failure, Stage};

/// Why a call had no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The configuration is unusable: an endpoint, a certificate.
    #[error("{0}")]
    Configuration(String),
    /// No endpoint could be reached, so the request was not sent.
    #[error("no etcd endpoint can be reached: {0}")]
    Unreachable(String),
    /// The certificate of an endpoint is not valid for it, so the request was not sent.
    #[error("{0}")]
    ServerCertificate(String),
    /// An endpoint does not accept the client's certificate, or wants one, so the request had no
    /// effect.
    #[error("{0}")]
    ClientCertificate(String),
    /// etcd refused the request, so it had no effect.
    #[error("etcd refused the request: {message} ({code})")]
    Refused {
        /// The gRPC status.
        code: Code,
        /// etcd's message.
        message: String,
    },
    /// The requested revision is compacted, so the request had no effect.
    #[error("the revision is compacted")]
    Compacted,
    /// The requested revision does not exist yet, so the request had no effect.
    #[error("the revision is in the future")]
    Future,
    /// The lease does not exist or has expired, so the request had no effect.
    #[error("the lease does not exist or has expired")]
    LeaseNotFound,
    /// etcd has no space. It gives this answer whether it executed the request or not: the request
    /// that exceeds the quota is executed (etcd's server/etcdserver/apply/quota.go), later requests
    /// are not. Either way, etcd will not execute the request later.
    #[error("etcd refused the request: {0} (ResourceExhausted)")]
    NoSpace(String),
    /// There is no answer, or an answer that does not tell the outcome: the request was executed,
    /// will be executed later, or never will be.
    #[error("the outcome of a request to etcd is unknown: {0}")]
    Lost(String),
}

impl Error {
    /// Whether the request may have had an effect, or may still have one.
    pub const fn may_have_happened(&self) -> bool {
        matches!(self, Self::Lost(_) | Self::NoSpace(_))
    }

    /// Whether the connection failed, so that another endpoint may answer.
    pub(crate) const fn is_of_connection(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(_)
                | Self::Lost(_)
                | Self::ServerCertificate(_)
                | Self::ClientCertificate(_)
        )
    }

    /// Whether the same request will fail until the configuration of this client or of etcd is
    /// changed.
    pub(crate) fn is_permanent(&self) -> bool {
        match self {
            Self::Configuration(_) | Self::ServerCertificate(_) | Self::ClientCertificate(_) => {
                true
            }
            Self::Refused { code, .. } => *code != Code::RESOURCE_EXHAUSTED,
            _ => false,
        }
    }

    /// Returns the error of a failed call.
    pub(crate) fn of(failure: Failure) -> Self {
        let Failure { code, message, stage } = failure;
        match stage {
            Stage::Unsent | Stage::Lost if is_certificate_alert(&message) => {
                Self::ClientCertificate(message)
            }
            Stage::Unsent => Self::Unreachable(message),
            Stage::Answered => Self::of_status(code, message),
            Stage::Lost => Self::Lost(message),
        }
    }

    /// Returns the error of a gRPC status other than [`Code::OK`].
    fn of_status(code: Code, message: String) -> Self {
        // The messages are those of etcd's api/v3rpc/rpctypes/error.go.
        match code {
            Code::OUT_OF_RANGE if message.contains("has been compacted") => Self::Compacted,
            Code::OUT_OF_RANGE if message.contains("future revision") => Self::Future,
            Code::NOT_FOUND if message.contains("lease not found") => Self::LeaseNotFound,
            Code::RESOURCE_EXHAUSTED if message.contains("space exceeded") => {
                Self::NoSpace(message)
            }
            code if is_definite(code) => Self::Refused { code, message },
            code => Self::Lost(format!("{message} ({code})")),
        }
    }
}

/// Whether an error's text is rustls' text of an alert about the client's certificate. In TLS 1.3
/// the alert follows the handshake, so it ends the first call, through errors of HTTP/2 that keep
/// only its text. An endpoint that sends it has executed nothing.
fn is_certificate_alert(text: &str) -> bool {
    let alert = text.split_once("received fatal alert: ").map(|(_, alert)| alert);
    alert.is_some_and(|alert| alert.contains("Certificate") || alert.starts_with("UnknownCA"))
}

/// Whether a code proves that the request was not executed and never will be. A server that lost
/// its leader or timed out during the request sends other codes.
const fn is_definite(code: Code) -> bool {
    matches!(code.0, 3 | 5 | 6 | 7 | 8 | 9 | 11 | 12 | 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_codes_tell_whether_a_request_may_have_had_an_effect() {
        let rows = [
            (11, "etcdserver: mvcc: required revision has been compacted", false),
            (11, "etcdserver: mvcc: required revision is a future revision", false),
            (5, "etcdserver: requested lease not found", false),
            (8, "etcdserver: mvcc: database space exceeded", true),
            (8, "etcdserver: too many requests", false),
            (3, "etcdserver: duplicate key given in txn request", false),
            (7, "etcdserver: permission denied", false),
            (14, "etcdserver: request timed out", true),
            (14, "etcdserver: leader changed", true),
            (4, "context deadline exceeded", true),
            (13, "stream terminated by RST_STREAM", true),
            (2, "anything", true),
            (99, "a code that is yet to be", true),
        ];
        for (code, message, expected) in rows {
            let error = Error::of_status(Code(code), message.to_owned());
            assert_eq!(error.may_have_happened(), expected, "{code} {message}");
        }
    }
}

//! Why a call of etcd gave no result, and whether the call may have had an effect.

use std::fmt;

/// Why a call gave no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// What was configured cannot be used: an endpoint, a certificate.
    #[error("{0}")]
    Configuration(String),
    /// The request was not sent: no endpoint could be connected to.
    #[error("no etcd endpoint can be reached: {0}")]
    Unreachable(String),
    /// etcd answered that it does not do this, so it had no effect.
    #[error("etcd refused the request: {message} ({code})")]
    Refused {
        /// The status of the answer.
        code: Code,
        /// What etcd says.
        message: String,
    },
    /// The request had no effect, because its revision is compacted.
    #[error("the revision is compacted")]
    Compacted,
    /// The request had no effect, because its revision is yet to come.
    #[error("the revision is in the future")]
    Future,
    /// The request had no effect, because its lease has expired or never was.
    #[error("the lease is not there")]
    LeaseNotFound,
    /// There is no answer, or none that tells the outcome: the request may have been done, may yet be
    /// done, or may never be.
    #[error("the outcome of a request to etcd is unknown: {0}")]
    Lost(String),
}

impl Error {
    /// Whether the request may have had an effect, or may yet have one.
    pub const fn may_have_happened(&self) -> bool {
        matches!(self, Self::Lost(_))
    }

    /// The error of an answer's status, which is not [`Code::OK`].
    pub(crate) fn of_status(code: Code, message: String) -> Self {
        // As etcd's api/v3rpc/rpctypes/error.go has them.
        match code {
            Code::OUT_OF_RANGE if message.contains("has been compacted") => Self::Compacted,
            Code::OUT_OF_RANGE if message.contains("future revision") => Self::Future,
            Code::NOT_FOUND if message.contains("lease not found") => Self::LeaseNotFound,
            code if code.is_definite() => Self::Refused { code, message },
            code => Self::Lost(format!("{message} ({code})")),
        }
    }
}

/// The status of an answer, as gRPC numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub u16);

impl Code {
    pub(crate) const OK: Self = Self(0);
    pub(crate) const CANCELED: Self = Self(1);
    pub(crate) const UNKNOWN: Self = Self(2);
    pub(crate) const NOT_FOUND: Self = Self(5);
    pub(crate) const OUT_OF_RANGE: Self = Self(11);
    /// Also of a connection that failed, as gRPC's own clients have it.
    pub(crate) const UNAVAILABLE: Self = Self(14);
    /// How many have a name.
    pub(crate) const KNOWN: usize = 17;

    /// Whether etcd has decided: a request with such an answer is not done, nor will it be. The others
    /// also come from a server that lost its leader or its patience while the request was under way.
    const fn is_definite(self) -> bool {
        matches!(self.0, 3 | 5 | 6 | 7 | 8 | 9 | 11 | 12 | 16)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
        match NAMES.get(usize::from(self.0)) {
            Some(name) => f.write_str(name),
            None => write!(f, "code {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_tell_whether_a_request_may_have_happened() {
        let rows = [
            (11, "etcdserver: mvcc: required revision has been compacted", false),
            (11, "etcdserver: mvcc: required revision is a future revision", false),
            (5, "etcdserver: requested lease not found", false),
            (8, "etcdserver: mvcc: database space exceeded", false),
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

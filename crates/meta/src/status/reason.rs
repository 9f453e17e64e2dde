//! The reasons of failures, with their HTTP status codes.

/// The machine-readable reason of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No reason is given.
    Unknown,
    /// 400: the request is malformed.
    BadRequest,
    /// 401: the request has no valid credentials.
    Unauthorized,
    /// 403: the user may not do this.
    Forbidden,
    /// 404: the object or path does not exist.
    NotFound,
    /// 405: the resource does not support the verb.
    MethodNotAllowed,
    /// 406: none of the accepted media types is supported.
    NotAcceptable,
    /// 409: the object exists already.
    AlreadyExists,
    /// 409: the object changed since it was read.
    Conflict,
    /// 410: the requested state is not available any more.
    Gone,
    /// 410: the resource version is too old.
    Expired,
    /// 413: the request is too large.
    RequestEntityTooLarge,
    /// 415: the body's media type is not supported.
    UnsupportedMediaType,
    /// 422: the object is invalid; the causes list the errors.
    Invalid,
    /// 429: the client must slow down.
    TooManyRequests,
    /// 500: the server failed.
    InternalError,
    /// 500: objects of a list cannot be read.
    StorageReadError,
    /// 500: the operation failed temporarily.
    ServerTimeout,
    /// 503: the server is temporarily unavailable.
    ServiceUnavailable,
    /// 504: the operation timed out.
    Timeout,
    /// A remote command exited with a non-zero code; this reason has no HTTP status code.
    NonZeroExitCode,
}

impl Reason {
    /// All reasons.
    pub(super) const ALL: [Self; 21] = [
        Self::Unknown,
        Self::BadRequest,
        Self::Unauthorized,
        Self::Forbidden,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::NotAcceptable,
        Self::AlreadyExists,
        Self::Conflict,
        Self::Gone,
        Self::Expired,
        Self::RequestEntityTooLarge,
        Self::UnsupportedMediaType,
        Self::Invalid,
        Self::TooManyRequests,
        Self::InternalError,
        Self::StorageReadError,
        Self::ServerTimeout,
        Self::ServiceUnavailable,
        Self::Timeout,
        Self::NonZeroExitCode,
    ];

    /// The text of `reason`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unknown => "",
            Self::BadRequest => "BadRequest",
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "NotFound",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::NotAcceptable => "NotAcceptable",
            Self::AlreadyExists => "AlreadyExists",
            Self::Conflict => "Conflict",
            Self::Gone => "Gone",
            Self::Expired => "Expired",
            Self::RequestEntityTooLarge => "RequestEntityTooLarge",
            Self::UnsupportedMediaType => "UnsupportedMediaType",
            Self::Invalid => "Invalid",
            Self::TooManyRequests => "TooManyRequests",
            Self::InternalError => "InternalError",
            Self::StorageReadError => "StorageReadError",
            Self::ServerTimeout => "ServerTimeout",
            Self::ServiceUnavailable => "ServiceUnavailable",
            Self::Timeout => "Timeout",
            Self::NonZeroExitCode => "NonZeroExitCode",
        }
    }

    /// The HTTP status code.
    pub const fn code(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::NotAcceptable => 406,
            Self::AlreadyExists | Self::Conflict => 409,
            Self::Gone | Self::Expired => 410,
            Self::RequestEntityTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::Invalid => 422,
            Self::TooManyRequests => 429,
            Self::Unknown | Self::InternalError | Self::StorageReadError | Self::ServerTimeout => {
                500
            }
            Self::ServiceUnavailable => 503,
            Self::Timeout => 504,
            Self::NonZeroExitCode => 0,
        }
    }
}

//! Why something failed: a word for programs, and the HTTP code that goes with it.

/// The machine-readable reason of a failure, and with it the HTTP code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No reason is given.
    Unknown,
    /// 400: can never succeed as it is.
    BadRequest,
    /// 401: who are you?
    Unauthorized,
    /// 403: you may not.
    Forbidden,
    /// 404: there is no such thing.
    NotFound,
    /// 405: not with this verb.
    MethodNotAllowed,
    /// 406: not in an encoding that you accept.
    NotAcceptable,
    /// 409: there already is one.
    AlreadyExists,
    /// 409: it changed meanwhile.
    Conflict,
    /// 410: that state of the world is gone.
    Gone,
    /// 410: that resource version is too old.
    Expired,
    /// 413: too large.
    RequestEntityTooLarge,
    /// 415: not in an encoding that we read.
    UnsupportedMediaType,
    /// 422: the object breaks rules; the causes say which.
    Invalid,
    /// 429: slow down.
    TooManyRequests,
    /// 500: our fault.
    InternalError,
    /// 500: objects that a list should have cannot be read.
    StorageReadError,
    /// 500: try again later.
    ServerTimeout,
    /// 503: not now.
    ServiceUnavailable,
    /// 504: it took too long.
    Timeout,
    /// A command that was run somewhere failed; it has no code of HTTP.
    NonZeroExitCode,
}

impl Reason {
    /// All of them.
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

    /// The word in `reason`.
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

    /// The HTTP code in `code` and on the status line.
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

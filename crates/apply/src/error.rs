//! Why a patch can't be applied.

use pintle_meta::{Reason, Status};

use crate::json_patch::OPERATIONS_MAX;
use crate::server_side::Conflicts;

/// Why a patch can't be applied. The messages are upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The body is no patch of its kind.
    #[error("{0}")]
    Malformed(String),
    /// A JSON patch has more operations than are allowed.
    #[error("The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {0}")]
    TooManyOperations(usize),
    /// The patch does not fit the object.
    #[error("{0}")]
    DoesNotApply(String),
    /// Upstream tells such mistakes in strategic merge patches and configurations no better than as
    /// its own failure.
    #[error("{0}")]
    Unclassified(String),
    /// A configuration sets fields that others own.
    #[error("{0}")]
    Conflict(Conflicts),
}

impl Error {
    /// A fixed message about a body that is no patch.
    pub(crate) fn malformed(message: &str) -> Self {
        Self::Malformed(message.to_owned())
    }

    /// The answer to the client.
    pub fn status(&self) -> Status {
        match self {
            Self::Malformed(message) => Status::bad_request(message),
            Self::TooManyOperations(_) => Status::too_large(self),
            Self::DoesNotApply(_) => Status::unprocessable(),
            Self::Conflict(conflicts) => conflicts.status(),
            Self::Unclassified(message) => Status::failure(Reason::Unknown, message),
        }
    }
}

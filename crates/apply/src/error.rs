//! The errors of this crate.

use pintle_meta::{Reason, Status, status::Cause};

/// Why a patch or an applied configuration is rejected. The messages are upstream's, except those
/// about limits that only this server has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The body is not a patch of its type.
    #[error("{0}")]
    Malformed(String),
    /// A JSON patch has more operations than are allowed.
    #[error("The allowed maximum operations in a JSON patch is {max}, got {found}")]
    TooManyOperations {
        /// The number of operations in the patch.
        found: usize,
        /// The limit.
        max: usize,
    },
    /// The patch is well-formed but cannot be applied to this object.
    #[error("{0}")]
    DoesNotApply(String),
    /// A mistake in a strategic merge patch or an applied configuration for which upstream returns
    /// an error without a status reason.
    #[error("{0}")]
    Unclassified(String),
    /// An applied configuration sets fields that other managers own.
    #[error("{message}")]
    Conflict {
        /// The whole text.
        message: String,
        /// A cause for each field.
        causes: Vec<Cause>,
    },
}

impl Error {
    /// An error with a fixed message about a body that is not a patch.
    pub(crate) fn malformed(message: &str) -> Self {
        Self::Malformed(message.to_owned())
    }

    /// Converts the error to the `Status` that the client gets.
    pub fn status(&self) -> Status {
        match self {
            Self::Malformed(message) => Status::bad_request(message),
            Self::TooManyOperations { .. } => Status::too_large(self),
            Self::DoesNotApply(_) => Status::unprocessable(),
            Self::Conflict { message, causes } => {
                Status::apply_conflict(causes.clone(), message.clone())
            }
            Self::Unclassified(message) => Status::failure(Reason::Unknown, message),
        }
    }
}

//! Errors of the medium.

use crate::Error;

/// An error of the medium.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) String);

impl From<Failure> for Error {
    fn from(Failure(reason): Failure) -> Self {
        Self::Failed { reason }
    }
}

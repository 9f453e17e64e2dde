//! The errors of parsing texts.

/// Why a selector, quantity, time or duration is invalid; the messages are upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A `labelSelector` has a syntax error, or an invalid key or value.
    #[error("{0}")]
    LabelSelector(String),
    /// A `fieldSelector` has a syntax error.
    #[error("{0}")]
    FieldSelector(String),
    /// A quantity is not a number with a suffix.
    #[error(
        "quantities must match the regular expression \
         '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    QuantityFormat,
    /// A quantity's number is invalid, or has more digits than this implementation supports.
    #[error("unable to parse numeric part of quantity")]
    QuantityNumber,
    /// A quantity's suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    QuantitySuffix,
    /// A time is not RFC 3339.
    #[error("{0}")]
    Time(String),
    /// A duration is not in Go's format.
    #[error("{0}")]
    Duration(String),
}

//! Why a text is not what it should be.

/// What is wrong with a selector, a quantity, a time or a duration; the messages are upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A `labelSelector` breaks the grammar, or a key or a value in it breaks the rules.
    #[error("{0}")]
    LabelSelector(String),
    /// A `fieldSelector` breaks the grammar.
    #[error("{0}")]
    FieldSelector(String),
    /// A quantity is no number with a suffix.
    #[error(
        "quantities must match the regular expression \
         '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    QuantityFormat,
    /// A quantity's number can't be read, or has more digits than we keep.
    #[error("unable to parse numeric part of quantity")]
    QuantityNumber,
    /// A quantity's suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    QuantitySuffix,
    /// A time is not RFC 3339.
    #[error("{0}")]
    Time(String),
    /// A duration is not as Go writes them.
    #[error("{0}")]
    Duration(String),
}

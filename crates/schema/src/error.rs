//! Why bytes or a tree are not an object of a type.

/// What makes decoding fail. The words are those of Go's `encoding/json`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is no JSON or YAML.
    #[error(transparent)]
    Syntax(#[from] pintle_value::Error),
    /// A value of another type than the schema's, and where.
    #[error("json: cannot unmarshal {found} into Go {place} of type {expected}")]
    Type {
        /// `string`, `number 1.5`.
        found: String,
        /// `struct field DeploymentSpec.spec.replicas`, or `value`.
        place: String,
        /// `int32`, `[]v1.Container`.
        expected: String,
    },
    /// Text that the type's own rules refuse (times, quantities); the whole message.
    #[error("{0}")]
    Scalar(String),
}

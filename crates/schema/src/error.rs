//! Why bytes or a tree are not an object of a type.

/// What makes decoding fail. The words are those of Go's `encoding/json`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is no JSON or YAML.
    #[error(transparent)]
    Syntax(#[from] pintle_value::Error),
    /// A value of another type than the schema's, and where.
    #[error("json: cannot unmarshal {found} into Go {path} of type {expected}")]
    Type {
        /// `string`, `number 1.5`.
        found: String,
        /// `struct field DeploymentSpec.spec.replicas`, or `value`.
        path: String,
        /// `int32`, `[]v1.Container`.
        expected: String,
    },
    /// Base64 text is broken at this byte.
    #[error("illegal base64 data at input byte {0}")]
    Base64(usize),
    /// Bytes that are no message; the whole text, in the words of upstream's Protobuf decoder.
    #[error("{0}")]
    Protobuf(std::borrow::Cow<'static, str>),
    /// What is wrong with an object within an object, with its path and its value.
    #[error("{0}")]
    Embedded(String),
    /// What may be a boolean or a schema is neither.
    #[error("boolean or JSON schema expected")]
    NeitherBoolNorSchema,
    /// Text that is no time, quantity or duration.
    #[error(transparent)]
    Scalar(#[from] pintle_meta::Error),
}

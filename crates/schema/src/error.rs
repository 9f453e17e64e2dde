//! The errors of decoding.

/// Why decoding fails. The messages are upstream's, many of them from Go's `encoding/json`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is not JSON or YAML.
    #[error(transparent)]
    Syntax(#[from] pintle_value::Error),
    /// A value has another type than the schema declares.
    #[error("json: cannot unmarshal {found} into Go {path} of type {expected}")]
    Type {
        /// The found value: `string`, `number 1.5`.
        found: String,
        /// The location: `struct field DeploymentSpec.spec.replicas`, or `value`.
        path: String,
        /// The declared type: `int32`, `[]v1.Container`.
        expected: String,
    },
    /// Invalid base64 text; the offset of the error.
    #[error("illegal base64 data at input byte {0}")]
    Base64(usize),
    /// The bytes are not a Protobuf message. The text is that of upstream's decoder.
    #[error("{0}")]
    Protobuf(std::borrow::Cow<'static, str>),
    /// An embedded object is invalid. The text contains its path and its value.
    #[error("{0}")]
    Embedded(String),
    /// A value that may be a boolean or a schema is neither.
    #[error("boolean or JSON schema expected")]
    NeitherBoolNorSchema,
    /// The text is not a valid time, quantity or duration.
    #[error(transparent)]
    Scalar(#[from] pintle_meta::Error),
}

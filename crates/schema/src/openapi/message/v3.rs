//! The messages of an OpenAPI 3 document, as far as our documents use them.

use super::{Keys, Kind, Message};

/// `openapi.v3.Document`.
pub(super) static DOCUMENT: Message = Message {
    fields: &[
        ("openapi", 1, Kind::Text),
        ("info", 2, Kind::Message(&INFO)),
        ("paths", 4, Kind::Message(&PATHS)),
        ("components", 5, Kind::Message(&COMPONENTS)),
        ("security", 6, Kind::List(&Kind::Message(&SECURITY_REQUIREMENT))),
    ],
    named: &[(Keys::Extensions, 9, Kind::Yaml)],
};

static INFO: Message = Message {
    fields: &[("title", 1, Kind::Text), ("description", 2, Kind::Text), ("version", 6, Kind::Text)],
    named: &[(Keys::Extensions, 7, Kind::Yaml)],
};

static PATHS: Message = Message {
    fields: &[],
    named: &[(Keys::Paths, 1, Kind::Message(&PATH_ITEM)), (Keys::Extensions, 2, Kind::Yaml)],
};

static PATH_ITEM: Message = Message {
    fields: &[
        ("$ref", 1, Kind::Text),
        ("summary", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("get", 4, Kind::Message(&OPERATION)),
        ("put", 5, Kind::Message(&OPERATION)),
        ("post", 6, Kind::Message(&OPERATION)),
        ("delete", 7, Kind::Message(&OPERATION)),
        ("options", 8, Kind::Message(&OPERATION)),
        ("head", 9, Kind::Message(&OPERATION)),
        ("patch", 10, Kind::Message(&OPERATION)),
        ("parameters", 13, Kind::List(&Kind::OrReference(&Kind::Message(&PARAMETER)))),
    ],
    named: &[(Keys::Extensions, 14, Kind::Yaml)],
};

static OPERATION: Message = Message {
    fields: &[
        ("tags", 1, Kind::List(&Kind::Text)),
        ("summary", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("operationId", 5, Kind::Text),
        ("parameters", 6, Kind::List(&Kind::OrReference(&Kind::Message(&PARAMETER)))),
        ("requestBody", 7, Kind::OrReference(&Kind::Message(&REQUEST_BODY))),
        ("responses", 8, Kind::Message(&RESPONSES)),
        ("deprecated", 10, Kind::Bool),
        ("security", 11, Kind::List(&Kind::Message(&SECURITY_REQUIREMENT))),
    ],
    named: &[(Keys::Extensions, 13, Kind::Yaml)],
};

static PARAMETER: Message = Message {
    fields: &[
        ("name", 1, Kind::Text),
        ("in", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("required", 4, Kind::Bool),
        ("schema", 10, Kind::OrReference(&Kind::Message(&SCHEMA))),
        ("content", 13, Kind::Message(&MEDIA_TYPES)),
    ],
    named: &[(Keys::Extensions, 14, Kind::Yaml)],
};

static REQUEST_BODY: Message = Message {
    fields: &[
        ("description", 1, Kind::Text),
        ("content", 2, Kind::Message(&MEDIA_TYPES)),
        ("required", 3, Kind::Bool),
    ],
    named: &[(Keys::Extensions, 4, Kind::Yaml)],
};

static MEDIA_TYPES: Message =
    Message { fields: &[], named: &[(Keys::Others, 1, Kind::Message(&MEDIA_TYPE))] };

static MEDIA_TYPE: Message = Message {
    fields: &[("schema", 1, Kind::OrReference(&Kind::Message(&SCHEMA)))],
    named: &[(Keys::Extensions, 5, Kind::Yaml)],
};

static RESPONSES: Message = Message {
    fields: &[("default", 1, ANY_RESPONSE)],
    named: &[(Keys::Extensions, 3, Kind::Yaml), (Keys::Others, 2, ANY_RESPONSE)],
};

const ANY_RESPONSE: Kind = Kind::OrReference(&Kind::Message(&RESPONSE));

static RESPONSE: Message = Message {
    fields: &[("description", 1, Kind::Text), ("content", 3, Kind::Message(&MEDIA_TYPES))],
    named: &[(Keys::Extensions, 5, Kind::Yaml)],
};

static COMPONENTS: Message = Message {
    fields: &[
        ("schemas", 1, Kind::Message(&SCHEMAS)),
        ("securitySchemes", 7, Kind::Message(&SECURITY_SCHEMES)),
    ],
    named: &[(Keys::Extensions, 10, Kind::Yaml)],
};

static SCHEMAS: Message = Message {
    fields: &[],
    named: &[(Keys::Others, 1, Kind::OrReference(&Kind::Message(&SCHEMA)))],
};

static ANY_SCHEMA: Kind = Kind::OrReference(&Kind::Message(&SCHEMA));

static SCHEMA: Message = Message {
    fields: &[
        ("nullable", 1, Kind::Bool),
        ("readOnly", 3, Kind::Bool),
        ("writeOnly", 4, Kind::Bool),
        ("externalDocs", 6, Kind::Message(&EXTERNAL_DOCS)),
        ("example", 7, Kind::Yaml),
        ("deprecated", 8, Kind::Bool),
        ("title", 9, Kind::Text),
        ("multipleOf", 10, Kind::Number),
        ("maximum", 11, Kind::Number),
        ("exclusiveMaximum", 12, Kind::Bool),
        ("minimum", 13, Kind::Number),
        ("exclusiveMinimum", 14, Kind::Bool),
        ("maxLength", 15, Kind::Integer),
        ("minLength", 16, Kind::Integer),
        ("pattern", 17, Kind::Text),
        ("maxItems", 18, Kind::Integer),
        ("minItems", 19, Kind::Integer),
        ("uniqueItems", 20, Kind::Bool),
        ("maxProperties", 21, Kind::Integer),
        ("minProperties", 22, Kind::Integer),
        ("required", 23, Kind::List(&Kind::Text)),
        ("enum", 24, Kind::List(&Kind::Yaml)),
        ("type", 25, Kind::Text),
        ("allOf", 26, Kind::List(&ANY_SCHEMA)),
        ("oneOf", 27, Kind::List(&ANY_SCHEMA)),
        ("anyOf", 28, Kind::List(&ANY_SCHEMA)),
        ("not", 29, Kind::Message(&SCHEMA)),
        ("items", 30, Kind::Wrapped(1, &Kind::List(&ANY_SCHEMA))),
        ("properties", 31, Kind::Message(&SCHEMAS)),
        ("additionalProperties", 32, Kind::OrBool(&ANY_SCHEMA)),
        ("default", 33, Kind::Scalar),
        ("description", 34, Kind::Text),
        ("format", 35, Kind::Text),
    ],
    named: &[(Keys::Extensions, 36, Kind::Yaml)],
};

static EXTERNAL_DOCS: Message = Message {
    fields: &[("description", 1, Kind::Text), ("url", 2, Kind::Text)],
    named: &[(Keys::Extensions, 3, Kind::Yaml)],
};

static SECURITY_REQUIREMENT: Message = Message {
    fields: &[],
    named: &[(Keys::Others, 1, Kind::Wrapped(1, &Kind::List(&Kind::Text)))],
};

static SECURITY_SCHEMES: Message = Message {
    fields: &[],
    named: &[(Keys::Others, 1, Kind::OrReference(&Kind::Message(&SECURITY_SCHEME)))],
};

static SECURITY_SCHEME: Message = Message {
    fields: &[
        ("type", 1, Kind::Text),
        ("description", 2, Kind::Text),
        ("name", 3, Kind::Text),
        ("in", 4, Kind::Text),
    ],
    named: &[(Keys::Extensions, 9, Kind::Yaml)],
};

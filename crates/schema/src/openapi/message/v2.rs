//! The messages of an OpenAPI 2 document, as far as our documents use them.

use super::{Keys, Kind, Message};

/// `openapi.v2.Document`.
pub(super) static DOCUMENT: Message = Message {
    fields: &[
        ("swagger", 1, Kind::Text),
        ("info", 2, Kind::Message(&INFO)),
        ("paths", 8, Kind::Message(&PATHS)),
        ("definitions", 9, Kind::Message(&SCHEMAS)),
        ("parameters", 10, Kind::Message(&PARAMETERS)),
        ("security", 12, Kind::List(&Kind::Message(&SECURITY_REQUIREMENT))),
        ("securityDefinitions", 13, Kind::Message(&SECURITY_DEFINITIONS)),
    ],
    named: &[(Keys::Extensions, 16, Kind::Yaml)],
};

static INFO: Message = Message {
    fields: &[("title", 1, Kind::Text), ("version", 2, Kind::Text), ("description", 3, Kind::Text)],
    named: &[(Keys::Extensions, 7, Kind::Yaml)],
};

static PATHS: Message = Message {
    fields: &[],
    named: &[(Keys::Extensions, 1, Kind::Yaml), (Keys::Paths, 2, Kind::Message(&PATH_ITEM))],
};

static PATH_ITEM: Message = Message {
    fields: &[
        ("$ref", 1, Kind::Text),
        ("get", 2, Kind::Message(&OPERATION)),
        ("put", 3, Kind::Message(&OPERATION)),
        ("post", 4, Kind::Message(&OPERATION)),
        ("delete", 5, Kind::Message(&OPERATION)),
        ("options", 6, Kind::Message(&OPERATION)),
        ("head", 7, Kind::Message(&OPERATION)),
        ("patch", 8, Kind::Message(&OPERATION)),
        ("parameters", 9, Kind::List(&Kind::OrReference(&PARAMETER))),
    ],
    named: &[(Keys::Extensions, 10, Kind::Yaml)],
};

static OPERATION: Message = Message {
    fields: &[
        ("tags", 1, Kind::List(&Kind::Text)),
        ("summary", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("operationId", 5, Kind::Text),
        ("produces", 6, Kind::List(&Kind::Text)),
        ("consumes", 7, Kind::List(&Kind::Text)),
        ("parameters", 8, Kind::List(&Kind::OrReference(&PARAMETER))),
        ("responses", 9, Kind::Message(&RESPONSES)),
        ("schemes", 10, Kind::List(&Kind::Text)),
        ("deprecated", 11, Kind::Bool),
        ("security", 12, Kind::List(&Kind::Message(&SECURITY_REQUIREMENT))),
    ],
    named: &[(Keys::Extensions, 13, Kind::Yaml)],
};

static PARAMETERS: Message = Message { fields: &[], named: &[(Keys::Others, 1, PARAMETER)] };

/// A parameter is a body, or one of the others, which have a message of their own.
const PARAMETER: Kind = Kind::ByMember(
    "in",
    &[
        ("body", 1, Kind::Message(&BODY_PARAMETER)),
        ("header", 2, Kind::Wrapped(1, &Kind::Message(&PLAIN_PARAMETER))),
        ("query", 2, Kind::Wrapped(3, &Kind::Message(&QUERY_PARAMETER))),
        ("path", 2, Kind::Wrapped(4, &Kind::Message(&PLAIN_PARAMETER))),
    ],
);

static BODY_PARAMETER: Message = Message {
    fields: &[
        ("description", 1, Kind::Text),
        ("name", 2, Kind::Text),
        ("in", 3, Kind::Text),
        ("required", 4, Kind::Bool),
        ("schema", 5, Kind::Message(&SCHEMA)),
    ],
    named: &[(Keys::Extensions, 6, Kind::Yaml)],
};

/// A parameter in the path or in a header.
static PLAIN_PARAMETER: Message = Message {
    fields: &[
        ("required", 1, Kind::Bool),
        ("in", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("name", 4, Kind::Text),
        ("type", 5, Kind::Text),
        ("format", 6, Kind::Text),
        ("uniqueItems", 19, Kind::Bool),
    ],
    named: &[(Keys::Extensions, 22, Kind::Yaml)],
};

static QUERY_PARAMETER: Message = Message {
    fields: &[
        ("required", 1, Kind::Bool),
        ("in", 2, Kind::Text),
        ("description", 3, Kind::Text),
        ("name", 4, Kind::Text),
        ("type", 6, Kind::Text),
        ("format", 7, Kind::Text),
        ("uniqueItems", 20, Kind::Bool),
    ],
    named: &[(Keys::Extensions, 23, Kind::Yaml)],
};

static RESPONSES: Message = Message {
    fields: &[],
    named: &[
        (Keys::Extensions, 2, Kind::Yaml),
        (Keys::Others, 1, Kind::OrReference(&Kind::Message(&RESPONSE))),
    ],
};

static RESPONSE: Message = Message {
    fields: &[
        ("description", 1, Kind::Text),
        ("schema", 2, Kind::Wrapped(1, &Kind::Message(&SCHEMA))),
    ],
    named: &[(Keys::Extensions, 5, Kind::Yaml)],
};

static SCHEMAS: Message =
    Message { fields: &[], named: &[(Keys::Others, 1, Kind::Message(&SCHEMA))] };

static SCHEMA: Message = Message {
    fields: &[
        ("$ref", 1, Kind::Text),
        ("format", 2, Kind::Text),
        ("title", 3, Kind::Text),
        ("description", 4, Kind::Text),
        ("default", 5, Kind::Yaml),
        ("multipleOf", 6, Kind::Number),
        ("maximum", 7, Kind::Number),
        ("exclusiveMaximum", 8, Kind::Bool),
        ("minimum", 9, Kind::Number),
        ("exclusiveMinimum", 10, Kind::Bool),
        ("maxLength", 11, Kind::Integer),
        ("minLength", 12, Kind::Integer),
        ("pattern", 13, Kind::Text),
        ("maxItems", 14, Kind::Integer),
        ("minItems", 15, Kind::Integer),
        ("uniqueItems", 16, Kind::Bool),
        ("maxProperties", 17, Kind::Integer),
        ("minProperties", 18, Kind::Integer),
        ("required", 19, Kind::List(&Kind::Text)),
        ("enum", 20, Kind::List(&Kind::Yaml)),
        ("additionalProperties", 21, Kind::OrBool(&Kind::Message(&SCHEMA))),
        ("type", 22, Kind::Wrapped(1, &Kind::List(&Kind::Text))),
        ("items", 23, Kind::Wrapped(1, &Kind::List(&Kind::Message(&SCHEMA)))),
        ("allOf", 24, Kind::List(&Kind::Message(&SCHEMA))),
        ("properties", 25, Kind::Message(&SCHEMAS)),
        ("readOnly", 27, Kind::Bool),
        ("externalDocs", 29, Kind::Message(&EXTERNAL_DOCS)),
        ("example", 30, Kind::Yaml),
    ],
    named: &[(Keys::Extensions, 31, Kind::Yaml)],
};

static EXTERNAL_DOCS: Message = Message {
    fields: &[("description", 1, Kind::Text), ("url", 2, Kind::Text)],
    named: &[(Keys::Extensions, 3, Kind::Yaml)],
};

static SECURITY_REQUIREMENT: Message = Message {
    fields: &[],
    named: &[(Keys::Others, 1, Kind::Wrapped(1, &Kind::List(&Kind::Text)))],
};

static SECURITY_DEFINITIONS: Message = Message {
    fields: &[],
    named: &[(Keys::Others, 1, Kind::Wrapped(2, &Kind::Message(&API_KEY_SECURITY)))],
};

static API_KEY_SECURITY: Message = Message {
    fields: &[
        ("type", 1, Kind::Text),
        ("name", 2, Kind::Text),
        ("in", 3, Kind::Text),
        ("description", 4, Kind::Text),
    ],
    named: &[(Keys::Extensions, 5, Kind::Yaml)],
};

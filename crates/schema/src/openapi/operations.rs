//! The requests of resources: paths, methods, parameters, bodies and responses, independent of the
//! version of OpenAPI. Upstream: apiserver's endpoints installer.

mod parameters;
mod resources;

pub(crate) use resources::paths;

use super::Page;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// A path and its operations.
#[derive(Debug)]
pub(crate) struct PathItem {
    pub(crate) path: String,
    /// The parameters of all operations of the path.
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) operations: Vec<Operation>,
}

/// A request.
#[derive(Debug)]
pub(crate) struct Operation {
    /// The HTTP method in lower case.
    pub(crate) method: &'static str,
    /// `x-kubernetes-action`; empty for discovery.
    pub(crate) action: &'static str,
    pub(crate) id: String,
    /// The description.
    pub(crate) description: String,
    pub(crate) tag: String,
    /// Group, version and kind; `None` for discovery.
    pub(crate) gvk: Option<(String, String, String)>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Option<Body>,
    /// The type of the response; empty for text.
    pub(crate) answer: String,
    pub(crate) codes: &'static [&'static str],
    pub(crate) produces: &'static [&'static str],
    pub(crate) consumes: &'static [&'static str],
}

impl Operation {
    /// The types that it refers to.
    pub(crate) fn types(&self) -> impl Iterator<Item = &str> {
        let body = self.body.as_ref().map(|b| b.type_name.as_str());
        body.into_iter().chain([self.answer.as_str()]).filter(|t| !t.is_empty())
    }
}

/// The body of a request.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) type_name: String,
    pub(crate) required: bool,
}

/// A parameter in the path or the query.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) in_path: bool,
    /// The type in OpenAPI's notation.
    pub(crate) kind: &'static str,
    /// The options type that documents it; empty for path parameters.
    pub(crate) documented_in: &'static str,
    /// The description, if no options type has it.
    pub(crate) description: String,
}

const OBJECTS: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/cbor",
];
const LISTS: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/cbor",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
    "application/cbor-seq",
];
const TEXTS: &[&str] = &[
    "text/plain",
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/cbor",
];
const DISCOVERY: &[&str] =
    &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
const PATCHES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/apply-patch+cbor",
];
const ANY: &[&str] = &["*/*"];
const TEXTUAL: &[&str] = &["application/json", "application/yaml"];

/// The media types and status codes in the operations of a resource.
#[derive(Debug)]
struct Media {
    objects: &'static [&'static str],
    lists: &'static [&'static str],
    bodies: &'static [&'static str],
    patches: &'static [&'static str],
    patch_codes: &'static [&'static str],
}

/// For resources whose types are in the table.
static TYPED: Media = Media {
    objects: OBJECTS,
    lists: LISTS,
    bodies: ANY,
    patches: PATCHES,
    patch_codes: &["200", "201", "401"],
};

/// For resources that are [described](super::Described) by their definitions.
static DESCRIBED: Media = Media {
    objects: TEXTUAL,
    lists: TEXTUAL,
    bodies: TEXTUAL,
    patches: &[
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/apply-patch+yaml",
    ],
    patch_codes: &["200", "401"],
};

/// The path item of a page.
pub(crate) fn page(page: Page<'_>) -> PathItem {
    let (id, tag, answer) = match page {
        Page::Core => ("getCoreAPIVersions".to_owned(), "core".to_owned(), "APIVersions"),
        Page::Groups => ("getAPIVersions".to_owned(), "apis".to_owned(), "APIGroupList"),
        Page::Group(group) => {
            let short = group.strip_suffix(".k8s.io").unwrap_or(group);
            (format!("get{}APIGroup", words(short, true)), words(short, false), "APIGroup")
        }
        Page::Version => ("getCodeVersion".to_owned(), "version".to_owned(), ""),
        Page::OpenIdConfiguration => {
            ("getServiceAccountIssuerOpenIDConfiguration".to_owned(), "WellKnown".to_owned(), "")
        }
        Page::OpenIdKeys => {
            ("getServiceAccountIssuerOpenIDKeyset".to_owned(), "openid".to_owned(), "")
        }
    };
    let description = match page {
        Page::Core | Page::Groups => "get available API versions",
        Page::Group(_) => "get information of a group",
        Page::Version => "get the version information for this server",
        Page::OpenIdConfiguration => {
            "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'"
        }
        Page::OpenIdKeys => {
            "get service account issuer OpenID JSON Web Key Set (contains public token verification \
             keys)"
        }
    };
    let mut item = discovery_path(format!("/{}/", page.path()), id, tag, answer, description);
    for operation in &mut item.operations {
        let (answer, produces, consumes): (_, &[_], &[_]) = match page {
            Page::Version => (
                "io.k8s.apimachinery.pkg.version.Info",
                &["application/json"],
                &["application/json"],
            ),
            Page::OpenIdConfiguration => ("", &["application/json"], &[]),
            Page::OpenIdKeys => ("", &["application/jwk-set+json"], &[]),
            _ => continue,
        };
        operation.answer = answer.to_owned();
        operation.produces = produces;
        operation.consumes = consumes;
    }
    item
}

/// The base path of a group version: `/api/v1`, `/apis/apps/v1`.
pub(crate) fn base(group: &str, version: &str) -> String {
    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
}

fn discovery_path(
    path: String,
    id: String,
    tag: String,
    answer: &str,
    description: &str,
) -> PathItem {
    let operation = Operation {
        method: "get",
        action: "",
        id,
        description: description.to_owned(),
        tag,
        gvk: None,
        parameters: Vec::new(),
        body: None,
        answer: format!("{META}.{answer}"),
        codes: &["200", "401"],
        produces: DISCOVERY,
        consumes: DISCOVERY,
    };
    PathItem { path, parameters: Vec::new(), operations: vec![operation] }
}

/// Converts `rbac.authorization` to `RbacAuthorization`, or to `rbacAuthorization` without
/// `capital`.
fn words(text: &str, capital: bool) -> String {
    let parts = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|p| !p.is_empty());
    let mut out = String::new();
    for part in parts {
        if capital || !out.is_empty() { out.push_str(&title(part)) } else { out.push_str(part) }
    }
    out
}

fn title(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| c.to_ascii_uppercase().to_string() + chars.as_str())
}

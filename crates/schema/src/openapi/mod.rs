//! Generates OpenAPI documents from a schema: the responses of `/openapi/v2` and `/openapi/v3`.
//!
//! Pure functions from plain data to bytes, run on demand: nothing is cached, and a document is
//! written without building a tree. `operations` describes the requests of a resource, once for
//! both versions; `v2` and `v3` write them as JSON, and `message` converts that to Protobuf.
//!
//! Must not know: the origin of the resources, or how they are served.

mod conversion;
mod described;
mod excerpt;
mod json;
mod message;
mod operations;
mod schemas;
mod v2;
mod v3;

use std::collections::BTreeSet;

use json::Json;
use operations::Parameter;

use crate::table::Schema;

pub use conversion::v3_from_v2;
pub use described::{Described, Write};
pub use excerpt::Excerpt;
pub use message::{v2_message, v3_message};
pub use v2::v2_document;
pub use v3::{v3_document, v3_index, v3_page, v3_path};

/// The resources of one group and version.
#[derive(Clone, Debug, Default)]
pub struct GroupVersion {
    /// The API group, `""` for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// Its resources.
    pub resources: Vec<Resource>,
}

/// The parts of a resource that documents show.
#[derive(Clone, Debug, Default)]
pub struct Resource {
    /// The name in URLs: `pods`.
    pub plural: String,
    /// The kind of its objects.
    pub kind: String,
    /// The type name of its objects; the type of its lists has the suffix `List`.
    pub type_name: String,
    /// Whether its objects are namespaced.
    pub namespaced: bool,
    /// The verbs, as in discovery.
    pub verbs: Vec<&'static str>,
    /// Whether DELETE responds with the object instead of a Status.
    pub delete_returns_object: bool,
    /// Its subresources.
    pub subresources: Vec<Subresource>,
    /// The definition's own description of its types, for custom resources.
    pub described: Option<Described>,
}

/// The parts of a subresource that documents show.
#[derive(Clone, Debug, Default)]
pub struct Subresource {
    /// Its name in URLs.
    pub name: String,
    /// The group of its kind.
    pub group: String,
    /// The version of its kind.
    pub version: String,
    /// Its kind. If that is the options of a connection (`PodExecOptions`), the subresource is a
    /// connection.
    pub kind: String,
    /// The verbs, as in discovery.
    pub verbs: Vec<&'static str>,
}

/// The documents besides those of group versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page<'a> {
    /// The versions of the core group: `api`.
    Core,
    /// All groups: `apis`.
    Groups,
    /// One group: `apis/apps`.
    Group(&'a str),
    /// The server's version.
    Version,
    /// The OpenID configuration of the service account issuer.
    OpenIdConfiguration,
    /// The keys that verify service account tokens.
    OpenIdKeys,
}

impl GroupVersion {
    /// Whether all its resources are custom resources.
    pub fn is_described(&self) -> bool {
        self.resources.iter().all(|resource| resource.described.is_some())
    }
}

impl Page<'_> {
    /// Its path in the index of documents.
    pub fn path(self) -> String {
        match self {
            Self::Core => "api".to_owned(),
            Self::Groups => "apis".to_owned(),
            Self::Group(group) => format!("apis/{group}"),
            Self::Version => "version".to_owned(),
            Self::OpenIdConfiguration => ".well-known/openid-configuration".to_owned(),
            Self::OpenIdKeys => "openid/v1/jwks".to_owned(),
        }
    }
}

/// The documents besides those of group versions. Groups with only custom resources have none.
pub fn pages(group_versions: &[GroupVersion], open_id: bool) -> impl Iterator<Item = Page<'_>> {
    let built_in = group_versions.iter().filter(|gv| !gv.group.is_empty() && !gv.is_described());
    let groups: BTreeSet<&str> = built_in.map(|gv| gv.group.as_str()).collect();
    let open_id = open_id.then_some([Page::OpenIdConfiguration, Page::OpenIdKeys]);
    let fixed = [Page::Core, Page::Groups, Page::Version].into_iter();
    fixed.chain(open_id.into_iter().flatten()).chain(groups.into_iter().map(Page::Group))
}

/// The input of the documents.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The types.
    pub schema: &'a Schema,
    /// The descriptions of the types.
    pub descriptions: &'a dyn Descriptions,
    /// Whether the server supports CBOR (CBOR-01).
    pub cbor: bool,
    /// The version of the server.
    pub version: &'a str,
    /// Whether the server publishes the keys of service account tokens.
    pub open_id: bool,
}

impl Source<'_> {
    /// The media types of an operation that the server supports.
    fn media_types<'m>(self, all: &'m [&'static str]) -> impl Iterator<Item = &'static str> + 'm {
        all.iter().copied().filter(move |media_type| self.cbor || !media_type.contains("cbor"))
    }
}

/// The descriptions of types and fields.
pub trait Descriptions {
    /// The description of a type.
    fn of_type(&self, type_name: &str) -> Option<&str>;
    /// The description of a type's field.
    fn of_field(&self, type_name: &str, field: &str) -> Option<&str>;
}

/// A source without descriptions.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoDescriptions;

impl Descriptions for NoDescriptions {
    fn of_type(&self, _type_name: &str) -> Option<&str> {
        None
    }

    fn of_field(&self, _type_name: &str, _field: &str) -> Option<&str> {
        None
    }
}

/// The version of OpenAPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Swagger 2.0: no defaults; a reference can have siblings.
    V2,
    /// OpenAPI 3.0: a reference with siblings is an `allOf`.
    V3,
}

/// Writes the members of a parameter that both versions share.
fn parameter(json: &mut Json, p: &Parameter, descriptions: &dyn Descriptions) {
    let options = format!("io.k8s.apimachinery.pkg.apis.meta.v1.{}", p.documented_in);
    if !p.description.is_empty() {
        json.key("description").text(&p.description);
    } else if let Some(text) = descriptions.of_field(&options, &p.name) {
        json.key("description").text(text);
    }
    json.key("in").text(if p.in_path { "path" } else { "query" });
    json.key("name").text(&p.name);
    if p.in_path {
        json.key("required").raw("true");
    }
}

fn info(json: &mut Json, version: &str) {
    json.key("title").text("Kubernetes");
    json.key("version").text(version);
}

fn bearer_token(json: &mut Json) {
    json.key("description").text("Bearer Token authentication");
    json.key("in").text("header");
    json.key("name").text("authorization");
    json.key("type").text("apiKey");
}

/// The description of a status code.
fn reason(code: &str) -> &'static str {
    match code {
        "200" => "OK",
        "201" => "Created",
        "202" => "Accepted",
        _ => "Unauthorized",
    }
}

#[cfg(test)]
mod tests;

//! OpenAPI documents out of a schema: what `/openapi/v2` and `/openapi/v3` answer.
//!
//! Pure functions from plain data to bytes, run on demand: nothing is kept, and a document is written
//! as it is made, without a tree of it. [`operations`] says which requests a resource takes, once for
//! both versions; [`v2`] and [`v3`] write them down as JSON, and [`message`] turns that into Protobuf.
//!
//! Must not know: where the resources come from, or how they are served.

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

/// A resource, as far as documents show it.
#[derive(Clone, Debug, Default)]
pub struct Resource {
    /// The name in URLs: `pods`.
    pub plural: String,
    /// The kind of its objects.
    pub kind: String,
    /// The name of its objects' type in the schema; the type of its lists has `List` after it.
    pub type_name: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// What clients may do with it, as discovery names it.
    pub verbs: Vec<&'static str>,
    /// DELETE answers with the object instead of a Status.
    pub delete_returns_object: bool,
    /// Its subresources.
    pub subresources: Vec<Subresource>,
    /// What it says of its types itself.
    pub described: Option<Described>,
}

/// A subresource, as far as documents show it.
#[derive(Clone, Debug, Default)]
pub struct Subresource {
    /// Its name in URLs.
    pub name: String,
    /// The group of the kind that it reads and writes.
    pub group: String,
    /// The version of that kind.
    pub version: String,
    /// That kind. Where it is the options of a connection (`PodExecOptions`), the subresource is one.
    pub kind: String,
    /// What clients may do with it, as discovery names it.
    pub verbs: Vec<&'static str>,
}

/// What has a document of its own besides the groups' versions.
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
    /// What verifies tokens of service accounts.
    OpenIdConfiguration,
    /// The keys that they are verified with.
    OpenIdKeys,
}

impl GroupVersion {
    /// Whether all of it is custom resources.
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

/// The pages beside the groups' versions: those of groups that are not custom resources alone.
pub fn pages(group_versions: &[GroupVersion], open_id: bool) -> impl Iterator<Item = Page<'_>> {
    let built_in = group_versions.iter().filter(|gv| !gv.group.is_empty() && !gv.is_described());
    let groups: BTreeSet<&str> = built_in.map(|gv| gv.group.as_str()).collect();
    let open_id = open_id.then_some([Page::OpenIdConfiguration, Page::OpenIdKeys]);
    let fixed = [Page::Core, Page::Groups, Page::Version].into_iter();
    fixed.chain(open_id.into_iter().flatten()).chain(groups.into_iter().map(Page::Group))
}

/// What documents are made from.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The types.
    pub schema: &'a Schema,
    /// What they are for.
    pub descriptions: &'a dyn Descriptions,
    /// Whether CBOR is spoken (CBOR-01).
    pub cbor: bool,
    /// The version that the documents are of.
    pub version: &'a str,
    /// Whether tokens of service accounts can be verified by others.
    pub open_id: bool,
}

impl Source<'_> {
    /// What is left of an operation's media types.
    fn media_types<'m>(self, all: &'m [&'static str]) -> impl Iterator<Item = &'static str> + 'm {
        all.iter().copied().filter(move |media_type| self.cbor || !media_type.contains("cbor"))
    }
}

/// What types and fields are for, in the words of their authors.
pub trait Descriptions {
    /// The description of a type.
    fn of_type(&self, type_name: &str) -> Option<&str>;
    /// The description of a type's field.
    fn of_field(&self, type_name: &str, field: &str) -> Option<&str>;
}

/// No descriptions: documents say what is, not what for.
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

/// The dialect of OpenAPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Swagger 2.0: no defaults, references stand alone.
    V2,
    /// OpenAPI 3.0.
    V3,
}

/// What both versions say of a parameter besides its type.
fn parameter(json: &mut Json, p: &Parameter, descriptions: &dyn Descriptions) {
    let options = format!("io.k8s.apimachinery.pkg.apis.meta.v1.{}", p.documented_in);
    if !p.says.is_empty() {
        json.key("description").text(&p.says);
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

/// What a status code says.
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

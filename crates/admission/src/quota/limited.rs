//! Resources that can be used only in namespaces with a quota for them (upstream:
//! `LimitedResource`).

use pintle_meta::GroupResource;
use pintle_value::{Str, Value};

use crate::matching::texts;
use crate::pods::{Amounts, items};
use crate::quota::scopes::{Requirement, Scoped};
use crate::strict::{self, Format, MemberType};

const FORMAT: Format = &[
    ("limitedResources", MemberType::Objects),
    ("limitedResources[].apiGroup", MemberType::Text),
    ("limitedResources[].resource", MemberType::Text),
    ("limitedResources[].matchContains", MemberType::Texts),
    ("limitedResources[].matchScopes", MemberType::Objects),
    ("limitedResources[].matchScopes[].scopeName", MemberType::Text),
    ("limitedResources[].matchScopes[].operator", MemberType::Text),
    ("limitedResources[].matchScopes[].values", MemberType::Texts),
];

/// A resource that needs a quota.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitedResource {
    group: Str,
    resource: Str,
    /// Substrings of the names by which quotas count the resource.
    names: Vec<Str>,
    /// Scopes that need a quota with the same scope.
    scopes: Vec<Value>,
}

impl LimitedResource {
    /// Reads a `ResourceQuotaConfiguration`.
    ///
    /// # Errors
    /// Describes the first invalid part.
    pub(crate) fn all(configuration: &Value) -> Result<Vec<Self>, String> {
        strict::check(configuration, FORMAT)?;
        let all = configuration.get("limitedResources").and_then(Value::as_array);
        let nameless = |one: &Value| one.str_at(&["resource"]).unwrap_or_default().is_empty();
        if let Some(index) = all.and_then(|all| all.iter().position(nameless)) {
            return Err(format!("limitedResources[{index}].resource: Required value"));
        }
        let text = |one: &Value, member| Str::from(one.str_at(&[member]).unwrap_or_default());
        let read = |one: &Value| Self {
            group: text(one, "apiGroup"),
            resource: text(one, "resource"),
            names: texts(one, "matchContains"),
            scopes: items(one, &["matchScopes"]).to_vec(),
        };
        Ok(all.unwrap_or_default().iter().map(read).collect())
    }

    /// Returns the limited scopes that an object is in. As in upstream, the resource of the
    /// object is not compared with that of the entry.
    pub(super) fn scopes_of<'a>(
        &'a self,
        object: &'a Scoped<'_>,
    ) -> impl Iterator<Item = Requirement<'a>> {
        self.scopes.iter().map(Requirement::of).filter(|scope| object.is_in(scope))
    }

    /// Returns the names in `usage` that need a quota.
    pub(super) fn limited_names<'a>(
        &'a self,
        resource: &GroupResource,
        usage: &'a Amounts,
    ) -> impl Iterator<Item = &'a str> {
        let is_resource = self.resource == *resource.resource && self.group == *resource.group;
        let named = |name: &&String| self.names.iter().any(|part| name.contains(part.as_str()));
        usage.keys().filter(move |name| is_resource && named(name)).map(String::as_str)
    }
}

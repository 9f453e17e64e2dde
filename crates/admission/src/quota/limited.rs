//! What nobody takes without a quota that covers it (upstream: `LimitedResource`).

use pintle_meta::GroupResource;
use pintle_value::{Str, Value};

use crate::matching::texts;
use crate::pods::{Amounts, items};
use crate::quota::usage::Requirement;
use crate::strict::{self, Format, Is};

const FORMAT: Format = &[
    ("limitedResources", Is::Objects),
    ("limitedResources[].apiGroup", Is::Text),
    ("limitedResources[].resource", Is::Text),
    ("limitedResources[].matchContains", Is::Texts),
    ("limitedResources[].matchScopes", Is::Objects),
    ("limitedResources[].matchScopes[].scopeName", Is::Text),
    ("limitedResources[].matchScopes[].operator", Is::Text),
    ("limitedResources[].matchScopes[].values", Is::Texts),
];

/// Something that is limited though no quota says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Limited {
    group: Str,
    resource: Str,
    /// Parts of the names by which quotas call it.
    names: Vec<Str>,
    /// Scopes of which an object that is within them must be within one of a quota's.
    scopes: Vec<Value>,
}

impl Limited {
    /// Those of a `ResourceQuotaConfiguration`.
    ///
    /// # Errors
    /// What is wrong with it.
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

    /// The scopes that an object is within, of whatever resource, as upstream has it.
    pub(super) fn scopes_of<'a>(
        &'a self,
        resource: &'a GroupResource,
        object: &'a Value,
    ) -> impl Iterator<Item = Requirement<'a>> {
        let scopes = self.scopes.iter().map(Requirement::of);
        scopes.filter(move |scope| scope.holds(resource, object))
    }

    /// What of an object's amounts it is about.
    pub(super) fn within<'a>(
        &'a self,
        resource: &GroupResource,
        taken: &'a Amounts,
    ) -> impl Iterator<Item = &'a str> {
        let is_it = self.resource == *resource.resource && self.group == *resource.group;
        let named = |name: &&String| self.names.iter().any(|part| name.contains(part.as_str()));
        taken.keys().filter(move |name| is_it && named(name)).map(String::as_str)
    }
}

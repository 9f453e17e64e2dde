//! What nobody takes without a quota that covers it (upstream: `LimitedResource`).

use pintle_meta::GroupResource;
use pintle_value::{Str, Value};

use crate::matching::texts;
use crate::pods::Amounts;

/// Something that is limited though no quota says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limited {
    group: Str,
    resource: Str,
    /// Parts of the names by which quotas call it.
    names: Vec<Str>,
}

impl Limited {
    /// Those of a `ResourceQuotaConfiguration`.
    pub(crate) fn all(configuration: &Value) -> Vec<Self> {
        let all = configuration.get("limitedResources").and_then(Value::as_array);
        let text = |one: &Value, member| Str::from(one.str_at(&[member]).unwrap_or_default());
        let read = |one: &Value| Self {
            group: text(one, "apiGroup"),
            resource: text(one, "resource"),
            names: texts(one, "matchContains"),
        };
        all.unwrap_or_default().iter().map(read).collect()
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

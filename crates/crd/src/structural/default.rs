//! Defaulting, and removal of disallowed nulls.

use pintle_value::Value;

use super::Structural;

/// The members of metadata.
const OBJECT_META: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

impl Structural {
    /// Removes members that are null, not nullable, and without default (upstream:
    /// PruneNonNullableNullsWithoutDefaults).
    pub(crate) fn drop_nulls(&self, value: &mut Value) {
        match value {
            Value::Object(members) => members.retain(|name, member| {
                let Some(schema) = self.member(name) else { return true };
                if member.is_null() && !schema.nullable && schema.default.is_none() {
                    return false;
                }
                schema.drop_nulls(member);
                true
            }),
            Value::Array(items) => {
                let Some(schema) = &self.items else { return };
                items.iter_mut().for_each(|item| schema.drop_nulls(item));
            }
            _ => {}
        }
    }

    /// Sets members that are absent, or null and not nullable, to their defaults (upstream:
    /// Default).
    pub(crate) fn set_defaults(&self, value: &mut Value) {
        match value {
            Value::Object(members) => {
                for (name, schema) in &self.properties {
                    let Some(default) = &schema.default else { continue };
                    let accepted_map = members.get(name);
                    if accepted_map
                        .is_none_or(|accepted_map| accepted_map.is_null() && !schema.nullable)
                    {
                        members.insert(name.clone(), (**default).clone());
                    }
                }
                for (name, member) in members.iter_mut() {
                    if let Some(schema) = self.property(name) {
                        schema.set_defaults(member);
                    } else if let Some(schema) = self.additional() {
                        schema.replace_null(member);
                        schema.set_defaults(member);
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = &self.items else { return };
                for item in items {
                    schema.replace_null(item);
                    schema.set_defaults(item);
                }
            }
            _ => {}
        }
    }

    fn replace_null(&self, value: &mut Value) {
        if let Some(default) = self.default.as_deref().filter(|_| value.is_null() && !self.nullable)
        {
            *value = default.clone();
        }
    }
}

impl Structural {
    /// Removes unknown members of embedded objects' metadata from a default (upstream:
    /// PruneDefaults).
    pub(super) fn prune_metadata(&self, value: &mut Value) {
        match value {
            Value::Object(members) => {
                if self.embedded
                    && let Some(Value::Object(given)) = members.get_mut("metadata")
                {
                    given.retain(|name, _| is_metadata_member(name));
                }
                for (name, member) in members.iter_mut() {
                    if let Some(schema) = self.member(name) {
                        schema.prune_metadata(member);
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = &self.items else { return };
                items.iter_mut().for_each(|item| schema.prune_metadata(item));
            }
            _ => {}
        }
    }

    /// Removes defaults for unknown members of embedded objects' metadata: upstream sets them, and
    /// then prunes them.
    pub(super) fn drop_unknown_metadata_defaults(&mut self) {
        let Some((_, metadata)) = self.properties.iter_mut().find(|(name, _)| name == "metadata")
        else {
            return;
        };
        if let Some(Value::Object(given)) = metadata.default.as_deref_mut() {
            given.retain(|name, _| is_metadata_member(name));
        }
        for (_, member) in
            metadata.properties.iter_mut().filter(|(name, _)| !is_metadata_member(name))
        {
            member.default = None;
        }
    }

    /// Removes undeclared fields (upstream: `pruning`).
    pub(crate) fn prune(&self, value: &mut Value) {
        match value {
            Value::Object(members) => members.retain(|name, member| {
                if self.embedded && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                    return true;
                }
                match self.member(name) {
                    Some(schema) => schema.prune(member),
                    None if self.preserve_unknown => {}
                    None if self.additional.is_some() => Self::default().prune(member),
                    None => return false,
                }
                true
            }),
            Value::Array(items) => match &self.items {
                Some(schema) => items.iter_mut().for_each(|item| schema.prune(item)),
                None if self.preserve_unknown => {}
                None => items.iter_mut().for_each(|item| Self::default().prune(item)),
            },
            _ => {}
        }
    }
}

fn is_metadata_member(name: &str) -> bool {
    OBJECT_META.contains(&name)
}

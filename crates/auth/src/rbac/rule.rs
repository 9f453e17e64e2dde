//! The rules of roles: verbs on resources or on paths.

use pintle_value::{Str, Value};

use crate::{Attributes, Objects, Subject};

/// A rule of a role (upstream: `PolicyRule`). `*` matches every text, except among the resource
/// names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    pub verbs: Vec<Str>,
    pub api_groups: Vec<Str>,
    /// `pods`, `pods/log`, `*/scale`, `*`.
    pub resources: Vec<Str>,
    /// Empty matches any name.
    pub resource_names: Vec<Str>,
    /// A path that ends with `*` matches every path that begins with the text before the `*`.
    pub paths: Vec<Str>,
}

impl Rule {
    /// Parses the rules of a role.
    pub fn all_of(role: &Value) -> Vec<Self> {
        let rules = role.get("rules").and_then(Value::as_array).unwrap_or_default();
        rules.iter().map(Self::read).collect()
    }

    fn read(rule: &Value) -> Self {
        let list = |member| {
            let items = rule.get(member).and_then(Value::as_array).unwrap_or_default();
            items.iter().filter_map(Value::as_str).map(Str::from).collect()
        };
        Self {
            verbs: list("verbs"),
            api_groups: list("apiGroups"),
            resources: list("resources"),
            resource_names: list("resourceNames"),
            paths: list("nonResourceURLs"),
        }
    }

    /// True if the rule allows the request, for any user.
    pub(crate) fn allows(&self, asked: &Attributes<'_>) -> bool {
        has_or_all(&self.verbs, asked.verb)
            && match asked.subject {
                Subject::Path(path) => self.paths.iter().any(|rule| path_matches(rule, path)),
                Subject::Resource(Objects { group, resource, subresource, name, .. }) => {
                    has_or_all(&self.api_groups, group)
                        && self.resources.iter().any(|r| resource_matches(r, resource, subresource))
                        && (self.resource_names.is_empty() || has(&self.resource_names, name))
                }
            }
    }
}

fn has(list: &[Str], word: &str) -> bool {
    list.iter().any(|entry| entry == word)
}

fn has_or_all(list: &[Str], word: &str) -> bool {
    list.iter().any(|entry| entry == "*" || entry == word)
}

fn resource_matches(rule: &str, resource: &str, subresource: &str) -> bool {
    if rule == "*" {
        return true;
    }
    match rule.split_once('/') {
        None => subresource.is_empty() && rule == resource,
        Some((of, part)) => {
            !subresource.is_empty() && part == subresource && (of == "*" || of == resource)
        }
    }
}

/// True if a rule's path matches a path.
fn path_matches(rule: &str, path: &str) -> bool {
    rule == path || rule.ends_with('*') && path.starts_with(rule.trim_end_matches('*'))
}

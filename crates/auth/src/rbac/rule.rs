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
    pub(super) order: Order,
}

/// The indices of long lists in the order of their texts: a role of a namespace can name half a
/// million texts, and each request of its users is compared with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    verbs: Box<[u32]>,
    api_groups: Box<[u32]>,
    resources: Box<[u32]>,
    resource_names: Box<[u32]>,
}

/// Longer lists have an [`Order`].
const SCANNED_MAX: usize = 16;

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
        let verbs: Vec<Str> = list("verbs");
        let (api_groups, resources) = (list("apiGroups"), list("resources"));
        let (resource_names, paths) = (list("resourceNames"), list("nonResourceURLs"));
        let order = Order {
            verbs: order(&verbs),
            api_groups: order(&api_groups),
            resources: order(&resources),
            resource_names: order(&resource_names),
        };
        Self { verbs, api_groups, resources, resource_names, paths, order }
    }

    /// Whether the rule allows the request, for any user.
    pub(crate) fn allows(&self, asked: &Attributes<'_>) -> bool {
        has_or_all(&self.verbs, &self.order.verbs, asked.verb)
            && match asked.subject {
                Subject::Path(path) => self.paths.iter().any(|rule| path_matches(rule, path)),
                Subject::Resource(Objects { group, resource, subresource, name, .. }) => {
                    has_or_all(&self.api_groups, &self.order.api_groups, group)
                        && self.has_resource(resource, subresource)
                        && (self.resource_names.is_empty()
                            || has(&self.resource_names, &self.order.resource_names, name))
                }
            }
    }

    /// The approximate size of its texts, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let all = [&self.verbs, &self.api_groups, &self.resources, &self.resource_names];
        let texts = all.into_iter().chain([&self.paths]).flatten();
        texts.map(|text| size_of::<Str>() + text.len()).sum()
    }

    fn has_resource(&self, resource: &str, subresource: &str) -> bool {
        let (list, order) = (&self.resources, &self.order.resources);
        if order.is_empty() {
            return list.iter().any(|rule| resource_matches(rule, resource, subresource));
        }
        has(list, order, "*")
            || match subresource {
                "" => has(list, order, resource),
                part => [resource, "*"].iter().any(|of| has(list, order, &format!("{of}/{part}"))),
            }
    }
}

/// Returns the order of a list, if it is long.
fn order(list: &[Str]) -> Box<[u32]> {
    let Some(count) = u32::try_from(list.len()).ok().filter(|_| list.len() > SCANNED_MAX) else {
        return Box::default();
    };
    let mut order: Box<[u32]> = (0..count).collect();
    order.sort_unstable_by_key(|index| &list[*index as usize]);
    order
}

/// Whether a list has a text. `order` is its order, or empty.
fn has(list: &[Str], order: &[u32], word: &str) -> bool {
    match order {
        [] => list.iter().any(|entry| entry == word),
        order => order.binary_search_by(|index| list[*index as usize].as_str().cmp(word)).is_ok(),
    }
}

fn has_or_all(list: &[Str], order: &[u32], word: &str) -> bool {
    match order {
        [] => list.iter().any(|entry| entry == "*" || entry == word),
        order => has(list, order, word) || has(list, order, "*"),
    }
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

/// Whether a rule's path matches a path.
fn path_matches(rule: &str, path: &str) -> bool {
    rule == path || rule.ends_with('*') && path.starts_with(rule.trim_end_matches('*'))
}

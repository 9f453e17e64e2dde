//! Policies: at which level which requests are recorded.

mod read;
#[cfg(test)]
mod tests;

use pintle_auth::{Objects, Subject, User};

use crate::{Level, Stage};

/// The rules, in their order. The first that a request meets says how it is recorded; one that meets none is
/// not.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    rules: Vec<Rule>,
}

/// How a request is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ruled {
    /// How much of it.
    pub level: Level,
    omitted: Stages,
    /// Whether managed fields are left out of its objects.
    pub omits_managed_fields: bool,
}

/// A set of stages, a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stages(u8);

/// Which requests are recorded how. Empty lists are for everything.
#[derive(Clone, Debug, Default)]
struct Rule {
    ruled: Ruled,
    users: Vec<String>,
    groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<GroupResources>,
    namespaces: Vec<String>,
    paths: Vec<String>,
}

#[derive(Clone, Debug, Default)]
struct GroupResources {
    group: String,
    resources: Vec<String>,
    names: Vec<String>,
}

impl Policy {
    /// How a request is recorded; `user` is `None` where no credential holds.
    pub fn rule(&self, user: Option<&User>, verb: &str, subject: &Subject<'_>) -> Ruled {
        let met = self.rules.iter().find(|rule| rule.is_met(user, verb, subject));
        met.map_or_else(Ruled::default, |rule| rule.ruled)
    }
}

impl Ruled {
    /// Whether no event is made of a stage.
    pub const fn omits(self, stage: Stage) -> bool {
        self.omitted.has(stage)
    }
}

impl Stages {
    const fn bit(stage: Stage) -> u8 {
        1 << stage as u8
    }

    const fn has(self, stage: Stage) -> bool {
        self.0 & Self::bit(stage) != 0
    }

    const fn with(self, stage: Stage) -> Self {
        Self(self.0 | Self::bit(stage))
    }
}

impl Rule {
    fn is_met(&self, user: Option<&User>, verb: &str, subject: &Subject<'_>) -> bool {
        let is_one_of = |names: &[String], name: &str| names.iter().any(|one| one == name);
        if !self.users.is_empty() && !user.is_some_and(|user| is_one_of(&self.users, &user.name)) {
            return false;
        }
        let in_group = |user: &User| user.groups.iter().any(|group| is_one_of(&self.groups, group));
        if !self.groups.is_empty() && !user.is_some_and(in_group) {
            return false;
        }
        if !self.verbs.is_empty() && !is_one_of(&self.verbs, verb) {
            return false;
        }
        match subject {
            Subject::Resource(objects) => {
                let is_for_paths = self.is_for_every_resource() && !self.paths.is_empty();
                !is_for_paths && self.meets_resource(objects)
            }
            Subject::Path(path) => {
                self.is_for_every_resource()
                    && (self.paths.is_empty() || self.paths.iter().any(|spec| meets(spec, path)))
            }
        }
    }

    const fn is_for_every_resource(&self) -> bool {
        self.namespaces.is_empty() && self.resources.is_empty()
    }

    fn meets_resource(&self, objects: &Objects<'_>) -> bool {
        let namespaces = &self.namespaces;
        if !namespaces.is_empty() && !namespaces.iter().any(|one| one == objects.namespace) {
            return false;
        }
        self.resources.is_empty() || self.resources.iter().any(|one| one.meet(objects))
    }
}

impl GroupResources {
    fn meet(&self, objects: &Objects<'_>) -> bool {
        if self.group != objects.group && self.group != "*" {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        let is_named = self.names.is_empty() || self.names.iter().any(|name| name == objects.name);
        is_named && self.resources.iter().any(|spec| meets_resource(spec, objects))
    }
}

/// Whether a request is about `pods`, `pods/log`, `pods/*`, `*/scale` or `*`.
fn meets_resource(spec: &str, objects: &Objects<'_>) -> bool {
    let (resource, subresource) = (objects.resource, objects.subresource);
    match spec.split_once('/') {
        _ if spec == "*" => true,
        None => spec == resource && subresource.is_empty(),
        Some((wanted, "*")) if wanted == resource => true,
        Some(("*", wanted)) => wanted == subresource && !subresource.is_empty(),
        Some((wanted, part)) => {
            wanted == resource && part == subresource && !subresource.is_empty()
        }
    }
}

/// Whether a path is the wanted one, or begins as that does which ends in `*`.
fn meets(spec: &str, path: &str) -> bool {
    let begins = |prefix: &str| path.starts_with(prefix.trim_end_matches('*'));
    spec == path || spec.strip_suffix('*').is_some_and(begins)
}

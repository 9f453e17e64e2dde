//! Policies: which requests are recorded, and at which level.

mod read;
#[cfg(test)]
mod tests;

use pintle_auth::{Objects, Subject, User};

use crate::{Level, Stage};

/// The rules in their order. The first rule that matches a request determines how it is recorded; a
/// request without a matching rule is not recorded.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    rules: Vec<Rule>,
}

/// How a request is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// How much is recorded.
    pub level: Level,
    omitted: Stages,
    /// Whether managed fields are removed from the objects.
    pub omits_managed_fields: bool,
}

/// A set of stages, with a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stages(u8);

/// Which requests are recorded, and how. An empty list matches everything.
#[derive(Clone, Debug, Default)]
struct Rule {
    recording: Recording,
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
    /// How a request is recorded; `user` is `None` if authentication failed.
    pub fn recording(&self, user: Option<&User>, verb: &str, subject: &Subject<'_>) -> Recording {
        let rule = self.rules.iter().find(|rule| rule.matches(user, verb, subject));
        rule.map_or_else(Recording::default, |rule| rule.recording)
    }
}

impl Recording {
    /// Whether no event is created at a stage.
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
    fn matches(&self, user: Option<&User>, verb: &str, subject: &Subject<'_>) -> bool {
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
                !is_for_paths && self.matches_resource(objects)
            }
            Subject::Path(path) => {
                self.is_for_every_resource()
                    && (self.paths.is_empty()
                        || self.paths.iter().any(|spec| matches_path(spec, path)))
            }
        }
    }

    const fn is_for_every_resource(&self) -> bool {
        self.namespaces.is_empty() && self.resources.is_empty()
    }

    fn matches_resource(&self, objects: &Objects<'_>) -> bool {
        let namespaces = &self.namespaces;
        if !namespaces.is_empty() && !namespaces.iter().any(|one| one == objects.namespace) {
            return false;
        }
        self.resources.is_empty() || self.resources.iter().any(|one| one.matches(objects))
    }
}

impl GroupResources {
    fn matches(&self, objects: &Objects<'_>) -> bool {
        if self.group != objects.group && self.group != "*" {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        let is_named = self.names.is_empty() || self.names.iter().any(|name| name == objects.name);
        is_named && self.resources.iter().any(|spec| matches_resource(spec, objects))
    }
}

/// Whether a request's resource matches `pods`, `pods/log`, `pods/*`, `*/scale` or `*`.
fn matches_resource(spec: &str, objects: &Objects<'_>) -> bool {
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

/// Whether a path equals `spec`, or begins with it if it ends in `*`.
fn matches_path(spec: &str, path: &str) -> bool {
    let has_prefix = |prefix: &str| path.starts_with(prefix.trim_end_matches('*'));
    spec == path || spec.strip_suffix('*').is_some_and(has_prefix)
}

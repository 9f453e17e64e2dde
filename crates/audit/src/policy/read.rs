//! Reads policy files, and checks them by upstream's rules.

use pintle_meta::field::{self, Errors};
use pintle_meta::names;
use pintle_value::{Path, Value, yaml};

use super::{GroupResources, Policy, Recording, Rule, Stages};
use crate::{Error, Level, Stage};

const VERSION: &str = "audit.k8s.io/v1";
const KIND: &str = "Policy";
const MEMBERS: [&str; 6] =
    ["apiVersion", "kind", "metadata", "omitManagedFields", "omitStages", "rules"];
const RULE_MEMBERS: [&str; 9] = [
    "level",
    "namespaces",
    "nonResourceURLs",
    "omitManagedFields",
    "omitStages",
    "resources",
    "userGroups",
    "users",
    "verbs",
];
const RESOURCES_MEMBERS: [&str; 3] = ["group", "resourceNames", "resources"];

impl Policy {
    /// Reads a policy from YAML or JSON. Also returns the unknown fields, for which upstream only
    /// warns.
    ///
    /// # Errors
    /// The problems of the file.
    pub fn read(bytes: &[u8]) -> Result<(Self, Vec<String>), Error> {
        let file = yaml::parse(bytes).map_err(|why| Error::Syntax(why.to_string()))?;
        let text = |member| file.str_at(&[member]).unwrap_or_default();
        let (version, kind) = (text("apiVersion"), text("kind"));
        if (version, kind) != (VERSION, KIND) {
            return Err(Error::Kind(format!("{version}, Kind={kind}")));
        }
        let mut reader = Reader::default();
        let policy = reader.policy(&file);
        if let Some(why) = reader.malformed.into_iter().next() {
            return Err(Error::Syntax(why));
        }
        if !reader.errors.is_empty() {
            return Err(Error::Invalid(field::aggregate(&reader.errors)));
        }
        if policy.rules.is_empty() {
            return Err(Error::Empty);
        }
        Ok((policy, reader.unknown))
    }
}

/// Reads a file and collects the problems.
#[derive(Default)]
struct Reader {
    /// Values of the wrong type.
    malformed: Vec<String>,
    unknown: Vec<String>,
    errors: Errors,
}

impl Reader {
    fn policy(&mut self, file: &Value) -> Policy {
        self.check_members(file, &Path::root(), &MEMBERS);
        let omitted = self.stages(file, &Path::root());
        let omits_managed_fields =
            self.flag(file, &Path::root(), "omitManagedFields").unwrap_or(false);
        let at = Path::new("rules");
        let defaults = Recording { omitted, omits_managed_fields, ..Recording::default() };
        let rules = self.list(file, &Path::root(), "rules").iter().enumerate();
        Policy { rules: rules.map(|(i, rule)| self.rule(rule, &at.index(i), defaults)).collect() }
    }

    fn rule(&mut self, rule: &Value, at: &Path, defaults: Recording) -> Rule {
        self.check_members(rule, at, &RULE_MEMBERS);
        let level = self.level(rule, at);
        let paths = self.paths(rule, at);
        let resources = self.list(rule, at, "resources").iter();
        let resources = resources.map(|one| self.group_resources(one, at)).collect();
        let omitted = Stages(defaults.omitted.0 | self.stages(rule, at).0);
        let own = self.flag(rule, at, "omitManagedFields");
        let omits_managed_fields = own.unwrap_or(defaults.omits_managed_fields);
        let rule = Rule {
            recording: Recording { level, omitted, omits_managed_fields },
            users: self.texts(rule, at, "users"),
            groups: self.texts(rule, at, "userGroups"),
            verbs: self.texts(rule, at, "verbs"),
            resources,
            namespaces: self.texts(rule, at, "namespaces"),
            paths,
        };
        if !rule.paths.is_empty() && !rule.is_for_every_resource() {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            let paths = Value::from(rule.paths.clone());
            self.errors.push(field::Error::invalid(&at.field("nonResourceURLs"), &paths, why));
        }
        rule
    }

    fn level(&mut self, rule: &Value, at: &Path) -> Level {
        let name = self.text(rule, at, "level");
        if let Some(level) = Level::ALL.into_iter().find(|level| level.name() == name) {
            return level;
        }
        let at = at.field("level");
        self.errors.push(match name.as_str() {
            "" => field::Error::required(&at, ""),
            _ => field::Error::not_supported(&at, &name.into(), &Level::ALL.map(Level::name)),
        });
        Level::None
    }

    fn stages(&mut self, value: &Value, at: &Path) -> Stages {
        let at_stages = at.field("omitStages");
        let mut stages = Stages::default();
        for (index, name) in self.texts(value, at, "omitStages").into_iter().enumerate() {
            match Stage::ALL.into_iter().find(|stage| stage.name() == name) {
                Some(stage) => stages = stages.with(stage),
                None => {
                    let why =
                        format!("allowed stages are {}", Stage::ALL.map(Stage::name).join(","));
                    let at = at_stages.index(index);
                    self.errors.push(field::Error::invalid(&at, &name.into(), why));
                }
            }
        }
        stages
    }

    fn paths(&mut self, rule: &Value, at: &Path) -> Vec<String> {
        let paths = self.texts(rule, at, "nonResourceURLs");
        let at = at.field("nonResourceURLs");
        for (index, path) in paths.iter().enumerate().filter(|(_, path)| *path != "*") {
            let mut refuse = |why| {
                let path = path.as_str().into();
                self.errors.push(field::Error::invalid(&at.index(index), &path, why));
            };
            if !path.starts_with('/') {
                refuse("non-resource URL rules must begin with a '/' character");
            }
            if path.strip_suffix('*').unwrap_or(path).contains('*') {
                refuse("non-resource URL wildcards '*' must be the final character of the rule");
            }
        }
        paths
    }

    /// Reads an entry of `resources`. Like upstream's, the paths in errors do not contain its
    /// index.
    fn group_resources(&mut self, one: &Value, at: &Path) -> GroupResources {
        let at = at.field("resources");
        self.check_members(one, &at, &RESOURCES_MEMBERS);
        let group = self.text(one, &at, "group");
        let names = self.texts(one, &at, "resourceNames");
        let resources = self.texts(one, &at, "resources");
        let problems = names::dns1123_subdomain(&group);
        if !matches!(group.as_str(), "" | "*") && !problems.is_empty() {
            let (at, shown) = (at.field("group"), group.as_str().into());
            self.errors.push(field::Error::invalid(&at, &shown, problems.join(",")));
        }
        if !names.is_empty() && resources.is_empty() {
            let why = "using resourceNames requires at least one resource";
            let (at, shown) = (at.field("resourceNames"), Value::from(names.clone()));
            self.errors.push(field::Error::invalid(&at, &shown, why));
        }
        GroupResources { group, resources, names }
    }

    fn check_members(&mut self, value: &Value, at: &Path, known: &[&str]) {
        let Some(members) = value.as_object() else {
            self.malformed.push(format!("{}: must be an object", shown(at)));
            return;
        };
        for name in members.keys().filter(|name| !known.contains(&name.as_str())) {
            self.unknown.push(format!("unknown field {:?}", at.field(name).as_str()));
        }
    }

    fn text(&mut self, value: &Value, at: &Path, member: &str) -> String {
        match value.get(member) {
            None | Some(Value::Null) => String::new(),
            Some(found) => found.as_str().map(str::to_owned).unwrap_or_else(|| {
                self.malformed.push(format!("{}: must be a string", at.field(member).as_str()));
                String::new()
            }),
        }
    }

    fn flag(&mut self, value: &Value, at: &Path, member: &str) -> Option<bool> {
        let found = value.get(member).filter(|found| !found.is_null())?;
        if found.as_bool().is_none() {
            self.malformed.push(format!("{}: must be true or false", at.field(member).as_str()));
        }
        found.as_bool()
    }

    fn list<'v>(&mut self, value: &'v Value, at: &Path, member: &str) -> &'v [Value] {
        match value.get(member) {
            None | Some(Value::Null) => &[],
            Some(found) => found.as_array().unwrap_or_else(|| {
                self.malformed.push(format!("{}: must be a list", at.field(member).as_str()));
                &[]
            }),
        }
    }

    fn texts(&mut self, value: &Value, at: &Path, member: &str) -> Vec<String> {
        let items = self.list(value, at, member).iter().enumerate();
        let texts = items.map(|(index, item)| match item {
            // Go treats null as an empty string.
            Value::Null => String::new(),
            item => item.as_str().map(str::to_owned).unwrap_or_else(|| {
                let at = at.field(member).index(index);
                self.malformed.push(format!("{}: must be a string", at.as_str()));
                String::new()
            }),
        });
        texts.collect()
    }
}

fn shown(at: &Path) -> &str {
    if at.as_str().is_empty() { "the policy" } else { at.as_str() }
}

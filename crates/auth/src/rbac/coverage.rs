//! Whether who has some rules has others too: nobody may grant what they do not have (AUTHZ-03).

use std::collections::BTreeSet;
use std::fmt::Write;

use pintle_meta::quote::quote;
use pintle_value::Str;

use super::Rule;
use super::rule::{has, has_or_all, path_matches};

/// What `wanted` allows and `owned` does not, each as upstream writes it; none where all is covered.
pub fn missing_rights(owned: &[Rule], wanted: &[Rule]) -> BTreeSet<String> {
    let missing = wanted.iter().flat_map(broken_down);
    let missing = missing.filter(|single| !owned.iter().any(|rule| covers(rule, single)));
    compacted(missing.collect()).iter().map(shown).collect()
}

/// A rule as rules of one verb on one thing each.
fn broken_down(rule: &Rule) -> Vec<Rule> {
    let mut single = Vec::new();
    let one = |text: &Str| vec![text.clone()];
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                let base = Rule {
                    verbs: one(verb),
                    api_groups: one(group),
                    resources: one(resource),
                    ..Rule::default()
                };
                if rule.resource_names.is_empty() {
                    single.push(base);
                    continue;
                }
                let named = rule.resource_names.iter();
                single.extend(named.map(|n| Rule { resource_names: one(n), ..base.clone() }));
            }
        }
    }
    for path in &rule.paths {
        let verbs = rule.verbs.iter();
        single.extend(verbs.map(|v| Rule { verbs: one(v), paths: one(path), ..Rule::default() }));
    }
    single
}

/// Whether a rule allows what a broken-down one does.
fn covers(rule: &Rule, single: &Rule) -> bool {
    let all = |wanted: &[Str], is_covered: &dyn Fn(&str) -> bool| {
        wanted.iter().all(|text| is_covered(text.as_str()))
    };
    let names = &rule.resource_names;
    let unnamed = names.is_empty();
    all(&single.verbs, &|verb| has_or_all(&rule.verbs, verb))
        && all(&single.api_groups, &|group| has_or_all(&rule.api_groups, group))
        && all(&single.resources, &|resource| covers_resource(&rule.resources, resource))
        && all(&single.paths, &|path| rule.paths.iter().any(|owned| path_matches(owned, path)))
        && (unnamed
            || !single.resource_names.is_empty()
                && all(&single.resource_names, &|name| has(names, name)))
}

fn covers_resource(owned: &[Str], resource: &str) -> bool {
    has_or_all(owned, resource)
        || resource.split_once('/').is_some_and(|(_, part)| {
            owned.iter().any(|owned| owned.strip_prefix("*/").is_some_and(|p| p == part))
        })
}

/// Puts rules on one resource that differ in their verbs together.
fn compacted(rules: Vec<Rule>) -> Vec<Rule> {
    let mut compacted: Vec<Rule> = Vec::new();
    for mut rule in rules {
        let is_simple = rule.resource_names.is_empty() && rule.paths.is_empty();
        let same = compacted.iter_mut().find(|other| {
            is_simple
                && other.resource_names.is_empty()
                && other.paths.is_empty()
                && other.api_groups == rule.api_groups
                && other.resources == rule.resources
        });
        match same {
            Some(other) => other.verbs.append(&mut rule.verbs),
            None => compacted.push(rule),
        }
    }
    compacted
}

fn shown(rule: &Rule) -> String {
    let parts = [
        ("APIGroups", &rule.api_groups),
        ("Resources", &rule.resources),
        ("NonResourceURLs", &rule.paths),
        ("ResourceNames", &rule.resource_names),
        ("Verbs", &rule.verbs),
    ];
    let mut text = String::from("{");
    for (name, list) in parts.into_iter().filter(|(_, list)| !list.is_empty()) {
        if text.len() > 1 {
            text.push_str(", ");
        }
        let _ = write!(text, "{name}:{}", quoted_list(list)); // writing to a String cannot fail
    }
    text.push('}');
    text
}

/// A list of texts as Go's `%q` writes it.
pub fn quoted_list<S: AsRef<str>>(list: &[S]) -> String {
    let quoted: Vec<String> = list.iter().map(|text| quote(text.as_ref())).collect();
    format!("[{}]", quoted.join(" "))
}

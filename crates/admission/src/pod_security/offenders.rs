//! The pod and the containers that violate a check, and their wording in messages.

use std::collections::BTreeSet;
use std::fmt;

use pintle_value::{Str, Value};

use crate::pods::items;

/// Whether the pod itself violates a check, the containers that do, and the forbidden values that
/// they set.
#[derive(Default)]
pub(super) struct Offenders<'a> {
    pub(super) pod: bool,
    pub(super) containers: Vec<&'a str>,
    pub(super) values: Values,
}

pub(super) type Values = BTreeSet<Str>;

/// Returns the containers for which `offends` is true, with the forbidden values that it adds to
/// the set; `None` if there are none.
pub(super) fn containers_that<'a>(
    pod: &'a Value,
    mut offends: impl FnMut(&'a Value, &mut Values) -> bool,
) -> Option<Offenders<'a>> {
    let mut found = Offenders::default();
    for container in containers(pod) {
        if offends(container, &mut found.values) {
            found.containers.push(name(container));
        }
    }
    (!found.containers.is_empty()).then_some(found)
}

/// Like `containers_that`, and also calls `offends` with the pod's spec, which has a security
/// context like a container.
pub(super) fn setters_that<'a>(
    pod: &'a Value,
    mut offends: impl FnMut(&'a Value, &mut Values) -> bool,
) -> Option<Offenders<'a>> {
    let mut values = Values::new();
    let is_pod_offending = pod.get("spec").is_some_and(|spec| offends(spec, &mut values));
    let mut found = containers_that(pod, offends).unwrap_or_default();
    found.pod = is_pod_offending;
    found.values.append(&mut values);
    (is_pod_offending || !found.containers.is_empty()).then_some(found)
}

impl Offenders<'_> {
    pub(super) fn values(&self) -> String {
        quoted(self.values.iter().map(Str::as_str))
    }
}

/// Writes `pod and containers "a", "b"`.
impl fmt::Display for Offenders<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pod {
            f.write_str(if self.containers.is_empty() { "pod" } else { "pod and " })?;
        }
        if self.containers.is_empty() {
            return Ok(());
        }
        f.write_str(&named("container", &self.containers))
    }
}

/// Returns `containers "a", "b"`.
pub(super) fn named(what: &str, names: &[&str]) -> String {
    format!("{} {}", counted(what, names.len()), quoted(names.iter().copied()))
}

pub(super) fn counted(what: &str, count: usize) -> String {
    if count == 1 { what.to_owned() } else { format!("{what}s") }
}

/// Quotes and joins texts, without escaping, as upstream's `joinQuote` does.
pub(super) fn quoted<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let items: Vec<&str> = items.into_iter().collect();
    if items.is_empty() { String::new() } else { format!("\"{}\"", items.join("\", \"")) }
}

pub(super) fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    lists.into_iter().flat_map(|list| items(pod, &["spec", list]))
}

pub(super) fn name(of: &Value) -> &str {
    of.str_at(&["name"]).unwrap_or_default()
}

/// Returns the value at a path; `None` for `null`.
pub(super) fn given<'a>(at: &'a Value, path: &[&str]) -> Option<&'a Value> {
    at.at(path).filter(|value| !value.is_null())
}

pub(super) fn is_true(at: &Value, path: &[&str]) -> bool {
    at.at(path).and_then(Value::as_bool) == Some(true)
}

//! The defaults that LimitRanges set for the resources of a pod's containers.
//!
//! Their number is a product, of the containers and of the names with defaults. So each name is
//! looked up once in each container, whatever the number of ranges, and there is a limit for what
//! is added.

use std::collections::HashSet;

use pintle_meta::object;
use pintle_value::{Map, Str, Value};

use super::Limit;

/// The annotation that lists the defaults that were set.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// The total size of annotations that validation allows.
pub(super) const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

/// The size of the lists of all ranges at which no more defaults are set. Each range replaces the
/// annotation, and one with a longer list than [`ANNOTATIONS_BYTES_MAX`] makes a pod invalid.
const LISTS_BYTES_MAX: usize = 4 * ANNOTATIONS_BYTES_MAX;

/// The ranges have so many defaults for the pod that their list exceeds the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMany;

/// Sets the defaults of the ranges of a namespace, one after the other.
#[derive(Default)]
pub(super) struct Defaults<'r> {
    /// The names whose limits, and those whose requests, are set in all containers.
    set: [HashSet<&'r str>; 2],
    /// The size of the lists of all ranges.
    bytes: usize,
}

impl<'r> Defaults<'r> {
    /// Sets missing resources of containers, and annotates the pod.
    pub(super) fn set(&mut self, pod: &mut Value, range: &'r [Limit]) -> Result<(), TooMany> {
        let limits = new(range, |limit| &limit.default, &mut self.set[0]);
        let requests = new(range, |limit| &limit.default_request, &mut self.set[1]);
        if limits.is_empty() && requests.is_empty() {
            return Ok(());
        }
        let mut notes = Vec::new();
        for (member, kind) in [("containers", "container"), ("initContainers", "init container")] {
            let containers = pod.object_entry("spec").get_mut(member).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                let limits = add(container, "limits", &limits);
                let requests = add(container, "requests", &requests);
                tidy(container);
                let name = container.str_at(&["name"]).unwrap_or_default();
                for (names, what) in [(requests, "request"), (limits, "limit")] {
                    if !names.is_empty() {
                        let note = format!("{names} {what} for {kind} {name}");
                        self.bytes += note.len();
                        notes.push(note);
                    }
                }
                if self.bytes > LISTS_BYTES_MAX {
                    return Err(TooMany);
                }
            }
        }
        if !notes.is_empty() {
            let annotations = object::metadata_mut(pod).entry_object("annotations");
            annotations.insert(ANNOTATION, format!("LimitRanger plugin set: {}", notes.join("; ")));
        }
        Ok(())
    }
}

/// The defaults of a range for containers, of names that are not in `set`; adds them to it.
fn new<'r>(
    range: &'r [Limit],
    of: fn(&Limit) -> &Map,
    set: &mut HashSet<&'r str>,
) -> Vec<(&'r Str, &'r Value)> {
    let of_containers = range.iter().filter(|limit| limit.of == "Container");
    let all = of_containers.flat_map(|limit| of(limit).iter());
    all.filter(|(name, _)| set.insert(name.as_str())).collect()
}

/// Adds missing defaults to a part of a container's resources. Returns their names, sorted.
fn add(container: &mut Value, part: &str, defaults: &[(&Str, &Value)]) -> String {
    if defaults.is_empty() {
        return String::new();
    }
    let known = container.object_entry("resources").entry_object(part);
    let mut names = Vec::new();
    for (name, amount) in defaults {
        if !known.contains_key(name) {
            known.insert((*name).clone(), (*amount).clone());
            names.push(name.as_str());
        }
    }
    names.sort_unstable();
    names.join(", ")
}

/// Removes empty maps from the resources of a container.
fn tidy(container: &mut Value) {
    let resources = container.object_entry("resources");
    resources.retain(|_, value| !value.as_object().is_some_and(Map::is_empty));
}

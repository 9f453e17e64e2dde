//! Removed versions: versions that v1.36 no longer serves and that `--runtime-config` can enable
//! (MIG-01 … MIG-45).
//!
//! A row has a version, with its group, and the current resource of its objects. Only the form, the
//! defaults and looser rules are the version's own: the objects are in the current resource's
//! collection. `pintle_schema::with_removed` has the types; it parses them when the first row is
//! needed.

mod alphas;
mod apps;
mod autoscaling;
mod certificates;
mod extension;
mod flowcontrol;
mod networking;
mod others;
mod pod_security;
mod presets;
mod rbac;
mod reviews;

use pintle_meta::field::Errors;
use pintle_value::{Map, Value};

use crate::{
    deprecation::Deprecated,
    generated::{self, Resource},
    groups,
    kind::{Form, Kind},
    strategy::Strategy,
};

/// A resource in a removed version.
pub(crate) struct Removed {
    /// The API group of that version.
    pub group: &'static str,
    /// The name in URLs, then and now.
    pub resource: &'static str,
    /// The type of its objects in that version.
    pub type_name: &'static str,
    /// The group and version of the current resource; for a resource without one, its last version.
    pub today: (&'static str, &'static str),
    /// The version, with its conversions to and from the stored form.
    pub form: Form,
    /// Whether converted objects are adjusted to their type; otherwise the conversions do that.
    pub conforms: bool,
    /// The minor releases of Kubernetes 1 that deprecated and removed the version.
    pub life: (u32, u32),
    /// The replacement in the warning; empty if upstream names none.
    pub replacement: &'static str,
    /// Derives the strategy from the current resource's.
    pub strategy: fn(&Strategy) -> Strategy,
}

/// A row of a version with the current form, defaults and rules: the group and version, the package
/// of its types, the names of the resource and the kind, the current resource, and the two
/// releases.
macro_rules! same {
    (
        $group:literal / $version:literal, $package:literal, $resource:literal, $kind:literal,
        $today:literal / $now:literal, $since:literal .. $until:literal
    ) => {
        crate::removed::Removed {
            group: $group,
            resource: $resource,
            type_name: concat!("io.k8s.api.", $package, ".", $version, ".", $kind),
            today: ($today, $now),
            form: crate::conversion::renamed!(
                $version,
                concat!($group, "/", $version) => concat!($today, "/", $now)
            ),
            conforms: true,
            life: ($since, $until),
            replacement: concat!($today, "/", $now, " ", $kind),
            strategy: Clone::clone,
        }
    };
}
use same;

/// The rows, by the group of the current resource.
const ROWS: &[&[Removed]] = &[
    alphas::ROWS,
    apps::ROWS,
    autoscaling::ROWS,
    certificates::ROWS,
    extension::ROWS,
    flowcontrol::ROWS,
    networking::ROWS,
    others::ROWS,
    pod_security::ROWS,
    presets::ROWS,
    rbac::ROWS,
    reviews::ROWS,
];

/// A resource that v1.36 has in no version: the discovery of its last version, and its strategy.
pub(crate) struct Gone {
    pub resource: Resource,
    pub kind: Kind,
}

const GONE: &[Gone] = &[pod_security::POLICIES, presets::PRESETS, presets::SINKS];

/// Every row.
pub(crate) fn all() -> impl Iterator<Item = &'static Removed> {
    ROWS.iter().copied().flatten()
}

impl Removed {
    /// The current resource of the objects, or the last one if there is no current one, and its
    /// behaviour.
    pub(crate) fn latest(&self) -> Option<(&'static Resource, &'static Kind)> {
        let (group, version) = self.today;
        let is_it = |row: &Resource| {
            (row.group, row.version, row.plural) == (group, version, self.resource)
        };
        if let Some(row) = generated::resources().iter().find(|row| is_it(row)) {
            return Some((row, groups::find(group, self.resource)?));
        }
        let gone = GONE.iter().find(|gone| is_it(&gone.resource))?;
        Some((&gone.resource, &gone.kind))
    }

    /// True if this is the last version of the resource, in which its objects are stored.
    pub(crate) fn is_last(&self) -> bool {
        self.today == (self.group, self.form.version)
    }

    /// The deprecation, for the warning.
    pub(crate) fn deprecated(&self) -> Deprecated {
        Deprecated {
            group: self.group,
            version: self.form.version,
            resource: self.resource,
            since: self.life.0,
            removed: Some(self.life.1),
            replacement: self.replacement,
        }
    }
}

/// Removes an annotation and returns its value, which is that of a member that other versions lack.
fn take_annotation(object: &mut Value, name: &str) -> Option<Value> {
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    let annotations = metadata.get_mut("annotations")?.as_object_mut()?;
    let value = annotations.remove(name);
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    value
}

fn annotate(object: &mut Value, name: &'static str, value: String) {
    object.object_entry("metadata").entry_object("annotations").insert(name, value);
}

/// Validates by the current rules, without the errors that `forgives` selects by field and
/// message.
fn lenient(
    (group, resource): (&str, &str),
    new: &Value,
    old: Option<&Value>,
    forgives: fn(&str, &str) -> bool,
) -> Errors {
    let today = groups::find(group, resource).map(|kind| kind.strategy.validate);
    let errors = today.map(|validate| validate(new, old)).unwrap_or_default();
    errors.into_iter().filter(|error| !forgives(&error.field, &error.detail)).collect()
}

/// The members of an object at a path; missing objects are created.
fn members_at<'v>(object: &'v mut Value, path: &[&'static str]) -> &'v mut Map {
    path.iter().fold(object.make_object(), |at, name| at.entry_object(name))
}

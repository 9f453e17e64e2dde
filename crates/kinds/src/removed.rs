//! Versions that v1.36 serves no longer, and that Pintle serves where `--runtime-config` asks for them
//! (MIG-01 … MIG-45).
//!
//! A row says in which version, group included, an object had another form, and which resource it is
//! today. Everything but the form, the defaults and what was less strict is that resource's: the objects
//! are the same, in one collection. The types are in `pintle_schema::with_removed`, which is made when
//! the first row is asked for.

mod apps;
mod autoscaling;
mod extension;
mod flowcontrol;
mod networking;
mod others;
mod rbac;

use pintle_meta::field::Errors;
use pintle_value::{Map, Value};

use crate::{
    deprecation::Deprecated,
    generated::{self, Resource},
    groups,
    kind::Form,
    strategy::Strategy,
};

/// A resource in a version that is served no longer.
pub(crate) struct Removed {
    /// The API group of that version.
    pub group: &'static str,
    /// The name in URLs, then and now.
    pub resource: &'static str,
    /// The type of its objects in that version.
    pub type_name: &'static str,
    /// The group and version of the resource that its objects are today.
    pub today: (&'static str, &'static str),
    /// The version, and how its objects become those of the stored form.
    pub form: Form,
    /// The minor release of Kubernetes 1 that deprecated it, and the one that had it no longer.
    pub life: (u32, u32),
    /// What clients are told to use; empty where upstream names nothing.
    pub replacement: &'static str,
    /// How its objects behave, given how today's do.
    pub strategy: fn(&Strategy) -> Strategy,
}

/// A row of a version that has today's form, defaults and rules: the group and version, the package of its
/// types, the names of the resource and the kind, what the objects are today, and the two releases.
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
            life: ($since, $until),
            replacement: concat!($today, "/", $now, " ", $kind),
            strategy: Clone::clone,
        }
    };
}
use same;

/// The rows, by what the objects are today.
const ROWS: &[&[Removed]] = &[
    apps::ROWS,
    autoscaling::ROWS,
    extension::ROWS,
    flowcontrol::ROWS,
    networking::ROWS,
    others::ROWS,
    rbac::ROWS,
];

/// Every row.
pub(crate) fn all() -> impl Iterator<Item = &'static Removed> {
    ROWS.iter().copied().flatten()
}

impl Removed {
    /// The row of the resource that the objects are today.
    pub(crate) fn resource_today(&self) -> Option<&'static Resource> {
        let (group, version) = self.today;
        let mut rows = generated::resources().iter();
        rows.find(|row| (row.group, row.version, row.plural) == (group, version, self.resource))
    }

    /// What a client that uses the version should hear.
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

/// Moves an annotation into a member: what versions without the member keep of it.
fn annotation_taken(object: &mut Value, name: &str) -> Option<Value> {
    let metadata = object.get_mut("metadata")?.as_object_mut()?;
    let annotations = metadata.get_mut("annotations")?.as_object_mut()?;
    let taken = annotations.remove(name);
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    taken
}

fn annotate(object: &mut Value, name: &'static str, value: String) {
    object.object_entry("metadata").entry_object("annotations").insert(name, value);
}

/// The rules that a resource has today, but for those that `forgives` names by their field and words.
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

/// The members of an object at a path, made where they are not.
fn members_at<'v>(object: &'v mut Value, path: &[&'static str]) -> &'v mut Map {
    path.iter().fold(object.make_object(), |at, name| at.entry_object(name))
}

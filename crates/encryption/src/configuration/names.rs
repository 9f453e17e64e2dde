//! The resource names of a rule.

use std::collections::{BTreeMap, BTreeSet};

use pintle_meta::field::{self, Errors};
use pintle_value::{Path, Value};

use crate::GroupResource;
use crate::resource::ANY;

/// Resources that upstream stores without a REST API.
const WITHOUT_API: [&str; 3] =
    ["apiserveripinfo", "serviceipallocations", "servicenodeportallocations"];

/// Reports resources of one rule that are equal or cover each other.
pub(super) fn check_overlap(resources: &[String], at: &Path, errors: &mut Errors) {
    let all: Vec<_> = resources.iter().map(|name| GroupResource::parse(name)).collect();
    let mut refuse = |why: &str| {
        let shown = Value::Array(resources.iter().map(|name| name.as_str().into()).collect());
        errors.push(field::Error::invalid(at, &shown, why));
    };
    if all.iter().collect::<BTreeSet<_>>().len() < all.len() {
        refuse("the same resource cannot be specified multiple times");
    }
    let mut by_group: BTreeMap<&str, usize> = BTreeMap::new();
    all.iter().for_each(|one| *by_group.entry(&one.group).or_default() += 1);
    let covers_another = |one: &GroupResource| {
        one.resource == ANY && by_group[one.group.as_str()] > 1
            || *one == GroupResource::any() && all.len() > 1
    };
    if all.iter().any(covers_another) {
        refuse(
            "using overlapping resources such as 'secrets' and '*.' in the same resource list is not \
             allowed as they will be masked",
        );
    }
}

/// Reports names that match no stored resource, and resources that cannot be encrypted.
pub(super) fn check_each(resources: &[String], at: &Path, errors: &mut Errors) {
    for (index, name) in resources.iter().enumerate() {
        if let Some(why) = problem(name) {
            errors.push(field::Error::invalid(&at.index(index), &name.as_str().into(), why));
        }
    }
}

fn problem(name: &str) -> Option<&'static str> {
    let GroupResource { group, resource } = GroupResource::parse(name);
    if name.to_lowercase() != name {
        return Some("resource name should not contain capital letters");
    }
    if name == ANY {
        return Some(
            "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources",
        );
    }
    if WITHOUT_API.contains(&name) {
        return Some("resources which do not have REST API/s cannot be encrypted");
    }
    match &*group {
        "events.k8s.io" => Some(
            "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' \
             instead in the config file",
        ),
        "extensions" => {
            Some("'extensions' group has been removed and cannot be used for encryption")
        }
        ANY if resource != ANY => {
            Some("encrypting the same resource across groups is not supported")
        }
        _ => None,
    }
}

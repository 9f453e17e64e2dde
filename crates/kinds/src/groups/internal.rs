//! `internal.apiserver.k8s.io`: off by default.

use pintle_meta::names;
use pintle_registry::NameRule;

use crate::{
    kind::{Kind, kind},
    strategy::{STATUS_ALONE, Strategy, WITH_STATUS},
};

pub(crate) const KINDS: &[Kind] =
    &[kind("internal.apiserver.k8s.io", "storageversions", STORAGE_VERSION)];

const STORAGE_VERSION: Strategy = Strategy {
    owned: STATUS_ALONE,
    unconditional_update: false,
    name: NameRule::Custom(group_and_resource),
    ..WITH_STATUS
};

/// `<group>.<resource>`
fn group_and_resource(name: &str, _prefix: bool) -> Vec<String> {
    let Some((group, resource)) = name.rsplit_once('.') else {
        return vec!["name must be in the form of <group>.<resource>".to_owned()];
    };
    let mut wrong = names::dns1123_subdomain(group);
    wrong.extend(names::dns1035_label(resource));
    wrong
}

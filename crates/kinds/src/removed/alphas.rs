//! Alpha versions of Kubernetes 1.31 and later, each of which a later version replaced after a few
//! releases (upstream: `pkg/apis/resource/v1alpha3/conversion.go` of v1.33).
//!
//! Upstream drops such objects. Pintle converts them to the replacement, without the members that
//! only one of the two versions has.

use pintle_value::{Map, Value};

use super::{Removed, members_at, same};
use crate::{
    conversion::{device, rename, set_api_version},
    kind::Form,
};

pub(super) const ROWS: &[Removed] = &[
    same!(
        "certificates.k8s.io" / "v1alpha1",
        "certificates",
        "podcertificaterequests",
        "PodCertificateRequest",
        "certificates.k8s.io" / "v1beta1",
        35..35
    ),
    same!(
        "resource.k8s.io" / "v1alpha3",
        "resource",
        "deviceclasses",
        "DeviceClass",
        "resource.k8s.io" / "v1",
        34..34
    ),
    Removed {
        form: Form {
            version: "v1alpha3",
            to_stored: device::claim_to_v1,
            from_stored: |claim| {
                device::claim_from_v1(claim);
                set_api_version(claim, RESOURCE_ALPHA);
            },
        },
        ..same!(
            "resource.k8s.io" / "v1alpha3",
            "resource",
            "resourceclaims",
            "ResourceClaim",
            "resource.k8s.io" / "v1",
            34..34
        )
    },
    Removed {
        form: Form {
            version: "v1alpha3",
            to_stored: device::template_to_v1,
            from_stored: |template| {
                device::template_from_v1(template);
                set_api_version(template, RESOURCE_ALPHA);
            },
        },
        ..same!(
            "resource.k8s.io" / "v1alpha3",
            "resource",
            "resourceclaimtemplates",
            "ResourceClaimTemplate",
            "resource.k8s.io" / "v1",
            34..34
        )
    },
    Removed {
        form: Form { version: "v1alpha3", to_stored: slice_to_v1, from_stored: slice_from_v1 },
        ..same!(
            "resource.k8s.io" / "v1alpha3",
            "resource",
            "resourceslices",
            "ResourceSlice",
            "resource.k8s.io" / "v1",
            34..34
        )
    },
    Removed {
        form: Form {
            version: "v1alpha1",
            to_stored: workload_to_v1alpha2,
            from_stored: workload_to_v1alpha1,
        },
        ..same!(
            "scheduling.k8s.io" / "v1alpha1",
            "scheduling",
            "workloads",
            "Workload",
            "scheduling.k8s.io" / "v1alpha2",
            36..36
        )
    },
    Removed {
        form: Form {
            version: "v1alpha1",
            to_stored: migration_to_beta,
            from_stored: migration_to_alpha,
        },
        ..same!(
            "storagemigration.k8s.io" / "v1alpha1",
            "storagemigration",
            "storageversionmigrations",
            "StorageVersionMigration",
            "storagemigration.k8s.io" / "v1beta1",
            33..35
        )
    },
];

const RESOURCE_ALPHA: &str = "resource.k8s.io/v1alpha3";

/// In v1alpha3 a capacity is its quantity; later versions have an object with the quantity as
/// `value`.
fn slice_to_v1(slice: &mut Value) {
    each_capacity(slice, |capacity| {
        *capacity = Value::from([("value", std::mem::take(capacity))]);
    });
    device::slice_to_v1(slice);
}

fn slice_from_v1(slice: &mut Value) {
    device::slice_from_v1(slice);
    set_api_version(slice, RESOURCE_ALPHA);
    each_capacity(slice, |capacity| {
        let value = capacity.as_object_mut().and_then(|capacity| capacity.remove("value"));
        *capacity = value.unwrap_or_default();
    });
}

fn each_capacity(slice: &mut Value, change: fn(&mut Value)) {
    for device in items(slice, &["spec", "devices"]) {
        let capacities = device.get_mut("basic").and_then(|basic| basic.get_mut("capacity"));
        let capacities = capacities.and_then(Value::as_object_mut);
        let members = capacities.into_iter().flat_map(Map::iter_mut);
        members.for_each(|(_, capacity)| change(capacity));
    }
}

fn workload_to_v1alpha2(workload: &mut Value) {
    set_api_version(workload, "scheduling.k8s.io/v1alpha2");
    rename(members_at(workload, &["spec"]), [("podGroups", "podGroupTemplates")]);
    for group in items(workload, &["spec", "podGroupTemplates"]) {
        rename(group.make_object(), [("policy", "schedulingPolicy")]);
    }
}

fn workload_to_v1alpha1(workload: &mut Value) {
    set_api_version(workload, "scheduling.k8s.io/v1alpha1");
    rename(members_at(workload, &["spec"]), [("podGroupTemplates", "podGroups")]);
    for group in items(workload, &["spec", "podGroups"]) {
        rename(group.make_object(), [("schedulingPolicy", "policy")]);
    }
}

/// v1beta1 names no version of the resource: a migration rewrites the objects in all versions.
fn migration_to_beta(migration: &mut Value) {
    set_api_version(migration, "storagemigration.k8s.io/v1beta1");
    members_at(migration, &["spec"]).remove("continueToken");
    members_at(migration, &["spec", "resource"]).remove("version");
    for condition in items(migration, &["status", "conditions"]) {
        rename(condition.make_object(), [("lastUpdateTime", "lastTransitionTime")]);
    }
}

fn migration_to_alpha(migration: &mut Value) {
    set_api_version(migration, "storagemigration.k8s.io/v1alpha1");
    for condition in items(migration, &["status", "conditions"]) {
        rename(condition.make_object(), [("lastTransitionTime", "lastUpdateTime")]);
    }
}

/// The items of a list at a path; none if there is no list.
fn items<'v>(object: &'v mut Value, path: &[&str]) -> impl Iterator<Item = &'v mut Value> {
    let list = path.iter().try_fold(object, |at, name| at.get_mut(name));
    list.and_then(Value::as_array_mut).into_iter().flatten()
}

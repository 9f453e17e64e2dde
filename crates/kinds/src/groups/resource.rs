//! `resource.k8s.io`: dynamic resource allocation. Rules are those of the stored form, `v1`.

mod claims;
mod classes;
mod expressions;
mod named;
mod policies;
mod slices;
mod status;

use pintle_meta::{names, time};
use pintle_registry::{NameRule, request::Now};
use pintle_value::Value;

use crate::{
    checks::{frozen, same, unchanged},
    conversion::{device, renamed},
    defaults::{
        Condition::{Filled, Is},
        Constant::{Int, Text},
        Defaults, Row,
        Row::{At, Each, Empty, When},
        set,
    },
    field::{Errors, Field},
    kind::{Form, Kind, kind},
    strategy::{
        AS_UPDATE, COUNTED, COUNTED_WITH_STATUS, PLAIN, Part, STATUS_ALONE, Strategy, WITH_STATUS,
        part, selectable,
    },
};

const RESOURCE: &str = "resource.k8s.io";

const BETA2: Form = renamed!("v1beta2", "resource.k8s.io/v1beta2" => "resource.k8s.io/v1");
const BETA1: Form = renamed!("v1beta1", "resource.k8s.io/v1beta1" => "resource.k8s.io/v1");

pub(crate) const KINDS: &[Kind] = &[
    Kind { conversions: &[BETA2, BETA1], ..kind(RESOURCE, "deviceclasses", CLASS) },
    Kind {
        conversions: &[renamed!(
            "v1beta2",
            "resource.k8s.io/v1beta2" => "resource.k8s.io/v1alpha3"
        )],
        ..kind(RESOURCE, "devicetaintrules", TAINT_RULE)
    },
    Kind {
        conversions: &[
            BETA2,
            Form {
                version: "v1beta1",
                to_stored: device::claim_to_v1,
                from_stored: device::claim_from_v1,
            },
        ],
        ..kind(RESOURCE, "resourceclaims", CLAIM)
    },
    Kind {
        conversions: &[
            BETA2,
            Form {
                version: "v1beta1",
                to_stored: device::template_to_v1,
                from_stored: device::template_from_v1,
            },
        ],
        ..kind(RESOURCE, "resourceclaimtemplates", CLAIM_TEMPLATE)
    },
    kind(RESOURCE, "resourcepoolstatusrequests", POOL_REQUEST),
    Kind {
        conversions: &[
            BETA2,
            Form {
                version: "v1beta1",
                to_stored: device::slice_to_v1,
                from_stored: device::slice_from_v1,
            },
        ],
        ..kind(RESOURCE, "resourceslices", SLICE)
    },
];

const CLASS: Strategy = Strategy {
    name: NameRule::Custom(names::long_name_rule),
    delete_returns_object: true,
    validate: classes::validate,
    is_expensive: true,
    declared_rules: false,
    ..COUNTED
};

const TAINT_RULE: Strategy = Strategy {
    owned: STATUS_ALONE,
    delete_returns_object: true,
    note_time: |new, old, now| {
        let taint = |rule: &Value| rule.at(&["spec", "taint"]).cloned();
        let stored = old.and_then(taint).unwrap_or_default();
        if let Some(taint) = new.get_mut("spec").and_then(|spec| spec.get_mut("taint")) {
            let is_other = old.is_some() && stored.get("effect") != taint.get("effect");
            if is_other && stored.get("timeAdded") == taint.get("timeAdded") {
                taint.make_object().remove("timeAdded");
            }
            note_taint(taint, now);
        }
    },
    validate: |new, old| classes::validate_taint_rule(&Field::root(new), old),
    declared_rules: false,
    parts: &[Part { validate: |new, _| classes::validate_taint_status(new), ..part("status") }],
    ..COUNTED_WITH_STATUS
};

/// Sets the time of a device taint if it is absent.
fn note_taint(taint: &mut Value, now: Now) {
    if taint.get("timeAdded").is_none_or(Value::is_null) {
        let now = Value::from(time::format(now.unix_seconds() * time::SECOND));
        taint.make_object().insert("timeAdded", now);
    }
}

const CLAIM: Strategy = Strategy {
    owned: STATUS_ALONE,
    delete_returns_object: true,
    default: |object| set(object, CLAIM_DEFAULTS),
    validate: |new, old| match old {
        None => claims::validate(&Field::root(new).get("spec")),
        Some(_) => claims::spec_unchanged(new, old, &["spec", "devices"]),
    },
    is_expensive: true,
    declared_rules: false,
    parts: &[Part {
        prepare: status::drop_deallocated,
        validate: status::validate,
        ..part("status")
    }],
    ..WITH_STATUS
};

const CLAIM_TEMPLATE: Strategy = Strategy {
    delete_returns_object: true,
    default: |object| set(object, &[At("spec", CLAIM_DEFAULTS)]),
    validate: |new, old| {
        let mut errors = claims::validate_template(&Field::root(new).get("spec"));
        errors.extend(claims::spec_unchanged(new, old, &["spec", "spec", "devices"]));
        errors
    },
    is_expensive: true,
    declared_rules: false,
    ..PLAIN
};

const CLAIM_DEFAULTS: Defaults = &[At("spec", &[At("devices", &[Each("requests", REQUEST)])])];

/// The defaults of a request of any version: in `v1beta1` the request itself has the members that
/// `exactly` has in other versions.
const REQUEST: Defaults = &[
    At("exactly", ALLOCATION),
    Each("firstAvailable", ALLOCATION),
    When(Filled("deviceClassName"), ALLOCATION),
];

const ALLOCATION: Defaults = &[
    Empty("allocationMode", Text("ExactCount")),
    When(Is("allocationMode", "ExactCount"), &[Empty("count", Int(1))]),
    TOLERATIONS,
];

const TOLERATIONS: Row = Each("tolerations", &[Empty("operator", Text("Equal"))]);

const POOL_REQUEST: Strategy = Strategy {
    owned: STATUS_ALONE,
    unconditional_update: false,
    delete_returns_object: true,
    // The status of a request is set once.
    parts: &[Part {
        validate: |new, old| match same(old.get("status"), None) {
            true => Errors::new(),
            false => unchanged(new, Some(old), &[frozen(&["status"])]),
        },
        ..part("status")
    }],
    ..WITH_STATUS
};

const SLICE: Strategy = Strategy {
    metadata: AS_UPDATE,
    delete_returns_object: true,
    unknown_label: Some(|version, label| {
        format!("field label not supported for {version}, Kind=ResourceSlice: {label}")
    }),
    fields: &[
        selectable!(selective "spec.nodeName" at "spec"."nodeName"),
        selectable!("spec.driver" at "spec"."driver"),
    ],
    note_time: |slice, _, now| {
        let devices = slice.get_mut("spec").and_then(|spec| spec.get_mut("devices"));
        for device in devices.and_then(Value::as_array_mut).into_iter().flatten() {
            let taints = device.get_mut("taints").and_then(Value::as_array_mut);
            taints.into_iter().flatten().for_each(|taint| note_taint(taint, now));
        }
    },
    validate: slices::validate,
    declared_rules: false,
    warnings: |new, _| slices::warn(&Field::root(new)),
    ..COUNTED
};

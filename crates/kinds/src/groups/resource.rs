//! `resource.k8s.io`: dynamic resource allocation.

use crate::{
    checks::{frozen, unchanged},
    conversion::{device, renamed},
    defaults::{
        Condition::{Filled, Is},
        Constant::{Int, Text},
        Defaults, Row,
        Row::{At, Each, Empty, When},
        set,
    },
    kind::{Form, Kind, kind},
    strategy::{
        COUNTED, COUNTED_WITH_STATUS, PLAIN, STATUS_ALONE, Strategy, WITH_STATUS, selectable,
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

const CLASS: Strategy = Strategy { delete_returns_object: true, ..COUNTED };

const TAINT_RULE: Strategy =
    Strategy { owned: STATUS_ALONE, delete_returns_object: true, ..COUNTED_WITH_STATUS };

const CLAIM: Strategy = Strategy {
    owned: STATUS_ALONE,
    delete_returns_object: true,
    default: |object| set(object, CLAIM_DEFAULTS),
    ..WITH_STATUS
};

const CLAIM_TEMPLATE: Strategy = Strategy {
    delete_returns_object: true,
    default: |object| set(object, &[At("spec", CLAIM_DEFAULTS)]),
    validate: |new, old| unchanged(new, old, &[frozen(&["spec"])]),
    ..PLAIN
};

const CLAIM_DEFAULTS: Defaults = &[At("spec", &[At("devices", &[Each("requests", REQUEST)])])];

/// A request of any version: `v1beta1` has members of its own where the others have `exactly`.
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
    ..WITH_STATUS
};

const SLICE: Strategy = Strategy {
    delete_returns_object: true,
    fields: &[
        selectable!("spec.nodeName" at "spec"."nodeName"),
        selectable!("spec.driver" at "spec"."driver"),
    ],
    validate: |new, old| {
        let frozen = [
            frozen(&["spec", "nodeName"]),
            frozen(&["spec", "driver"]),
            frozen(&["spec", "pool", "name"]),
        ];
        unchanged(new, old, &frozen)
    },
    ..COUNTED
};

//! HorizontalPodAutoscalers, in v2beta1 and v2beta2 (MIG-45).
//!
//! v2beta2 is v2 without the tolerance of scaling. The annotations of v1 still have the metrics of
//! v2beta1.

use super::{Removed, same};
use crate::{
    conversion::autoscaler::{cpu_default, v2beta1},
    defaults::{
        Constant::{Int, Made},
        Defaults,
        Row::{Empty, In, Unset},
        set,
    },
    groups::autoscaling::BEHAVIOR,
    kind::Form,
    strategy::Strategy,
};

pub(super) const ROWS: &[Removed] = &[
    Removed {
        replacement: "autoscaling/v2beta2 HorizontalPodAutoscaler",
        form: Form { version: "v2beta1", to_stored: v2beta1::to_v2, from_stored: v2beta1::from_v2 },
        strategy: |today| Strategy { default: |object| set(object, BETA1), ..today.clone() },
        ..same!(
            "autoscaling" / "v2beta1",
            "autoscaling",
            "horizontalpodautoscalers",
            "HorizontalPodAutoscaler",
            "autoscaling" / "v2",
            22..25
        )
    },
    Removed {
        replacement: "",
        strategy: |today| Strategy { default: |object| set(object, BETA2), ..today.clone() },
        ..same!(
            "autoscaling" / "v2beta2",
            "autoscaling",
            "horizontalpodautoscalers",
            "HorizontalPodAutoscaler",
            "autoscaling" / "v2",
            22..25
        )
    },
];

const BETA1: Defaults = &[In(
    "spec",
    &[
        Unset("minReplicas", Int(1)),
        Empty("metrics", Made(|| vec![v2beta1::metric(cpu_default())].into())),
    ],
)];

const BETA2: Defaults = &[In(
    "spec",
    &[
        Unset("minReplicas", Int(1)),
        Empty("metrics", Made(|| vec![cpu_default()].into())),
        BEHAVIOR,
    ],
)];

//! `flowcontrol.apiserver.k8s.io/v1`: the validation and defaults of flow schemas and priority
//! levels.

mod mandatory;
mod rules;

use crate::{
    defaults::{
        Constant::Int,
        Defaults,
        Row::{At, Empty, In, Unset},
        set,
    },
    kind::{Kind, kind},
    strategy::{
        AS_NEW, COUNTED_WITH_STATUS, Part, STATUS_ALONE, Strategy, keep_whole_metadata, part,
    },
};

const FLOW_CONTROL: &str = "flowcontrol.apiserver.k8s.io";

pub(crate) const KINDS: &[Kind] = &[
    kind(FLOW_CONTROL, "flowschemas", FLOW_SCHEMA),
    kind(FLOW_CONTROL, "prioritylevelconfigurations", PRIORITY_LEVEL),
];

const FLOW_SCHEMA: Strategy = Strategy {
    metadata: AS_NEW,
    owned: STATUS_ALONE,
    default: |object| set(object, &[In("spec", &[Empty("matchingPrecedence", Int(1000))])]),
    validate: |new, _| rules::validate_schema(new),
    declared_rules: false,
    parts: &[STATUS],
    ..COUNTED_WITH_STATUS
};

/// A status whose writers can change no metadata at all.
const STATUS: Part = Part {
    prepare: keep_whole_metadata,
    validate: |new, _| rules::validate_status(new),
    ..part("status")
};

const PRIORITY_LEVEL: Strategy = Strategy {
    metadata: AS_NEW,
    owned: STATUS_ALONE,
    default: |object| set(object, PRIORITY_LEVEL_DEFAULTS),
    validate: |new, _| rules::validate_level(new),
    declared_rules: false,
    parts: &[STATUS],
    ..COUNTED_WITH_STATUS
};

const PRIORITY_LEVEL_DEFAULTS: Defaults = &[At(
    "spec",
    &[
        At(
            "exempt",
            &[Unset("nominalConcurrencyShares", Int(0)), Unset("lendablePercent", Int(0))],
        ),
        At(
            "limited",
            &[
                Unset("nominalConcurrencyShares", Int(30)),
                Unset("lendablePercent", Int(0)),
                At(
                    "limitResponse",
                    &[At(
                        "queuing",
                        &[
                            Empty("handSize", Int(8)),
                            Empty("queues", Int(64)),
                            Empty("queueLengthLimit", Int(50)),
                        ],
                    )],
                ),
            ],
        ),
    ],
)];

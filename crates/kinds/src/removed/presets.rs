//! PodPresets of `settings.k8s.io/v1alpha1` and AuditSinks of `auditregistration.k8s.io/v1alpha1`.
//! They are stored and validated but have no effect: the admission plugin of the first and the
//! audit backend of the second were removed (upstream: `pkg/apis/{settings,auditregistration}` of
//! v1.15).

use pintle_meta::field::{Error, Errors};
use pintle_value::{Path, Value};

use super::{Gone, Removed, same};
use crate::{
    checks::items,
    defaults::{
        Constant::{EmptyObject, Int},
        Defaults,
        Row::{At, In, Unset},
        set,
    },
    generated::{ALL, Gvk, Resource},
    kind::kind,
    strategy::{COUNTED, PLAIN, Strategy},
};

pub(super) const ROWS: &[Removed] = &[
    Removed {
        replacement: "",
        ..same!(
            "settings.k8s.io" / "v1alpha1",
            "settings",
            "podpresets",
            "PodPreset",
            "settings.k8s.io" / "v1alpha1",
            19..20
        )
    },
    Removed {
        replacement: "",
        ..same!(
            "auditregistration.k8s.io" / "v1alpha1",
            "auditregistration",
            "auditsinks",
            "AuditSink",
            "auditregistration.k8s.io" / "v1alpha1",
            18..19
        )
    },
];

pub(super) const PRESETS: Gone = Gone {
    resource: Resource {
        group: "settings.k8s.io",
        version: "v1alpha1",
        plural: "podpresets",
        singular: "podpreset",
        kind: "PodPreset",
        list_kind: "PodPresetList",
        namespaced: true,
        verbs: ALL,
        short_names: &[],
        categories: &[],
        subresources: &[],
        type_name: "io.k8s.api.settings.v1alpha1.PodPreset",
        storage: Some(Gvk { group: "settings.k8s.io", version: "v1alpha1", kind: "PodPreset" }),
        on: false,
    },
    kind: kind("settings.k8s.io", "podpresets", PRESET),
};

pub(super) const SINKS: Gone = Gone {
    resource: Resource {
        group: "auditregistration.k8s.io",
        version: "v1alpha1",
        plural: "auditsinks",
        singular: "auditsink",
        kind: "AuditSink",
        list_kind: "AuditSinkList",
        namespaced: false,
        verbs: ALL,
        short_names: &[],
        categories: &[],
        subresources: &[],
        type_name: "io.k8s.api.auditregistration.v1alpha1.AuditSink",
        storage: Some(Gvk {
            group: "auditregistration.k8s.io",
            version: "v1alpha1",
            kind: "AuditSink",
        }),
        on: false,
    },
    kind: kind("auditregistration.k8s.io", "auditsinks", SINK),
};

const PRESET: Strategy = Strategy {
    warnings: |_, _| {
        let words = "PodPreset has no effect: no admission plugin applies it; use an admission webhook or a \
                     mutating admission policy";
        vec![words.to_owned()]
    },
    ..PLAIN
};

const SINK: Strategy = Strategy {
    default: |sink| set(sink, DEFAULTS),
    validate: |sink, _| check_sink(sink),
    warnings: |_, _| {
        let words =
            "AuditSink has no effect: no audit backend reads it; use --audit-webhook-config-file";
        vec![words.to_owned()]
    },
    ..COUNTED
};

const DEFAULTS: Defaults = &[In(
    "spec",
    &[In(
        "webhook",
        &[
            Unset("throttle", EmptyObject),
            At("throttle", &[Unset("qps", Int(10)), Unset("burst", Int(15))]),
            At("clientConfig", &[At("service", &[Unset("port", Int(443))])]),
        ],
    )],
)];

const LEVELS: &[&str] = &["None", "Metadata", "Request", "RequestResponse"];
const STAGES: &[&str] = &["Panic", "RequestReceived", "ResponseComplete", "ResponseStarted"];

fn check_sink(sink: &Value) -> Errors {
    let mut errors = Errors::new();
    let policy = Path::new("spec").field("policy");
    let level = sink.str_at(&["spec", "policy", "level"]).unwrap_or_default();
    if level.is_empty() {
        errors.push(Error::required(&policy.field("level"), ""));
    } else if !LEVELS.contains(&level) {
        errors.push(Error::not_supported(&policy.field("level"), &level.into(), LEVELS));
    }
    for (i, stage) in items(sink, &["spec", "policy", "stages"]).iter().enumerate() {
        if !stage.as_str().is_some_and(|stage| STAGES.contains(&stage)) {
            let path = policy.field("stages").index(i);
            errors.push(Error::not_supported(&path, stage, STAGES));
        }
    }
    let webhook = Path::new("spec").field("webhook");
    for member in ["qps", "burst"] {
        let limit = sink.at(&["spec", "webhook", "throttle", member]);
        if let Some(limit) = limit.filter(|limit| limit.as_int().is_some_and(|limit| limit <= 0)) {
            let path = webhook.field("throttle").field(member);
            errors.push(Error::invalid(&path, limit, "must be a positive number"));
        }
    }
    let is_set = |member| sink.at(&["spec", "webhook", "clientConfig", member]).is_some();
    if is_set("url") == is_set("service") {
        let words = "exactly one of url or service is required";
        errors.push(Error::required(&webhook.field("clientConfig"), words));
    }
    errors
}

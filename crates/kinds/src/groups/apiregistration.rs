//! `apiregistration.k8s.io/v1`. Aggregation is yet to come: every APIService is a local one.

use pintle_meta::{field::Error, names, object};
use pintle_registry::NameRule;
use pintle_value::{Path, Value};

use crate::{
    checks::invalid_text,
    defaults::{
        Constant::Int,
        Defaults,
        Row::{At, Unset},
        set,
    },
    kind::{Kind, kind},
    strategy::{STATUS_ALONE, Strategy, WITH_STATUS},
};

pub(crate) const KINDS: &[Kind] = &[kind("apiregistration.k8s.io", "apiservices", API_SERVICE)];

const API_SERVICE: Strategy = Strategy {
    owned: STATUS_ALONE,
    name: NameRule::PathSegment,
    unconditional_update: false,
    default: |object| set(object, DEFAULTS),
    prepare_create: |service| {
        if service.at(&["spec", "service"]).is_none_or(Value::is_null) {
            let available = Value::from([
                ("type", "Available"),
                ("status", "True"),
                ("reason", "Local"),
                ("message", "Local APIServices are always available"),
            ]);
            service.object_entry("status").insert("conditions", vec![available]);
        }
    },
    validate: |new, _| validate(new),
    ..WITH_STATUS
};

const DEFAULTS: Defaults = &[At("spec", &[At("service", &[Unset("port", Int(443))])])];

fn validate(service: &Value) -> Vec<Error> {
    let spec = Path::new("spec");
    let of = |member: &str| service.str_at(&["spec", member]).unwrap_or_default();
    let (group, version) = (of("group"), of("version"));
    let mut errors = Vec::new();
    let required = format!("{version}.{group}");
    if object::name(service) != required {
        let path = Path::new("metadata").field("name");
        let words = format!("must be `spec.version+\".\"+spec.group`: {required:?}");
        errors.push(Error::invalid(&path, &Value::from(object::name(service)), words));
    }
    if !group.is_empty() {
        let wrong = names::dns1123_subdomain(group);
        invalid_text(&spec.field("group"), group, wrong, &mut errors);
    } else if version != "v1" {
        let words = "only v1 may have an empty group and it better be legacy kube";
        errors.push(Error::required(&spec.field("group"), words));
    }
    invalid_text(&spec.field("version"), version, names::dns1035_label(version), &mut errors);
    for (member, max) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1_000)] {
        let priority = service.at(&["spec", member]).and_then(Value::as_int).unwrap_or(0);
        if !(1..=max).contains(&priority) {
            let words = format!("must be positive and less than {max}");
            errors.push(Error::invalid(&spec.field(member), &priority.into(), words));
        }
    }
    errors
}

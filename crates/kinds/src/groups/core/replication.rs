//! ReplicationControllers.

use pintle_meta::{labels::Selector, names};
use pintle_registry::{Dependents, NameRule};
use pintle_value::{Map, Value};

use super::super::workload;
use crate::{
    defaults::{
        Constant::Int,
        Defaults,
        Row::{At, Do, In, Unset},
        is_filled, set,
    },
    field::{Errors, Field},
    pods,
    rules::{
        Rule::{NotNegative, Required},
        Rules, check,
    },
    strategy::{AS_UPDATE, COUNTED_WITH_STATUS, Part, Strategy, count, part, selectable},
};

pub(super) const CONTROLLER: Strategy = Strategy {
    metadata: AS_UPDATE,
    name: NameRule::Custom(names::long_name_rule),
    gated: pods::GATED_TEMPLATE,
    dependents: Dependents::Orphaned,
    fields: &[selectable!("status.replicas" by |controller| {
        count(controller, &["status", "replicas"])
    }, of "status"."replicas")],
    default: |object| set(object, DEFAULTS),
    validate,
    declared_rules: false,
    warnings: |new, old| workload::warn(new, old, workload::TEMPLATE, Some(workload::NAME_WORDS)),
    parts: &[Part {
        validate: |new, old| workload::check_counts(new, old, workload::REPLICA_COUNTS),
        ..part("status")
    }],
    ..COUNTED_WITH_STATUS
};

const DEFAULTS: Defaults = &[
    Do(labels_from_template),
    In("spec", &[Unset("replicas", Int(1)), At("template", pods::POD_TEMPLATE)]),
];

/// A controller without labels or without a selector gets those of its pod template (META-35).
fn labels_from_template(controller: &mut Map) {
    let Some(labels) = pods::template_labels(controller) else { return };
    for (part, member) in [("spec", "selector"), ("metadata", "labels")] {
        let part = controller.entry_object(part);
        if !is_filled(part, member) {
            part.insert(member, labels.clone());
        }
    }
}

const RULES: Rules = &[
    NotNegative("minReadySeconds"),
    Required("selector"),
    Required("replicas"),
    NotNegative("replicas"),
];

fn validate(new: &Value, old: Option<&Value>) -> Errors {
    let object = Field::root(new);
    let spec = object.get("spec");
    let mut errors = Errors::new();
    check(&spec, RULES, &mut errors);
    let template = spec.get("template");
    if !template.is_set() {
        errors.push(template.required(""));
        return errors;
    }
    workload::check_labels(&spec, &Selector::from_map(Some(spec.map("selector"))), &mut errors);
    pods::check_template(&template, workload::old_template(old), &mut errors);
    workload::check_lasting(&spec, "ReplicationController", &mut errors);
    errors
}

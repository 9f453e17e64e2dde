//! ReplicationControllers.

use pintle_meta::{field::Error, labels::Selector};
use pintle_value::{Map, Path, Value};

use crate::{
    checks::{members, one_of, spec_not_negative},
    defaults::{
        Constant::Int,
        Defaults,
        Row::{At, Do, In, Unset},
        is_filled, set,
    },
    pods,
    strategy::{COUNTED_WITH_STATUS, Strategy, count, selectable},
};

pub(super) const CONTROLLER: Strategy = Strategy {
    fields: &[
        selectable!("status.replicas" by |controller| count(controller, &["status", "replicas"])),
    ],
    default: |object| set(object, DEFAULTS),
    validate: |new, _| validate(new),
    ..COUNTED_WITH_STATUS
};

const DEFAULTS: Defaults = &[
    Do(labels_from_template),
    In("spec", &[Unset("replicas", Int(1)), At("template", pods::POD_TEMPLATE)]),
];

/// A controller without labels or without a selector takes those of its pods (META-35).
fn labels_from_template(controller: &mut Map) {
    let Some(labels) = pods::template_labels(controller) else { return };
    for (part, member) in [("spec", "selector"), ("metadata", "labels")] {
        let part = controller.entry_object(part);
        if !is_filled(part, member) {
            part.insert(member, labels.clone());
        }
    }
}

fn validate(controller: &Value) -> Vec<Error> {
    let spec = Path::new("spec");
    let mut errors = Vec::new();
    spec_not_negative(controller, &["minReadySeconds"], &mut errors);
    let selector = members(controller, &["spec", "selector"]);
    if selector.is_empty() {
        errors.push(Error::required(&spec.field("selector"), ""));
    }
    spec_not_negative(controller, &["replicas"], &mut errors);
    let path = spec.field("template");
    let Some(template) = controller.at(&["spec", "template"]).filter(|t| !t.is_null()) else {
        errors.push(Error::required(&path, ""));
        return errors;
    };
    let labels = members(template, &["metadata", "labels"]);
    if !Selector::from_map(Some(selector)).matches_map(Some(labels)) {
        let path = path.field("metadata").field("labels");
        errors.push(Error::invalid(&path, &Value::from(labels.clone()), pods::LABELS_MISMATCH));
    }
    pods::validate_template(template, &path, &mut errors);
    let restart = template.at(&["spec", "restartPolicy"]);
    one_of(restart, &path.field("spec").field("restartPolicy"), &["Always"], &mut errors);
    errors
}

//! PersistentVolumeClaims.

use pintle_meta::{names, quantity::Quantity};
use pintle_value::Value;

use super::volume::{PENDING, pending, warn_of_annotations};
use crate::{
    amounts,
    checks::{IMMUTABLE, same},
    defaults::{Defaults, Row::In, set},
    field::{Errors, Field},
    pods,
    rules::check,
    strategy::{Part, Strategy, WITH_STATUS, part},
};

const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

pub(super) const CLAIM: Strategy = Strategy {
    delete_returns_object: true,
    default: |object| set(object, DEFAULTS),
    prepare_create: |claim| {
        pending(claim);
        settle_sources(claim, None);
    },
    prepare_update: |new, old| settle_sources(new, Some(old)),
    validate: |new, old| {
        let claim = Field::root(new);
        let mut errors = Errors::new();
        check(&claim.get("spec"), pods::CLAIM_RULES, &mut errors);
        if let Some(old) = old {
            check_changes(&claim, old, &mut errors);
        }
        errors
    },
    declared_rules: false,
    warnings: |new, _| {
        let claim = Field::root(new);
        let mut warnings = warn_of_annotations(&claim, 0);
        warnings.extend(pods::warn_of_claim(&claim.get("spec")));
        warnings
    },
    parts: &[Part { validate: |new, _| check_status(&Field::root(new)), ..part("status") }],
    ..WITH_STATUS
};

const DEFAULTS: Defaults = &[PENDING, In("spec", pods::CLAIM_SPEC), pods::CLAIM_STATUS];

/// A claim's data source has two members, and the old one can express less. Each is copied to the
/// other if possible. Data sources in other namespaces are dropped, because their feature is off.
fn settle_sources(claim: &mut Value, old: Option<&Value>) {
    let stored = |member: &str| {
        old.and_then(|old| old.at(&["spec", member])).is_some_and(|value| !value.is_null())
    };
    let Some(spec) = claim.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let is_set = |value: Option<&Value>| value.is_some_and(|value| !value.is_null());
    let is_foreign = |value: Option<&Value>| {
        let namespace = value.and_then(|value| value.str_at(&["namespace"]));
        namespace.is_some_and(|namespace| !namespace.is_empty())
    };
    if is_foreign(spec.get("dataSourceRef")) && !stored("dataSourceRef") {
        spec.remove("dataSourceRef");
    }
    if !stored("dataSource")
        && !stored("dataSourceRef")
        && !is_set(spec.get("dataSourceRef"))
        && !spec.get("dataSource").is_some_and(is_claim_or_snapshot)
    {
        spec.remove("dataSource");
    }
    match (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned()) {
        (Some(source), reference) if !source.is_null() && !is_set(reference.as_ref()) => {
            spec.insert("dataSourceRef", source);
        }
        (source, Some(mut reference))
            if !is_set(source.as_ref())
                && !reference.is_null()
                && !is_foreign(Some(&reference)) =>
        {
            reference.make_object().remove("namespace");
            spec.insert("dataSource", reference);
        }
        _ => {}
    }
}

fn is_claim_or_snapshot(source: &Value) -> bool {
    let of = |member: &str| source.str_at(&[member]).unwrap_or_default();
    matches!(
        (of("kind"), of("apiGroup")),
        ("PersistentVolumeClaim", "") | ("VolumeSnapshot", "snapshot.storage.k8s.io")
    )
}

const FROZEN: &str = "spec is immutable after creation except resources.requests and \
                      volumeAttributesClassName for bound claims";

fn check_changes(claim: &Field<'_>, old: &Value, errors: &mut Errors) {
    let spec = claim.get("spec");
    let (mut new, mut stored) =
        (spec.value().clone(), old.get("spec").cloned().unwrap_or_default());
    keep_class(claim, old, &mut new, errors);
    // A volume is named once.
    if stored.str_at(&["volumeName"]).unwrap_or_default().is_empty() {
        copy("volumeName", &new, &mut stored);
    }
    if claim.at(&["status", "phase"]).text() == "Bound" {
        let size = old.at(&["spec", "resources", "requests", "storage"]);
        if let Some(requests) =
            new.get_mut("resources").and_then(|resources| resources.get_mut("requests"))
        {
            match size {
                Some(size) => _ = requests.make_object().insert("storage", size.clone()),
                None => _ = requests.make_object().remove("storage"),
            }
        }
        copy("volumeAttributesClassName", &stored, &mut new);
    }
    if new != stored {
        let shown = pods::difference("core.PersistentVolumeClaimSpec", &stored, &new);
        errors.push(spec.forbidden(format!("{FROZEN}\n{shown}")));
    }
    let old_claim = Field::root(old);
    let size = spec.at(&["resources", "requests", "storage"]);
    let old_size = old_claim.at(&["spec", "resources", "requests", "storage"]);
    let has = old_claim.at(&["status", "capacity", "storage"]);
    // An absent amount counts as 0.
    let amount = |field: &Field<'_>| amounts::parse(field).unwrap_or(Quantity::ZERO);
    // After a failed expansion the request may be reduced, but must stay above the capacity.
    if amount(&size) < amount(&old_size) && amount(&size) <= amount(&has) {
        errors.push(size.forbidden("field can not be less than status.capacity"));
    }
    check_mode_and_attributes(claim, &old_claim, errors);
}

/// Checks changes of the volume mode and of the attributes class. As in upstream, the path of the
/// mode lacks `spec`.
fn check_mode_and_attributes(claim: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let path = ["spec", "volumeMode"];
    let (mode, old_mode) = (claim.at(&path), old.at(&path));
    if !same(mode.some(), old_mode.some()) {
        errors.push(claim.get("volumeMode").of(mode.value()).invalid(IMMUTABLE));
    }
    // A class that was applied can be replaced, but not be removed.
    let path = ["spec", "volumeAttributesClassName"];
    let class = claim.at(&path);
    let is_applied = old.at(&["status", "currentVolumeAttributesClassName"]).is_set();
    if !is_applied || same(class.some(), old.at(&path).some()) {
        return;
    }
    let why = "is forbidden when status.currentVolumeAttributesClassName is not nil";
    if !class.is_set() {
        errors.push(class.forbidden(format!("update to nil {why}")));
    } else if class.is_empty() {
        errors.push(class.forbidden(format!("update to empty string {why}")));
    }
}

/// A claim's class may be set once: to the value of its stored annotation, or to any value if there
/// is none. If that is allowed, the class is removed from `new`.
fn keep_class(claim: &Field<'_>, old: &Value, new: &mut Value, errors: &mut Errors) {
    let annotation = |object: &Value| {
        object.str_at(&["metadata", "annotations", CLASS_ANNOTATION]).map(str::to_owned)
    };
    let (was, is) = (annotation(old), annotation(claim.value()));
    let class = new.str_at(&["storageClassName"]).map(str::to_owned);
    let had_class = old.at(&["spec", "storageClassName"]).is_some_and(|class| !class.is_null());
    let is_set_now = !had_class && class.is_some();
    let is_moved = is_set_now && was.is_some() && class == was && (is.is_none() || is == was);
    if !is_moved && is.as_deref().unwrap_or_default() != was.as_deref().unwrap_or_default() {
        let annotations = claim.get("metadata");
        let annotations = annotations.get("annotations");
        let annotation = annotations.key(CLASS_ANNOTATION);
        errors.push(annotation.invalid_as(is.as_deref().unwrap_or_default(), IMMUTABLE));
    }
    if is_moved || (is_set_now && (was.is_none() || class == was)) {
        new.make_object().remove("storageClassName");
    }
}

fn copy(member: &str, from: &Value, to: &mut Value) {
    match from.get(member) {
        Some(value) => _ = to.make_object().insert(member, value.clone()),
        None => _ = to.make_object().remove(member),
    }
}

const RESIZE: &[&str] = &[
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

fn check_status(claim: &Field<'_>) -> Errors {
    let mut errors = Errors::new();
    let status = claim.get("status");
    let capacity = status.get("capacity");
    for (_, amount) in capacity.pairs() {
        basic_amount(&amount, &mut errors);
    }
    let resizes = status.get("allocatedResourceStatuses");
    for (name, state) in resizes.pairs() {
        resource_key(&resizes, name, &mut errors);
        if !RESIZE.contains(&state.text()) {
            let name = Value::from(name);
            errors.push(resizes.of(&name).not_supported(RESIZE));
        }
    }
    let allocated = status.get("allocatedResources");
    for (name, amount) in allocated.pairs() {
        if !resource_key(&allocated, name, &mut errors) {
            continue;
        }
        basic_amount(&amount, &mut errors);
    }
    errors
}

fn basic_amount(amount: &Field<'_>, errors: &mut Errors) {
    if let Some(quantity) = amounts::parse(amount)
        && quantity.signum() < 0
    {
        errors.push(amount.invalid_as(quantity.value(), "must be a valid resource quantity"));
    }
}

/// Checks the name of a resource, and returns whether it is valid. `storage` is the only native
/// resource of a claim; drivers may have others.
fn resource_key(list: &Field<'_>, name: &str, errors: &mut Errors) -> bool {
    let wrong = names::qualified_name(name);
    let is_right = wrong.is_empty();
    list.all_invalid_as(name, wrong, errors);
    let is_native = !name.contains('/') || name.contains("kubernetes.io/");
    if is_right && is_native && name != "storage" {
        let name = Value::from(name);
        errors.push(list.of(&name).not_supported(&["storage"]));
        return false;
    }
    is_right
}

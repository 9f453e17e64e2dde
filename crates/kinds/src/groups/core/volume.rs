//! PersistentVolumes.

use pintle_meta::{field::Error, names, time};
use pintle_registry::request::Now;
use pintle_value::Value;

use crate::{
    amounts,
    checks::{IMMUTABLE, same},
    defaults::{
        Constant::Text,
        Defaults, Row,
        Row::{Also, Empty, In, Rounded, Unset},
        set,
    },
    field::{Errors, Field},
    pods,
    rules::{
        Rule::{Do, Formatted, OneOf, Required},
        Rules, check,
    },
    strategy::{AS_NEW, MetadataChecks, Strategy, WITH_STATUS},
};

pub(super) const VOLUME: Strategy = Strategy {
    metadata: MetadataChecks { as_new: 2, ..AS_NEW },
    delete_returns_object: true,
    default: |object| set(object, DEFAULTS),
    prepare_create: pending,
    note_time,
    validate: |new, old| {
        let volume = Field::root(new);
        let spec = volume.get("spec");
        let name = pintle_meta::object::name(new);
        let mut errors = Errors::new();
        check_spec(&spec, name, old, &mut errors);
        if let Some(old) = old {
            // Upstream checks an update as a volume and as an update, and reports errors twice.
            check_spec(&spec, name, Some(old), &mut errors);
            check_changes(&volume, old, &mut errors);
        }
        errors
    },
    declared_rules: false,
    warnings: |new, _| warn(&Field::root(new)),
    ..WITH_STATUS
};

const DEFAULTS: Defaults = &[
    PENDING,
    In(
        "spec",
        &[
            Empty("persistentVolumeReclaimPolicy", Text("Retain")),
            Unset("volumeMode", Text("Filesystem")),
            Rounded("capacity"),
            Also(pods::DISKS),
        ],
    ),
];

/// The default phase of volumes and of claims.
pub(super) const PENDING: Row = In("status", &[Empty("phase", Text("Pending"))]);

/// A new volume or claim waits to be bound.
pub(super) fn pending(object: &mut Value) {
    object.object_entry("status").insert("phase", "Pending");
}

/// Sets the time of the last change of a volume's phase if the writer does not set it.
fn note_time(new: &mut Value, old: Option<&Value>, now: Now) {
    const MEMBER: &str = "lastPhaseTransitionTime";
    let at = |object: &Value, member: &str| {
        object.at(&["status", member]).filter(|value| !value.is_null()).cloned()
    };
    let (since, before) = (at(new, MEMBER), old.and_then(|old| at(old, MEMBER)));
    let is_changed = old.is_none_or(|old| at(old, "phase") != at(new, "phase"));
    let time = match (is_changed, since) {
        (true, since) if since == before || since.is_none() => {
            Some(Value::from(time::format(now.unix_seconds() * time::SECOND)))
        }
        (false, None) => before,
        _ => None,
    };
    if let Some(time) = time {
        new.object_entry("status").insert(MEMBER, time);
    }
}

const MODES: Rules = &[Required("accessModes"), Do(pods::access_modes)];

const RECLAIM: Rules = &[OneOf("persistentVolumeReclaimPolicy", &["Delete", "Recycle", "Retain"])];

const CLASS_RULES: Rules = &[
    Formatted("storageClassName", names::dns1123_subdomain),
    OneOf("volumeMode", &["Block", "Filesystem"]),
];

/// Attributes that a driver can change: they need a class and a driver.
const ATTRIBUTES: Rules = &[Do(|spec, errors| {
    let class = spec.get("volumeAttributesClassName");
    if !class.is_set() {
        return;
    }
    if class.is_empty() {
        errors.push(class.required("an empty string is disallowed"));
    } else {
        class.all_invalid(names::dns1123_subdomain(class.text()), errors);
    }
    if !spec.has("csi") {
        let words = "has to be specified when using volumeAttributesClassName";
        errors.push(spec.get("csi").required(words));
    }
})];

fn check_spec(spec: &Field<'_>, name: &str, old: Option<&Value>, errors: &mut Errors) {
    check(spec, MODES, errors);
    check_capacity(&spec.get("capacity"), errors);
    check(spec, RECLAIM, errors);
    if let Some(affinity) = spec.find("nodeAffinity") {
        check_affinity(&affinity, old, errors);
    }
    pods::check_persistent_sources(spec, name, errors);
    let policy = spec.get("persistentVolumeReclaimPolicy");
    let path = spec.at(&["hostPath", "path"]);
    if spec.has("hostPath") && is_root(path.text()) && policy.text() == "Recycle" {
        errors.push(policy.forbidden("may not be 'recycle' for a hostPath mount of '/'"));
    }
    check(spec, CLASS_RULES, errors);
    check(spec, ATTRIBUTES, errors);
}

/// Checks the inline volume of an attachment, which must be a CSI volume.
pub(in crate::groups) fn check_inline(spec: &Field<'_>, errors: &mut Errors) {
    if spec.has("claimRef") {
        refuse_inline(spec, "claimRef", "may not be specified", errors);
    }
    if !spec.get("capacity").is_empty() {
        refuse_inline(spec, "capacity", "may not be specified", errors);
    }
    if !spec.has("csi") {
        let words = format!("has to be specified {INLINE}");
        errors.push(spec.get("csi").required(&words));
    }
    check(spec, MODES, errors);
    if !matches!(spec.str("persistentVolumeReclaimPolicy"), "" | "Retain") {
        refuse_inline(spec, "persistentVolumeReclaimPolicy", "may only be Retain", errors);
    }
    if spec.has("nodeAffinity") {
        refuse_inline(spec, "nodeAffinity", "may not be specified", errors);
    }
    pods::check_persistent_sources(spec, "", errors);
    if !spec.get("storageClassName").is_empty() {
        refuse_inline(spec, "storageClassName", "may not be specified", errors);
    }
    if spec.has("volumeMode") && spec.str("volumeMode") != "Filesystem" {
        let words = "may not specify volumeMode other than Filesystem";
        refuse_inline(spec, "volumeMode", words, errors);
    }
}

const INLINE: &str = "in the context of inline volumes";

fn refuse_inline(spec: &Field<'_>, member: &str, words: &str, errors: &mut Errors) {
    errors.push(spec.get(member).forbidden(format!("{words} {INLINE}")));
}

/// Checks the capacity: it has the amount of storage and nothing else.
fn check_capacity(capacity: &Field<'_>, errors: &mut Errors) {
    if capacity.is_empty() {
        errors.push(capacity.required(""));
    }
    if !capacity.has("storage") || capacity.pairs().count() > 1 {
        errors.push(Error::not_supported(&capacity.path(), capacity.value(), &["storage"]));
    }
    for (_, amount) in capacity.pairs() {
        let Some(quantity) = amounts::parse(&amount) else { continue };
        if quantity.signum() < 0 {
            let words = "must be a valid resource quantity";
            errors.push(amount.invalid_as(quantity.value(), words));
        }
        if quantity.signum() <= 0 {
            errors.push(amount.invalid("must be greater than zero"));
        }
    }
}

/// Checks the node affinity. If the stored one has values that no label can have, the new one may
/// have such values, too.
fn check_affinity(affinity: &Field<'_>, old: Option<&Value>, errors: &mut Errors) {
    let Some(required) = affinity.find("required") else {
        let words = "must specify required node constraints";
        return errors.push(affinity.get("required").required(words));
    };
    let any_values = old.is_some_and(|old| {
        let old = Field::root(old);
        let terms = old.at(&["spec", "nodeAffinity", "required"]);
        terms.items("nodeSelectorTerms").any(|term| {
            term.items("matchExpressions").any(|requirement| {
                requirement
                    .items("values")
                    .any(|value| !names::label_value(value.text()).is_empty())
            })
        })
    });
    pods::check_node_selector(&required, any_values, errors);
}

/// Whether a path is the root's, in any spelling.
fn is_root(path: &str) -> bool {
    let mut depth = 0_usize;
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => depth = depth.saturating_sub(1),
            _ => depth += 1,
        }
    }
    path.starts_with('/') && depth == 0
}

/// Members of the spec that are not volume sources.
const NO_SOURCE: &[&str] = &[
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

fn check_changes(volume: &Field<'_>, old: &Value, errors: &mut Errors) {
    let spec = volume.get("spec");
    let source = |spec: Option<&Value>| {
        let mut source = spec.cloned().unwrap_or_default();
        source.make_object().retain(|member, _| !NO_SOURCE.contains(&member.as_str()));
        source
    };
    let (stored, mut new) = (source(old.get("spec")), source(spec.some()));
    // The secret for expansion may be added later.
    if stored.get("csi").is_some_and(|csi| csi.get("controllerExpandSecretRef").is_none())
        && let Some(csi) = new.get_mut("csi").and_then(Value::as_object_mut)
    {
        csi.remove("controllerExpandSecretRef");
    }
    if new != stored {
        let shown = pods::difference("core.PersistentVolumeSource", &stored, &new);
        let words = format!("spec.persistentvolumesource is immutable after creation\n{shown}");
        errors.push(spec.get("persistentvolumesource").forbidden(words));
    }
    // Upstream leaves the spec out of these paths.
    let of_old = |member: &str| old.at(&["spec", member]);
    let mode = spec.value().get("volumeMode");
    if !same(mode, of_old("volumeMode")) {
        let value = Field::root(mode.unwrap_or(&Value::Null)).value();
        errors.push(volume.get("volumeMode").of(value).invalid(IMMUTABLE));
    }
    if let Some(stored) = of_old("nodeAffinity").filter(|stored| !stored.is_null()) {
        let affinity = spec.get("nodeAffinity");
        if !same(Some(&renamed(stored, affinity.value())), affinity.some()) {
            let words = format!("{IMMUTABLE}, except for updating from beta label to GA");
            errors.push(volume.get("nodeAffinity").of(affinity.value()).invalid(words));
        }
    }
    let class = spec.get("volumeAttributesClassName");
    if of_old("volumeAttributesClassName").is_some() && !class.is_set() {
        errors.push(class.forbidden("update from non-nil value to nil is forbidden"));
    }
}

/// Returns the stored affinity, with deprecated labels renamed where the new affinity has the new
/// name.
fn renamed(stored: &Value, new: &Value) -> Value {
    const NAMES: &[(&str, &str)] = &[
        ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
        ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
        ("beta.kubernetes.io/os", "kubernetes.io/os"),
        ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
        ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
    ];
    match (stored, new) {
        (Value::Object(old), Value::Object(other)) => {
            let mut members = old.clone();
            for (member, value) in old.iter() {
                let other = other.get(member).unwrap_or(&Value::Null);
                let is_renamed = member.as_str() == "key"
                    && NAMES.iter().any(|(old, new)| {
                        value.as_str() == Some(old) && other.as_str() == Some(new)
                    });
                let value = if is_renamed { other.clone() } else { renamed(value, other) };
                members.insert(member.clone(), value);
            }
            Value::Object(members)
        }
        (Value::Array(old), Value::Array(other)) => {
            let other = other.iter().chain(std::iter::repeat(&Value::Null));
            Value::from(old.iter().zip(other).map(|(o, n)| renamed(o, n)).collect::<Vec<_>>())
        }
        _ => stored.clone(),
    }
}

/// Annotations that have become members.
const OLD_ANNOTATIONS: &[(&str, &str)] = &[
    (
        "volume.beta.kubernetes.io/storage-class",
        r#"deprecated since v1.8; use "storageClassName" attribute instead"#,
    ),
    (
        "volume.beta.kubernetes.io/mount-options",
        r#"deprecated since v1.31; use "mountOptions" attribute instead"#,
    ),
];

/// Warns of the annotation that was once a claim's or a volume's class, and of `count` others.
pub(super) fn warn_of_annotations(object: &Field<'_>, count: usize) -> Vec<String> {
    let annotations = object.at(&["metadata", "annotations"]);
    let old = OLD_ANNOTATIONS.iter().take(1 + count).filter(|(key, _)| annotations.has(key));
    old.map(|(key, words)| format!("{}: {words}", annotations.path().key(key))).collect()
}

fn warn(volume: &Field<'_>) -> Vec<String> {
    let mut warnings = warn_of_annotations(volume, 1);
    let spec = volume.get("spec");
    let policy = spec.get("persistentVolumeReclaimPolicy");
    if policy.text() == "Recycle" {
        let words = "The Recycle reclaim policy is deprecated. Instead, the recommended approach \
                     is to use dynamic provisioning.";
        warnings.push(format!("{}: {words}", policy.path()));
    }
    warnings.extend(pods::warn_of_node_selector(&spec.at(&["nodeAffinity", "required"])));
    warnings.extend(pods::warn_of_sources(&spec));
    warnings
}

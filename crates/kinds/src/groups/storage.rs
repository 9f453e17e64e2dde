//! `storage.k8s.io/v1`.

use std::collections::{BTreeMap, BTreeSet};

use pintle_meta::{field::Error, names, object};
use pintle_value::{Path, Value};

use crate::{
    amounts,
    checks::{
        Frozen, IMMUTABLE, NOT_NEGATIVE, WARNINGS_MAX, forbidden, frozen, items, same, unchanged,
    },
    conversion::renamed,
    defaults::{
        Constant::{Bool, Text, Texts},
        Defaults,
        Row::{Also, At, Empty, In, Rounded, Unset},
        set,
    },
    field::{Errors, Field},
    formats::within,
    gates,
    kind::{Kind, kind},
    pods,
    rules::{
        Rule,
        Rule::{Do, Needed, OneOf, Selector},
        Rules, errors, not_negative, required,
    },
    strategy::{AS_NEW, AS_UPDATE, PLAIN, Part, STATUS_ALONE, Strategy, WITH_STATUS, part},
};

const STORAGE: &str = "storage.k8s.io";

pub(crate) const KINDS: &[Kind] = &[
    kind(STORAGE, "csidrivers", DRIVER),
    kind(STORAGE, "csinodes", CSI_NODE),
    kind(STORAGE, "csistoragecapacities", CAPACITY),
    kind(STORAGE, "storageclasses", CLASS),
    kind(STORAGE, "volumeattachments", ATTACHMENT),
    Kind {
        conversions: &[renamed!("v1beta1", "storage.k8s.io/v1beta1" => "storage.k8s.io/v1")],
        ..kind(STORAGE, "volumeattributesclasses", ATTRIBUTES_CLASS)
    },
];

const DRIVER: Strategy = Strategy {
    metadata: AS_UPDATE,
    // VolumeLimitScaling is off.
    gated: &[(&["spec"], &[gates::off(&[&["preventPodSchedulingIfMissing"]])])],
    declared_rules: false,
    unconditional_update: false,
    delete_returns_object: true,
    default: |object| set(object, DRIVER_DEFAULTS),
    validate: |new, old| {
        let mut wrong = errors(new, DRIVER_RULES);
        // Upstream's path has another name for `attachRequired`.
        if let Some(old) = old {
            let of = |object: &Value| object.at(&["spec", "attachRequired"]).cloned();
            if of(new) != of(old) {
                let path = Path::new("spec").field("attachedRequired");
                let value = of(new).unwrap_or_default();
                wrong.push(Error::invalid(&path, &value, IMMUTABLE));
            }
        }
        wrong.extend(unchanged(new, old, &[frozen(&["spec", "volumeLifecycleModes"])]));
        wrong
    },
    warnings: |new, old| {
        let requests = |driver: &Value| driver.at(&["spec", "tokenRequests"]).cloned();
        let is_new = old.is_none_or(|old| !same(requests(old).as_ref(), requests(new).as_ref()));
        let asks = !items(new, &["spec", "tokenRequests"]).is_empty();
        let is_stated = Field::root(new).get("spec").has("serviceAccountTokenInSecrets");
        let words = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, \
                     set to true to prevent possible logging of tokens in volume attributes";
        (is_new && asks && !is_stated).then(|| words.to_owned()).into_iter().collect()
    },
    // Upstream increments the generation, but does not set it in a new object.
    prepare_update: |new, old| {
        if new.get("spec") != old.get("spec") {
            let next = object::generation(old).saturating_add(1);
            new.object_entry("metadata").insert("generation", next);
        }
    },
    ..PLAIN
};

const DRIVER_DEFAULTS: Defaults = &[In(
    "spec",
    &[
        Unset("attachRequired", Bool(true)),
        Unset("podInfoOnMount", Bool(false)),
        Unset("storageCapacity", Bool(false)),
        Unset("fsGroupPolicy", Text("ReadWriteOnceWithFSType")),
        Empty("volumeLifecycleModes", Texts(&["Persistent"])),
        Unset("requiresRepublish", Bool(false)),
        Unset("seLinuxMount", Bool(false)),
    ],
)];

const POLICIES: &[&str] = &["File", "None", "ReadWriteOnceWithFSType"];
const MODES: &[&str] = &["Persistent", "Ephemeral"];

const DRIVER_RULES: Rules = &[Rule::At(
    "spec",
    &[
        OneOf("fsGroupPolicy", POLICIES),
        Do(check_token_requests),
        Do(|spec, errors| {
            let modes = spec.get("volumeLifecycleModes");
            for mode in spec.items("volumeLifecycleModes") {
                if !MODES.contains(&mode.text()) {
                    errors.push(modes.of(mode.value()).not_supported(MODES));
                }
            }
        }),
        Do(|spec, errors| {
            let period = spec.get("nodeAllocatableUpdatePeriodSeconds");
            if period.int().is_some_and(|seconds| seconds < 10) {
                errors.push(period.invalid("must be greater than or equal to 10 seconds"));
            }
        }),
        Do(|spec, errors| {
            let in_secrets = spec.get("serviceAccountTokenInSecrets");
            if in_secrets.is_set() && spec.get("tokenRequests").is_empty() {
                let words =
                    "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
                errors.push(in_secrets.invalid(words));
            }
        }),
    ],
)];

fn check_token_requests(spec: &Field<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for request in spec.items("tokenRequests") {
        let (audience, seconds) = (request.get("audience"), request.get("expirationSeconds"));
        if !seen.insert(audience.text().to_owned()) {
            errors.push(audience.duplicate());
            continue;
        }
        let words = match seconds.int() {
            Some(..600) => "may not specify a duration less than 10 minutes",
            Some(4_294_967_297..) => "may not specify a duration larger than 2^32 seconds",
            _ => continue,
        };
        errors.push(seconds.invalid(words));
    }
}

const CSI_NODE: Strategy = Strategy {
    metadata: AS_NEW,
    unconditional_update: false,
    delete_returns_object: true,
    validate: |new, old| {
        let mut errors = Errors::new();
        let node = Field::root(new);
        let spec = node.get("spec");
        check_drivers(&spec, &mut errors);
        if let Some(old) = old {
            check_drivers_update(&spec, old, &mut errors);
        }
        errors
    },
    declared_rules: false,
    ..PLAIN
};

fn check_drivers(spec: &Field<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for driver in spec.items("drivers") {
        let (name, id) = (driver.get("name"), driver.get("nodeID"));
        csi_driver_name(&name, errors);
        required(&id, "", errors);
        if id.text().len() > NODE_ID_LENGTH_MAX {
            errors.push(id.invalid(format!("must be {NODE_ID_LENGTH_MAX} characters or less")));
        }
        not_negative(&driver.at(&["allocatable", "count"]), errors);
        if !seen.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
        let mut keys = BTreeSet::new();
        for key in driver.items("topologyKeys") {
            // As in upstream, these errors have the path of the driver.
            let key = driver.of(key.value());
            required(&key, "", errors);
            if !keys.insert(key.text().to_owned()) {
                errors.push(key.duplicate());
            }
            key.all_invalid(names::qualified_name(key.text()), errors);
        }
    }
}

/// Of a stored driver only the number of attachable volumes may change.
fn check_drivers_update(spec: &Field<'_>, old: &Value, errors: &mut Errors) {
    let fixed = |driver: &Value| {
        let mut driver = driver.clone();
        driver.make_object().remove("allocatable");
        driver
    };
    let mut drivers: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for driver in spec.items("drivers") {
        drivers.entry(driver.str("name")).or_default().push(fixed(driver.value()));
    }
    let list = spec.get("drivers");
    for stored in items(old, &["spec", "drivers"]) {
        let name = stored.str_at(&["name"]).unwrap_or_default();
        let stored = fixed(stored);
        let changed = drivers.get(name).into_iter().flatten().filter(|driver| **driver != stored);
        errors.extend(changed.map(|driver| list.invalid_as(driver.clone(), IMMUTABLE)));
    }
}

/// Checks the name of a CSI driver.
pub(crate) fn csi_driver_name(field: &Field<'_>, errors: &mut Errors) {
    const LENGTH_MAX: usize = 63;
    if field.is_empty() {
        return errors.push(field.required(""));
    }
    if field.text().len() > LENGTH_MAX {
        errors.push(Error::too_long(&field.path(), LENGTH_MAX));
    }
    let wrong = names::dns1123_subdomain(&field.text().to_lowercase());
    errors.extend(wrong.into_iter().map(|words| field.invalid_as(field.text(), words)));
}

const CAPACITY: Strategy = Strategy {
    unconditional_update: false,
    validate: |new, old| match old {
        None => errors(new, CAPACITY_RULES),
        Some(_) => unchanged(new, old, &[frozen(&["nodeTopology"]), frozen(&["storageClassName"])]),
    },
    declared_rules: false,
    warnings: |new, _| {
        let mut warnings = Vec::new();
        let topology = Field::root(new);
        let topology = topology.get("nodeTopology");
        for expression in topology.items("matchExpressions") {
            let key = expression.get("key");
            warn_of_label(&key, &format!("{} is ", key.text()), &mut warnings);
        }
        let labels = topology.get("matchLabels");
        for (label, _) in labels.pairs() {
            let key = Value::from(label);
            warn_of_label(&labels.get(label).of(&key), "", &mut warnings);
        }
        warnings
    },
    ..PLAIN
};

const CAPACITY_RULES: Rules = &[
    Selector("nodeTopology"),
    Do(|capacity, errors| {
        let class = capacity.get("storageClassName");
        let wrong = names::dns1123_subdomain(class.text());
        errors.extend(wrong.into_iter().map(|words| class.invalid_as(class.text(), words)));
    }),
    Do(|capacity, errors| {
        let amount = capacity.get("capacity");
        if amounts::parse(&amount).is_some_and(|amount| amount.signum() < 0) {
            errors.push(amount.invalid(NOT_NEGATIVE));
        }
    }),
];

const CLASS: Strategy = Strategy {
    delete_returns_object: true,
    default: |object| set(object, CLASS_DEFAULTS),
    validate: |new, old| match old {
        None => errors(new, CLASS_RULES),
        Some(_) => {
            let mut wrong = errors(new, CLASS_RULES);
            wrong.extend(unchanged(new, old, CLASS_FROZEN));
            wrong
        }
    },
    declared_rules: false,
    warnings: |new, _| {
        let mut warnings = Vec::new();
        for term in Field::root(new).items("allowedTopologies") {
            for expression in term.items("matchLabelExpressions") {
                warn_of_label(&expression.get("key"), "", &mut warnings);
            }
        }
        warnings
    },
    ..PLAIN
};

const RECLAIM_POLICIES: &[&str] = &["Delete", "Retain"];

const CLASS_RULES: Rules = &[
    Do(|class, errors| provisioner(&class.get("provisioner"), errors)),
    Do(|class, errors| parameters(&class.get("parameters"), errors)),
    Do(|class, errors| {
        let policy = class.get("reclaimPolicy");
        if !policy.is_empty() && !RECLAIM_POLICIES.contains(&policy.text()) {
            errors.push(policy.not_supported(RECLAIM_POLICIES));
        }
    }),
    OneOf("volumeBindingMode", &["Immediate", "WaitForFirstConsumer"]),
    Do(check_topologies),
];

const CLASS_FROZEN: &[Frozen] = &[
    frozen(&["parameters"]),
    frozen(&["provisioner"]),
    frozen(&["reclaimPolicy"]),
    frozen(&["volumeBindingMode"]),
];

/// Warns of a node label that is deprecated.
fn warn_of_label(key: &Field<'_>, before: &str, warnings: &mut Vec<String>) {
    if let Some(words) = pods::old_label(key.text())
        && warnings.len() < WARNINGS_MAX
    {
        warnings.push(format!("{}: {before}{words}", key.path()));
    }
}

/// Checks a provisioner: a qualified name, case-insensitive.
fn provisioner(field: &Field<'_>, errors: &mut Errors) {
    if field.is_empty() {
        return errors.push(field.required(""));
    }
    let text = field.text().to_lowercase();
    field.all_invalid_as(&text, names::qualified_name(&text), errors);
}

fn parameters(field: &Field<'_>, errors: &mut Errors) {
    const COUNT_MAX: usize = 512;
    const LENGTH_MAX: usize = 256 * 1024;
    if field.pairs().count() > COUNT_MAX {
        return errors.push(Error::too_long(&field.path(), COUNT_MAX));
    }
    if field.pairs().any(|(key, _)| key.is_empty()) {
        errors.push(field.invalid_as("", "field can not be empty."));
    }
    let length: usize = field.pairs().map(|(key, value)| key.len() + value.text().len()).sum();
    if length > LENGTH_MAX {
        errors.push(Error::too_long(&field.path(), LENGTH_MAX));
    }
}

/// Checks the allowed topologies: distinct terms, each of labels with values.
fn check_topologies(class: &Field<'_>, errors: &mut Errors) {
    let count = class.items("allowedTopologies").len();
    // How often each term occurs.
    let mut terms: BTreeMap<BTreeMap<String, BTreeSet<String>>, usize> = BTreeMap::new();
    for term in class.items("allowedTopologies") {
        let mut labels = BTreeMap::new();
        for expression in term.items("matchLabelExpressions") {
            let (key, values) = (expression.get("key"), expression.get("values"));
            if values.is_empty() {
                errors.push(values.required(""));
            }
            let mut allowed = BTreeSet::new();
            for value in expression.items("values") {
                if !allowed.insert(value.text().to_owned()) {
                    errors.push(value.duplicate());
                }
            }
            key.all_invalid(names::qualified_name(key.text()), errors);
            if labels.insert(key.text().to_owned(), allowed).is_some() {
                errors.push(key.duplicate());
            }
        }
        // Upstream compares a term with all terms before it, and with one empty term for each term
        // of the list.
        let empty = if labels.is_empty() { count } else { 0 };
        let before = terms.entry(labels).or_default();
        let expressions = term.get("matchLabelExpressions").path();
        errors.extend((0..empty + *before).map(|_| Error::duplicate(&expressions, &"".into())));
        *before += 1;
    }
}

const CLASS_DEFAULTS: Defaults =
    &[Unset("reclaimPolicy", Text("Delete")), Unset("volumeBindingMode", Text("Immediate"))];

const ATTACHMENT: Strategy = Strategy {
    metadata: AS_NEW,
    owned: STATUS_ALONE,
    unconditional_update: false,
    delete_returns_object: true,
    default: |object| set(object, ATTACHMENT_DEFAULTS),
    validate: |new, old| {
        let mut wrong = errors(new, ATTACHMENT_RULES);
        wrong.extend(unchanged(new, old, &[frozen(&["spec"])]));
        wrong
    },
    declared_rules: false,
    parts: &[Part {
        metadata: Some(AS_NEW),
        validate: |new, _| errors(new, ATTACHMENT_STATUS),
        ..part("status")
    }],
    ..WITH_STATUS
};

const ONE_SOURCE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";

const ATTACHMENT_RULES: Rules = &[Rule::At(
    "spec",
    &[
        Do(|spec, errors| csi_driver_name(&spec.get("attacher"), errors)),
        Do(|spec, errors| {
            let source = spec.get("source");
            let volume = source.get("persistentVolumeName");
            match (source.has("inlineVolumeSpec"), volume.is_set()) {
                (false, false) => errors.push(source.required(ONE_SOURCE)),
                (true, true) => errors.push(source.forbidden(ONE_SOURCE)),
                (false, true) => {
                    required(&volume, "must specify non empty persistentVolumeName", errors)
                }
                (true, false) => {
                    super::core::volume::check_inline(&source.get("inlineVolumeSpec"), errors);
                }
            }
        }),
        Do(|spec, errors| {
            let node = spec.get("nodeName");
            let wrong = names::dns1123_subdomain(node.text());
            errors.extend(wrong.into_iter().map(|words| node.invalid_as(node.text(), words)));
        }),
        Do(|spec, errors| {
            if let Some(volume) = spec.get("source").find("persistentVolumeName") {
                volume.all_invalid(names::dns1123_subdomain(volume.text()), errors);
            }
        }),
    ],
)];

const ATTACHMENT_STATUS: Rules = &[Rule::At(
    "status",
    &[
        Do(|status, errors| {
            let metadata = status.get("attachmentMetadata");
            let lengths = metadata.pairs().map(|(key, value)| key.len() + value.text().len());
            if lengths.sum::<usize>() > ATTACHMENT_LENGTH_MAX {
                errors.push(Error::too_long(&metadata.path(), ATTACHMENT_LENGTH_MAX));
            }
        }),
        Do(|status, errors| volume_error(&status.get("attachError"), errors)),
        Do(|status, errors| volume_error(&status.get("detachError"), errors)),
    ],
)];

fn volume_error(error: &Field<'_>, errors: &mut Errors) {
    const MESSAGE_LENGTH_MAX: usize = 1024;
    let message = error.get("message");
    if message.text().len() > MESSAGE_LENGTH_MAX {
        // As in upstream, the message has the bound of another member.
        errors.push(Error::too_long(&message.path(), ATTACHMENT_LENGTH_MAX));
    }
    let code = error.get("errorCode");
    if code.int().is_some_and(|code| code < 0) {
        errors.push(code.invalid(within(0, i64::from(i32::MAX))));
    }
}

const NODE_ID_LENGTH_MAX: usize = 256;
const ATTACHMENT_LENGTH_MAX: usize = 256 * 1024;

const ATTACHMENT_DEFAULTS: Defaults = &[At(
    "spec",
    &[At("source", &[At("inlineVolumeSpec", &[Also(pods::DISKS), Rounded("capacity")])])],
)];

const ATTRIBUTES_CLASS: Strategy = Strategy {
    delete_returns_object: true,
    validate: |new, old| {
        let frozen = [
            forbidden(&["driverName"], "updates to driverName are forbidden."),
            forbidden(&["parameters"], "updates to parameters are forbidden."),
        ];
        let mut wrong = unchanged(new, old, &frozen);
        wrong.extend(errors(new, ATTRIBUTES_RULES));
        wrong
    },
    declared_rules: false,
    ..PLAIN
};

const ATTRIBUTES_RULES: Rules = &[
    Do(|class, errors| provisioner(&class.get("driverName"), errors)),
    Do(|class, errors| parameters(&class.get("parameters"), errors)),
    Needed("parameters", "must contain at least one key/value pair"),
];

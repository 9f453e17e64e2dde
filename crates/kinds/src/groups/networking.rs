//! `networking.k8s.io/v1`.

mod ingress;
mod network_policy;

use pintle_meta::{field::Error, names, validation};
use pintle_registry::NameRule;

use crate::{
    addresses,
    addresses::{Range, canonical_ip, canonical_range},
    checks::{IMMUTABLE, frozen, frozen_text, unchanged},
    conversion::renamed,
    defaults::{
        Condition::Filled,
        Constant::{Text, Texts},
        Defaults, Row,
        Row::{At, Each, Empty, In, Unset, When},
        set,
    },
    field::{Errors, Field},
    kind::{Form, Kind, kind},
    rules::{
        Rule,
        Rule::{Do, Formatted, Named, OneOf},
        Rules, errors,
    },
    strategy::{
        AS_UPDATE, COUNTED, COUNTED_WITH_STATUS, PLAIN, Part, STATUS_ALONE, Strategy, WITH_STATUS,
        part,
    },
};

const NETWORKING: &str = "networking.k8s.io";

pub(crate) const KINDS: &[Kind] = &[
    kind(NETWORKING, "ingressclasses", INGRESS_CLASS),
    kind(NETWORKING, "ingresses", INGRESS),
    Kind { conversions: BETA, ..kind(NETWORKING, "ipaddresses", IP_ADDRESS) },
    kind(NETWORKING, "networkpolicies", NETWORK_POLICY),
    Kind { conversions: BETA, ..kind(NETWORKING, "servicecidrs", SERVICE_CIDR) },
];

const BETA: &[Form] = &[renamed!("v1beta1", "networking.k8s.io/v1beta1" => "networking.k8s.io/v1")];

const INGRESS_CLASS: Strategy = Strategy {
    default: |object| set(object, INGRESS_CLASS_DEFAULTS),
    validate: |new, old| {
        let mut wrong = unchanged(new, old, &[frozen_text(&["spec", "controller"])]);
        wrong.extend(errors(new, INGRESS_CLASS_RULES));
        wrong
    },
    ..COUNTED
};

const INGRESS_CLASS_RULES: Rules = &[Rule::At(
    "spec",
    &[
        Do(|spec, errors| controller(&spec.get("controller"), errors)),
        Rule::At("parameters", PARAMETERS),
    ],
)];

const INGRESS_CLASS_DEFAULTS: Defaults =
    &[At("spec", &[At("parameters", &[Unset("scope", Text("Cluster"))])])];

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

const INGRESS: Strategy = Strategy {
    declared_rules: false,
    validate: ingress::validate,
    parts: &[Part {
        validate: ingress::validate_status,
        warnings: |new, _| addresses::odd_points(new),
        ..part("status")
    }],
    warnings: |new, old| {
        let has_class = new.at(&["spec", "ingressClassName"]).is_some();
        let annotations = pintle_meta::object::annotations(new);
        let has_annotation = annotations.is_some_and(|a| a.contains_key(CLASS_ANNOTATION));
        if old.is_none() && has_annotation && !has_class {
            let words = "is deprecated, please use 'spec.ingressClassName' instead";
            vec![format!("annotation {CLASS_ANNOTATION:?} {words}")]
        } else {
            Vec::new()
        }
    },
    ..COUNTED_WITH_STATUS
};

const IP_ADDRESS: Strategy = Strategy {
    name: NameRule::Custom(|name, _prefix| canonical_ip(name)),
    // A generated suffix would make the address invalid.
    generates_names: false,
    validate: |new, old| {
        let mut wrong = errors(new, IP_ADDRESS_RULES);
        wrong.extend(unchanged(new, old, &[frozen(&["spec", "parentRef"])]));
        wrong
    },
    ..PLAIN
};

const IP_ADDRESS_RULES: Rules = &[Rule::At(
    "spec",
    &[
        Do(|spec, errors| {
            if !spec.has("parentRef") {
                errors.push(spec.get("parentRef").required(""));
            }
        }),
        Rule::At(
            "parentRef",
            &[
                Formatted("group", names::dns1123_subdomain),
                Named("resource", names::path_segment),
                Named("name", names::path_segment),
                Formatted("namespace", names::path_segment),
            ],
        ),
    ],
)];

const NETWORK_POLICY: Strategy = Strategy {
    metadata: AS_UPDATE,
    default: |object| set(object, NETWORK_POLICY_DEFAULTS),
    validate: network_policy::validate,
    declared_rules: false,
    warnings: |new, _| network_policy::odd_ranges(new),
    ..COUNTED
};

const NETWORK_POLICY_DEFAULTS: Defaults = &[In(
    "spec",
    &[
        Each("ingress", &[PORTS]),
        Each("egress", &[PORTS]),
        When(Filled("egress"), &[Empty("policyTypes", Texts(&["Ingress", "Egress"]))]),
        Empty("policyTypes", Texts(&["Ingress"])),
    ],
)];

const PORTS: Row = Each("ports", &[Unset("protocol", Text("TCP"))]);

const SERVICE_CIDR: Strategy = Strategy {
    metadata: AS_UPDATE,
    owned: STATUS_ALONE,
    validate: |new, old| {
        let mut errors = Errors::new();
        let service_cidr = Field::root(new);
        let spec = service_cidr.get("spec");
        match old.map(Field::root) {
            None => check_cidrs(&spec, &mut errors),
            Some(old) => check_cidrs_update(&spec, &old.get("spec"), &mut errors),
        }
        errors
    },
    ..WITH_STATUS
};

fn check_cidrs(spec: &Field<'_>, errors: &mut Errors) {
    let list = spec.get("cidrs");
    let ranges: Vec<_> = spec.items("cidrs").map(|cidr| Range::parse(cidr.text())).collect();
    match ranges.as_slice() {
        [] => return errors.push(list.required("at least one CIDR required")),
        [_, _, _, ..] => {
            // Upstream shows the whole spec.
            return errors.push(list.of(spec.value()).invalid("may only hold up to 2 values"));
        }
        _ => {}
    }
    for cidr in spec.items("cidrs") {
        cidr.all_invalid(canonical_range(cidr.text()), errors);
    }
    if let [Some(one), Some(other)] = ranges[..]
        && one.is_ipv6() == other.is_ipv6()
    {
        let words = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and \
                     2001:db8::/64";
        errors.push(list.invalid(words));
    }
}

/// Checks an update, which may only add a second range, of the other family.
fn check_cidrs_update(new: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    let changed = new.items("cidrs").zip(old.items("cidrs"));
    let changed = changed.filter(|(now, before)| now.text() != before.text());
    match (old.items("cidrs").len(), new.items("cidrs").len()) {
        (before, now) if before == now => {
            errors.extend(changed.map(|(cidr, _)| cidr.invalid(IMMUTABLE)));
        }
        (1, 2) => {
            errors.extend(changed.map(|(cidr, _)| cidr.invalid(IMMUTABLE)));
            check_cidrs(new, errors);
        }
        _ => errors.push(new.get("cidrs").invalid(IMMUTABLE)),
    }
}

/// Checks the controller of a class: a path with a domain.
fn controller(field: &Field<'_>, errors: &mut Errors) {
    const LENGTH_MAX: usize = 250;
    let text = field.text();
    if text.len() > LENGTH_MAX {
        errors.push(Error::too_long(&field.path(), LENGTH_MAX));
    }
    errors.extend(validation::domain_prefixed_path(text, &field.path()));
}

const PARAMETERS: Rules = &[
    Do(ingress::api_group),
    Named("kind", names::path_segment),
    Named("name", names::path_segment),
    OneOf("scope", &["Cluster", "Namespace"]),
    Do(|parameters, errors| {
        let namespace = parameters.get("namespace");
        match (parameters.str("scope"), namespace.is_set()) {
            ("Namespace", false) => {
                errors.push(namespace.required("`parameters.scope` is set to 'Namespace'"));
            }
            ("Namespace", true) => {
                namespace.all_invalid(names::dns1123_label(namespace.text()), errors);
            }
            ("Cluster", true) => {
                errors.push(namespace.forbidden("`parameters.scope` is set to 'Cluster'"));
            }
            _ => {}
        }
    }),
];

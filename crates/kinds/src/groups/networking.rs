//! `networking.k8s.io/v1`.

use std::net::IpAddr;

use pintle_meta::field::Error;
use pintle_registry::NameRule;
use pintle_value::{Path, Value};

use crate::{
    checks::{Frozen, frozen, items, unchanged},
    conversion::renamed,
    defaults::{
        Condition::Filled,
        Constant::{Text, Texts},
        Defaults, Row,
        Row::{At, Each, Empty, In, Unset, When},
        set,
    },
    kind::{Form, Kind, kind},
    strategy::{COUNTED, COUNTED_WITH_STATUS, PLAIN, Strategy, WITH_STATUS},
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
    validate: |new, old| unchanged(new, old, &[frozen(&["spec", "controller"])]),
    ..COUNTED
};

const INGRESS_CLASS_DEFAULTS: Defaults =
    &[At("spec", &[At("parameters", &[Unset("scope", Text("Cluster"))])])];

const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

const INGRESS: Strategy = Strategy {
    validate: |new, old| {
        let mut errors = Vec::new();
        let has_class = new.at(&["spec", "ingressClassName"]).is_some();
        if old.is_none() && has_class_annotation(new) && has_class {
            let path = Path::new("annotations").key(CLASS_ANNOTATION);
            let annotations = pintle_meta::object::annotations(new);
            let value = annotations.and_then(|a| a.get(CLASS_ANNOTATION)).unwrap_or(&Value::Null);
            let words = "can not be set when the class field is also set";
            errors.push(Error::invalid(&path, value, words));
        }
        check_ingress(new, &mut errors);
        errors
    },
    warnings: |new, old| {
        let has_class = new.at(&["spec", "ingressClassName"]).is_some();
        if old.is_none() && has_class_annotation(new) && !has_class {
            let words = "is deprecated, please use 'spec.ingressClassName' instead";
            vec![format!("annotation {CLASS_ANNOTATION:?} {words}")]
        } else {
            Vec::new()
        }
    },
    ..COUNTED_WITH_STATUS
};

fn has_class_annotation(ingress: &Value) -> bool {
    pintle_meta::object::annotations(ingress).is_some_and(|a| a.contains_key(CLASS_ANNOTATION))
}

fn check_ingress(ingress: &Value, errors: &mut Vec<Error>) {
    let rules = items(ingress, &["spec", "rules"]);
    let backend = ingress.at(&["spec", "defaultBackend"]).filter(|backend| !backend.is_null());
    if rules.is_empty() && backend.is_none() {
        let spec = ingress.get("spec").unwrap_or(&Value::Null);
        let words = "either `defaultBackend` or `rules` must be specified";
        errors.push(Error::invalid(&Path::new("spec"), spec, words));
    }
    for (i, rule) in rules.iter().enumerate() {
        let path = Path::new("spec").field("rules").index(i).field("http").field("paths");
        for (i, backend) in items(rule, &["http", "paths"]).iter().enumerate() {
            if backend.str_at(&["pathType"]).unwrap_or_default().is_empty() {
                let path = path.index(i).field("pathType");
                errors.push(Error::required(&path, "pathType must be specified"));
            }
        }
    }
}

const IP_ADDRESS: Strategy = Strategy { name: NameRule::Custom(address_rule), ..PLAIN };

/// The name is the address, in its one canonical form.
fn address_rule(name: &str, _prefix: bool) -> Vec<String> {
    match name.parse::<IpAddr>() {
        Err(_) => vec!["must be a valid IP address".to_owned()],
        Ok(address) if address.to_string() != name => {
            vec![format!("must be in canonical form ({:?})", address.to_string())]
        }
        Ok(_) => Vec::new(),
    }
}

const NETWORK_POLICY: Strategy =
    Strategy { default: |object| set(object, NETWORK_POLICY_DEFAULTS), ..COUNTED };

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
    validate: |new, old| {
        // A second range, of the other family, may be added to the first.
        let ranges = |object: &Value| items(object, &["spec", "cidrs"]).to_vec();
        let grows = old.is_some_and(|old| {
            let (old, new) = (ranges(old), ranges(new));
            old.len() == 1 && new.len() == 2 && new.first() == old.first()
        });
        if grows { Vec::new() } else { unchanged(new, old, SERVICE_CIDR_FROZEN) }
    },
    ..WITH_STATUS
};

const SERVICE_CIDR_FROZEN: &[Frozen] = &[frozen(&["spec", "cidrs"])];

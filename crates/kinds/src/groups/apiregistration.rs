//! `apiregistration.k8s.io/v1`. `pintle-server` sends requests to the servers of APIServices, and
//! `pintle-controllers` sets whether these servers are available.

use pintle_meta::{field::Error, names};
use pintle_registry::NameRule;
use pintle_value::{Path, Value};

use crate::{
    checks::invalid_text,
    conditions,
    defaults::{Constant::Int, Defaults, Row, Row::Unset, set},
    field::{Errors, Field},
    formats::port_number,
    kind::{Kind, kind},
    rules,
    rules::{
        Rule,
        Rule::{At, Choice, Required},
        Rules, check,
    },
    strategy::{
        AS_UPDATE_AND_NEW, MetadataChecks, Part, STATUS_ALONE, Strategy, WITH_STATUS, part,
    },
};

pub(crate) const KINDS: &[Kind] = &[kind("apiregistration.k8s.io", "apiservices", API_SERVICE)];

const API_SERVICE: Strategy = Strategy {
    metadata: MetadataChecks { qualified_finalizers: false, ..AS_UPDATE_AND_NEW },
    owned: STATUS_ALONE,
    name: NameRule::OfObject(|service, _, name, prefix| {
        let wrong = names::path_segment_rule(name, prefix);
        let of = |member: &str| service.str_at(&["spec", member]).unwrap_or_default();
        let needed = format!("{}.{}", of("version"), of("group"));
        match wrong.is_empty() && name != needed {
            true => vec![format!("must be `spec.version+\".\"+spec.group`: {needed:?}")],
            false => wrong,
        }
    }),
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
    note_time: conditions::note_time,
    validate: |new, _| validate(new),
    parts: &[Part { validate: |new, _| rules::errors(new, STATUS_RULES), ..part("status") }],
    ..WITH_STATUS
};

const DEFAULTS: Defaults = &[Row::At("spec", &[Row::At("service", &[Unset("port", Int(443))])])];

fn validate(service: &Value) -> Errors {
    let spec = Path::new("spec");
    let of = |member: &str| service.str_at(&["spec", member]).unwrap_or_default();
    let (group, version) = (of("group"), of("version"));
    let mut errors = Errors::new();
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
    errors.extend(check_backend(service));
    errors
}

/// Checks the server of the group version: this one, or a service.
fn check_backend(service: &Value) -> Errors {
    let mut errors = Errors::new();
    let service = Field::root(service);
    let spec = service.get("spec");
    let (bundle, insecure) = (spec.get("caBundle"), spec.get("insecureSkipTLSVerify"));
    let Some(backend) = spec.find("service") else {
        if !bundle.is_empty() {
            let length = bundle.text().trim_end_matches('=').len() * 3 / 4;
            let words = "local APIServices may not have a caBundle";
            errors.push(bundle.invalid_as(format!("{length} bytes"), words));
        }
        if insecure.is_true() {
            let words = "local APIServices may not have insecureSkipTLSVerify";
            errors.push(insecure.invalid(words));
        }
        return errors;
    };
    check(&backend, &[Required("namespace"), Required("name")], &mut errors);
    let port = backend.get("port");
    if let Some(words) = port_number(port.int().unwrap_or(0)) {
        errors.push(port.invalid(format!("port is not valid: {words}")));
    }
    if insecure.is_true() && !bundle.is_empty() {
        errors.push(insecure.invalid("may not be true if caBundle is present"));
    }
    errors
}

const STATUS_RULES: Rules = &[At(
    "status",
    &[Rule::Each("conditions", &[Choice("status", &["True", "False", "Unknown"])])],
)];

//! admissionregistration.k8s.io: webhooks and policies.

use pintle_value::Value;

use super::column::Cell::{By, Count, Text};
use super::column::Description::Words;
use super::column::{AGE, Column, NAME, integer, string};
use super::read::{at, items_at, str_at};
use super::text::joined_with;
use super::{Columns, Kind};

const GROUP: &str = "admissionregistration.k8s.io";

pub(super) const KINDS: &[Kind] = &[
    Kind::new(GROUP, "MutatingAdmissionPolicy", MUTATING_ADMISSION_POLICY),
    Kind::new(GROUP, "MutatingAdmissionPolicyBinding", BINDING),
    Kind::new(GROUP, "MutatingWebhookConfiguration", WEBHOOKS),
    Kind::new(GROUP, "ValidatingAdmissionPolicy", VALIDATING_ADMISSION_POLICY),
    Kind::new(GROUP, "ValidatingAdmissionPolicyBinding", BINDING),
    Kind::new(GROUP, "ValidatingWebhookConfiguration", WEBHOOKS),
];

const MUTATING_ADMISSION_POLICY: Columns = &[
    NAME,
    integer(
        "Mutations",
        Count("spec.mutations"),
        Words("Mutation indicates the number of mutations rules defined in this configuration"),
    ),
    PARAM_KIND,
    AGE,
];

const VALIDATING_ADMISSION_POLICY: Columns = &[
    NAME,
    integer(
        "Validations",
        Count("spec.validations"),
        Words("Validations indicates the number of validation rules defined in this configuration"),
    ),
    PARAM_KIND,
    AGE,
];

const PARAM_KIND: Column = string(
    "ParamKind",
    By(param_kind),
    Words("ParamKind specifies the kind of resources used to parameterize this policy"),
);

const BINDING: Columns = &[
    NAME,
    string(
        "PolicyName",
        Text("spec.policyName"),
        Words("PolicyName indicates the policy definition which the policy binding binded to"),
    ),
    string(
        "ParamRef",
        By(param_ref),
        Words("ParamRef indicates the param resource which sets the configuration param"),
    ),
    AGE,
];

const WEBHOOKS: Columns = &[
    NAME,
    integer(
        "Webhooks",
        Count("webhooks"),
        Words("Webhooks indicates the number of webhooks registered in this configuration"),
    ),
    AGE,
];

fn param_kind(policy: &Value) -> Value {
    match at(policy, "spec.paramKind") {
        Some(kind) => format!("{}/{}", str_at(kind, "apiVersion"), str_at(kind, "kind")).into(),
        None => "<unset>".into(),
    }
}

fn param_ref(binding: &Value) -> Value {
    let param = at(binding, "spec.paramRef").unwrap_or(&Value::Null);
    match (str_at(param, "name"), str_at(param, "namespace"), at(param, "selector")) {
        ("", _, Some(selector)) => selector_in_go(selector).into(),
        ("", _, None) => "<unset>".into(),
        (name, "", _) => format!("*/{name}").into(),
        (name, namespace, _) => format!("{namespace}/{name}").into(),
    }
}

/// A label selector in Go's debug format, which upstream's cell has.
fn selector_in_go(selector: &Value) -> String {
    let labels = at(selector, "matchLabels").and_then(Value::as_object);
    let labels: String = labels
        .into_iter()
        .flat_map(|labels| labels.iter())
        .map(|(key, value)| format!("{key}: {},", value.as_str().unwrap_or_default()))
        .collect();
    let expressions: String = items_at(selector, "matchExpressions")
        .iter()
        .map(|expression| {
            let values = items_at(expression, "values").iter().filter_map(Value::as_str);
            format!(
                "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
                str_at(expression, "key"),
                str_at(expression, "operator"),
                joined_with(values, " "),
            )
        })
        .collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

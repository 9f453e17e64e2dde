//! networking.k8s.io.

use pintle_value::Value;

use super::column::Cell::{By, JoinedOr, Selector, Text, TextOr};
use super::column::Description::{Field, Words};
use super::column::{AGE, NAME, NAME_TEXT, string};
use super::read::{annotation, at, items_at, str_at};
use super::text::{SHOWN_MAX, filled, joined, load_balancer, qualified, with_more};
use super::{Columns, Kind};

const GROUP: &str = "networking.k8s.io";

pub(super) const KINDS: &[Kind] = &[
    Kind::new(GROUP, "IPAddress", IP_ADDRESS),
    Kind::new(GROUP, "Ingress", INGRESS),
    Kind::new(GROUP, "IngressClass", INGRESS_CLASS),
    Kind::new(GROUP, "NetworkPolicy", NETWORK_POLICY),
    Kind::new(GROUP, "ServiceCIDR", SERVICE_CIDR),
];

/// Upstream declares no column for the age, but rows have a cell for it; clients accept this.
const IP_ADDRESS: Columns = &[
    NAME,
    string("ParentRef", By(parent), Field("networking.v1.IPAddressSpec", "parentRef")),
    AGE.undeclared(),
];

const INGRESS: Columns = &[
    NAME,
    string(
        "Class",
        TextOr("spec.ingressClassName", "<none>"),
        Words(
            "The name of the IngressClass resource that should be used for additional configuration",
        ),
    ),
    string(
        "Hosts",
        By(hosts),
        Words("Hosts that incoming requests are matched against before the ingress rule"),
    ),
    string(
        "Address",
        By(|i| load_balancer(i).into()),
        Words("Address is a list containing ingress points for the load-balancer"),
    ),
    string("Ports", By(ports), Words("Ports of TLS configurations that open")),
    AGE,
];

const INGRESS_CLASS: Columns = &[
    string("Name", By(ingress_class_name), NAME_TEXT).named(),
    string(
        "Controller",
        Text("spec.controller"),
        Words("Controller that is responsible for handling this class"),
    ),
    string(
        "Parameters",
        By(parameters),
        Words("A reference to a resource with additional parameters"),
    ),
    AGE,
];

const NETWORK_POLICY: Columns = &[
    NAME,
    string(
        "Pod-Selector",
        Selector("spec.podSelector"),
        Field("networking.v1.NetworkPolicySpec", "podSelector"),
    ),
    AGE,
];

const SERVICE_CIDR: Columns = &[
    NAME,
    string("CIDRs", JoinedOr("spec.cidrs", ""), Field("networking.v1.ServiceCIDRSpec", "cidrs")),
    AGE,
];

fn parent(address: &Value) -> Value {
    let Some(parent) = at(address, "spec.parentRef") else { return "<none>".into() };
    let resource = qualified(str_at(parent, "resource"), str_at(parent, "group")).to_lowercase();
    match (str_at(parent, "namespace"), str_at(parent, "name")) {
        ("", name) => format!("{resource}/{name}").into(),
        (namespace, name) => format!("{resource}/{namespace}/{name}").into(),
    }
}

/// The first hosts that rules name. Upstream counts rules, not hosts, for "more".
fn hosts(ingress: &Value) -> Value {
    let rules = items_at(ingress, "spec.rules");
    let named = rules.iter().enumerate().filter(|(_, rule)| !str_at(rule, "host").is_empty());
    let shown: Vec<_> = named.take(SHOWN_MAX).collect();
    let more = match shown.get(SHOWN_MAX - 1) {
        Some((last, _)) if last + 1 < rules.len() => rules.len() - SHOWN_MAX,
        _ => 0,
    };
    let hosts = joined(shown.iter().map(|(_, rule)| str_at(rule, "host")));
    with_more(filled(&hosts, "*").to_owned(), more).into()
}

fn ports(ingress: &Value) -> Value {
    if items_at(ingress, "spec.tls").is_empty() { "80" } else { "80, 443" }.into()
}

fn ingress_class_name(class: &Value) -> Value {
    let name = str_at(class, "metadata.name");
    match annotation(class, "ingressclass.kubernetes.io/is-default-class") {
        Some("true") => format!("{name} (default)").into(),
        _ => name.into(),
    }
}

fn parameters(class: &Value) -> Value {
    let Some(parameters) = at(class, "spec.parameters") else { return "<none>".into() };
    let (kind, name) = (str_at(parameters, "kind"), str_at(parameters, "name"));
    match at(parameters, "apiGroup").and_then(Value::as_str) {
        Some(group) => format!("{kind}.{group}/{name}").into(),
        None => format!("{kind}/{name}").into(),
    }
}

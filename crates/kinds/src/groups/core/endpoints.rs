//! Endpoints, which endpoint slices have replaced.

use pintle_meta::{names, object};
use pintle_value::Value;

use crate::{
    addresses::special_ip,
    checks::{WARNINGS_MAX, items},
    defaults::{
        Constant::Text,
        Row::{Each as EachOf, Empty},
        set,
    },
    field::{Errors, Field},
    formats::{ip, odd_ip},
    rules::{
        Rule::{Choice, Do, Each, Formatted, Given, Port},
        Rules, check, errors,
    },
    strategy::{PLAIN, Strategy},
};

pub(super) const ENDPOINTS: Strategy = Strategy {
    create_on_update: true,
    default: |object| {
        set(object, &[EachOf("subsets", &[EachOf("ports", &[Empty("protocol", Text("TCP"))])])]);
    },
    validate: |new, old| {
        // Stored subsets are accepted.
        if old.is_some_and(|old| old.get("subsets") == new.get("subsets")) {
            return Errors::new();
        }
        errors(new, if is_servers_own(new) { OWN_RULES } else { RULES })
    },
    warnings: |new, _| odd_addresses(new),
    ..PLAIN
};

const RULES: Rules = &[Each(
    "subsets",
    &[
        Do(check_filled),
        Each("addresses", REACHABLE_ADDRESS),
        Each("notReadyAddresses", REACHABLE_ADDRESS),
        Do(check_ports),
    ],
)];

const OWN_RULES: Rules = &[Each(
    "subsets",
    &[
        Do(check_filled),
        Each("addresses", ADDRESS),
        Each("notReadyAddresses", ADDRESS),
        Do(check_ports),
    ],
)];

fn check_filled(subset: &Field<'_>, errors: &mut Errors) {
    if subset.get("addresses").is_empty() && subset.get("notReadyAddresses").is_empty() {
        errors.push(subset.required("must specify `addresses` or `notReadyAddresses`"));
    }
}

const ADDRESS: Rules = &[
    Do(|address, errors| address.get("ip").all_invalid(ip(address.str("ip")), errors)),
    Formatted("hostname", names::dns1123_label),
    Do(|address, errors| {
        if let Some(node) = address.find("nodeName") {
            node.all_invalid(names::dns1123_subdomain(node.text()), errors);
        }
    }),
];

const REACHABLE_ADDRESS: Rules = &[
    Do(|address, errors| check(address, ADDRESS, errors)),
    Do(|address, errors| address.get("ip").all_invalid(special_ip(address.str("ip")), errors)),
];

/// Whether the endpoints are those of the API server itself, which only its own machine may be able
/// to reach.
pub(crate) fn is_servers_own(endpoints: &Value) -> bool {
    object::namespace(endpoints) == "default" && object::name(endpoints).starts_with("kubernetes")
}

const PORT: Rules = &[
    Port("port"),
    Choice("protocol", &["SCTP", "TCP", "UDP"]),
    Given("appProtocol", names::qualified_name),
];

fn check_ports(subset: &Field<'_>, errors: &mut Errors) {
    let ports = subset.items("ports");
    let needs_names = ports.len() > 1;
    for port in ports {
        let name = port.get("name");
        if !name.is_empty() {
            name.all_invalid(names::dns1123_label(name.text()), errors);
        } else if needs_names {
            errors.push(name.required(""));
        }
        check(&port, PORT, errors);
    }
}

/// Warns of addresses that are not in canonical form, but not in the controller's objects, which
/// users cannot correct.
fn odd_addresses(endpoints: &Value) -> Vec<String> {
    const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
    let labels = object::labels(endpoints);
    if labels.is_some_and(|labels| labels.contains_key(MANAGED_BY)) {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    for (i, subset) in items(endpoints, &["subsets"]).iter().enumerate() {
        for list in ["addresses", "notReadyAddresses"] {
            let odd = items(subset, &[list]).iter().enumerate().filter_map(|(j, address)| {
                let odd = odd_ip(address.str_at(&["ip"])?)?;
                Some(format!("subsets[{i}].{list}[{j}].ip: {odd}"))
            });
            warnings.extend(odd.take(WARNINGS_MAX.saturating_sub(warnings.len())));
        }
    }
    warnings
}

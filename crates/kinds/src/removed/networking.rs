//! Ingresses, their classes, and network policies, in `extensions/v1beta1` and
//! `networking.k8s.io/v1beta1` (MIG-29 … MIG-32, MIG-36).
//!
//! Upstream: `pkg/apis/{extensions,networking}/v1beta1/{conversion,defaults}.go`.

use pintle_value::{Map, Value};

use super::{Removed, members_at, same};
use crate::{
    conversion::set_api_version,
    defaults::{
        Condition::Filled,
        Constant::{Text, Texts},
        Defaults,
        Row::{At, Each, Empty, In, Unset, When},
        set,
    },
    kind::Form,
    strategy::Strategy,
};

pub(super) const ROWS: &[Removed] = &[
    Removed {
        form: Form {
            version: "v1beta1",
            to_stored: to_v1,
            from_stored: |object| from_v1(object, "extensions/v1beta1"),
        },
        strategy: |today| Strategy { default: |object| set(object, INGRESS), ..today.clone() },
        ..same!(
            "extensions" / "v1beta1",
            "extensions",
            "ingresses",
            "Ingress",
            "networking.k8s.io" / "v1",
            14..22
        )
    },
    Removed {
        strategy: |today| Strategy {
            default: |object| set(object, NETWORK_POLICY),
            ..today.clone()
        },
        ..same!(
            "extensions" / "v1beta1",
            "extensions",
            "networkpolicies",
            "NetworkPolicy",
            "networking.k8s.io" / "v1",
            9..16
        )
    },
    Removed {
        replacement: "",
        ..same!(
            "networking.k8s.io" / "v1alpha1",
            "networking",
            "ipaddresses",
            "IPAddress",
            "networking.k8s.io" / "v1",
            30..33
        )
    },
    Removed {
        replacement: "",
        ..same!(
            "networking.k8s.io" / "v1alpha1",
            "networking",
            "servicecidrs",
            "ServiceCIDR",
            "networking.k8s.io" / "v1",
            30..33
        )
    },
    Removed {
        // As in upstream, the replacement is the list kind.
        replacement: "networking.k8s.io/v1 IngressClassList",
        strategy: |today| Strategy { default: |_| {}, ..today.clone() },
        ..same!(
            "networking.k8s.io" / "v1beta1",
            "networking",
            "ingressclasses",
            "IngressClass",
            "networking.k8s.io" / "v1",
            19..22
        )
    },
    Removed {
        form: Form {
            version: "v1beta1",
            to_stored: to_v1,
            from_stored: |object| from_v1(object, "networking.k8s.io/v1beta1"),
        },
        strategy: |today| Strategy { default: |object| set(object, INGRESS), ..today.clone() },
        ..same!(
            "networking.k8s.io" / "v1beta1",
            "networking",
            "ingresses",
            "Ingress",
            "networking.k8s.io" / "v1",
            19..22
        )
    },
];

const INGRESS: Defaults = &[At(
    "spec",
    &[Each(
        "rules",
        &[At("http", &[Each("paths", &[Unset("pathType", Text("ImplementationSpecific"))])])],
    )],
)];

/// Unlike in v1, ports have no default protocol.
const NETWORK_POLICY: Defaults = &[In(
    "spec",
    &[
        When(Filled("egress"), &[Empty("policyTypes", Texts(&["Ingress", "Egress"]))]),
        Empty("policyTypes", Texts(&["Ingress"])),
    ],
)];

fn to_v1(ingress: &mut Value) {
    set_api_version(ingress, "networking.k8s.io/v1");
    let spec = members_at(ingress, &["spec"]);
    if let Some(mut backend) = spec.remove("backend").filter(|backend| !backend.is_null()) {
        backend_to_v1(backend.make_object());
        spec.insert("defaultBackend", backend);
    }
    each_backend(spec, backend_to_v1);
}

fn from_v1(ingress: &mut Value, api_version: &'static str) {
    set_api_version(ingress, api_version);
    let spec = members_at(ingress, &["spec"]);
    if let Some(mut backend) = spec.remove("defaultBackend").filter(|backend| !backend.is_null()) {
        backend_from_v1(backend.make_object());
        spec.insert("backend", backend);
    }
    each_backend(spec, backend_from_v1);
}

fn each_backend(spec: &mut Map, change: fn(&mut Map)) {
    let rules = spec.get_mut("rules").and_then(Value::as_array_mut);
    for rule in rules.into_iter().flatten() {
        let http = rule.get_mut("http").and_then(Value::as_object_mut);
        let paths = http.and_then(|http| http.get_mut("paths")).and_then(Value::as_array_mut);
        for path in paths.into_iter().flatten().filter_map(Value::as_object_mut) {
            change(path.entry_object("backend"));
        }
    }
}

/// Converts `serviceName` and `servicePort`, a number or a name, to a service.
fn backend_to_v1(backend: &mut Map) {
    let name = backend.remove("serviceName").filter(|name| name.as_str() != Some(""));
    let port = backend.remove("servicePort").filter(|port| !port.is_null());
    let port = port.filter(|port| *port != Value::Int(0));
    if name.is_none() && port.is_none() {
        return;
    }
    let service = backend.entry_object("service");
    service.insert("name", name.unwrap_or_else(|| Value::from("")));
    let ports = service.entry_object("port");
    match port {
        Some(Value::Int(number)) => _ = ports.insert("number", number),
        Some(name) if name.as_str() != Some("") => _ = ports.insert("name", name),
        _ => {}
    }
}

fn backend_from_v1(backend: &mut Map) {
    let service = backend.remove("service").unwrap_or_default();
    if let Some(name) = service.get("name").filter(|name| name.as_str() != Some("")) {
        backend.insert("serviceName", name.clone());
    }
    let port = service.get("port").cloned().unwrap_or_default();
    let name = port.get("name").filter(|name| name.as_str().is_some_and(|name| !name.is_empty()));
    let number = || port.get("number").cloned().unwrap_or(Value::Int(0));
    let port = name.cloned().unwrap_or_else(number);
    backend.insert("servicePort", port);
}

//! CertificateSigningRequests: three controllers approve those of nodes, sign approved ones, and
//! delete old ones, as in upstream.

mod approval;
mod cleaning;
mod signing;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use pintle_meta::Status;
use pintle_registry::Resource;
use pintle_registry::request::{WriteOptions, granted};
use pintle_value::Value;

use crate::{Environment, body, target};

pub use approval::run as approve;
pub use cleaning::run as clean;
pub use signing::{Order, Signer, run as sign};

const USER: &str = "system:serviceaccount:kube-system:certificate-controller";

fn requests(environment: &Environment) -> Option<Arc<Resource>> {
    environment.resource("certificates.k8s.io", "v1", "certificatesigningrequests")
}

/// Returns a signing request, if it exists.
fn current(
    environment: &Environment,
    requests: &Resource,
    name: &str,
) -> Result<Option<Value>, Status> {
    let stored = environment.registry.peek(requests, "", name);
    Ok(stored.map(|request| request.tree()).transpose()?)
}

/// Whether the condition of that type is true.
fn has(request: &Value, kind: &str) -> bool {
    conditions(request).iter().any(|condition| {
        condition.str_at(&["type"]) == Some(kind) && condition.str_at(&["status"]) == Some("True")
    })
}

fn conditions(request: &Value) -> &[Value] {
    request.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default()
}

/// Adds a condition with the status `True`.
fn add_condition(request: &mut Value, kind: &str, reason: &str, message: &str) {
    let mut all = conditions(request).to_vec();
    all.push(Value::from([
        ("type", kind),
        ("status", "True"),
        ("reason", reason),
        ("message", message),
    ]));
    request.object_entry("status").insert("conditions", all);
}

/// Decodes the PEM text in a base64 member.
fn pem(request: &Value, path: &[&str]) -> Vec<u8> {
    BASE64.decode(request.str_at(path).unwrap_or_default()).unwrap_or_default()
}

fn usages(request: &Value) -> Vec<&str> {
    let list = request.at(&["spec", "usages"]).and_then(Value::as_array).unwrap_or_default();
    list.iter().filter_map(Value::as_str).collect()
}

/// Writes a subresource of a request.
async fn write(
    environment: &Environment,
    requests: &Arc<Resource>,
    part: &str,
    request: &Value,
) -> Result<(), Status> {
    let part = target(requests, "", pintle_meta::object::name(request), part);
    let (body, options) = (body(request), WriteOptions::default());
    let context = environment.context(USER);
    environment.registry.update(&part, &body, &options, &context, &granted).await.map(|_| ())
}

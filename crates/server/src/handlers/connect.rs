//! Subresources that connect to something else: logs, exec, attach, port-forward, proxies. Where a
//! connection would go is found out, and what makes it impossible is told; but for logs, the connection
//! itself is not made yet.

mod log;

use pintle_effects::{Destination, destination};
use pintle_meta::{Reason, Status};
use pintle_value::{Map, Value};

use super::Call;
use crate::respond::Response;
use crate::target::Found;

pub(super) async fn connect(call: &Call<'_>, found: &Found) -> Result<Response, Status> {
    let container = call.query.text("container");
    let kind = found.subresource.as_ref().map_or("", |part| part.kind.kind.as_str());
    if let Some((_, members)) = OPTIONS.iter().find(|(known, _)| *known == kind) {
        let (registry, context) = (&call.api.registry, call.context());
        registry.admit_connection(&found.target, options(call, members), &context).await?;
    }
    let target = &found.target;
    if target.resource.resource.resource == "pods" && target.subresource == "log" {
        return log::log(call, found).await;
    }
    let preferred = &call.api.kubelets.preferred_address_types;
    match destination(&call.api.registry, &found.target, container, preferred)? {
        Destination::Nothing => Err(unreachable("a pod without a node")),
        Destination::Kubelet { kubelet, .. }
            if found.target.resource.resource.resource == "pods" =>
        {
            let why = format!(
                "error dialing backend: the kubelet at {} cannot be reached: this server streams nothing yet",
                kubelet.authority()
            );
            Err(Status::failure(Reason::Unknown, why))
        }
        Destination::Kubelet { kubelet, .. } => Err(unreachable(&kubelet.authority())),
        Destination::Address { host, .. } => Err(unreachable(&host)),
    }
}

/// How a member of options stands in a URL.
enum Form {
    Bool,
    Text,
    Texts,
    Ints,
    /// The rest of the path, behind that of the subresource.
    Path,
}

const STREAMS: &[(&str, Form)] = &[
    ("stdin", Form::Bool),
    ("stdout", Form::Bool),
    ("stderr", Form::Bool),
    ("tty", Form::Bool),
    ("container", Form::Text),
    ("command", Form::Texts),
];
const PORTS: &[(&str, Form)] = &[("ports", Form::Ints)];
const PATH: &[(&str, Form)] = &[("path", Form::Path)];

/// The kinds of options by which connections are made, which admission sees, and their members.
const OPTIONS: &[(&str, &[(&str, Form)])] = &[
    ("NodeProxyOptions", PATH),
    ("PodAttachOptions", STREAMS),
    ("PodExecOptions", STREAMS),
    ("PodPortForwardOptions", PORTS),
    ("PodProxyOptions", PATH),
    ("ServiceProxyOptions", PATH),
];

/// The options of a connection as an object; what is not said is left out.
fn options(call: &Call<'_>, members: &[(&str, Form)]) -> Value {
    let mut object = Map::new();
    for (name, form) in members {
        let said = call.query.get(name);
        let value = match form {
            Form::Bool => said.filter(|said| !matches!(*said, "0" | "false")).map(|_| true.into()),
            Form::Text => said.filter(|said| !said.is_empty()).map(Value::from),
            Form::Texts => {
                said.map(|_| Value::Array(call.query.all(name).map(Value::from).collect()))
            }
            Form::Ints => {
                let numbers = call.query.all(name).filter_map(|said| said.parse().ok());
                said.map(|_| Value::Array(numbers.map(Value::Int).collect()))
            }
            Form::Path => {
                let rest = call.info.resource.as_ref().map(|info| info.subpath.as_str());
                rest.filter(|rest| !rest.is_empty()).or(said).map(Value::from)
            }
        };
        if let Some(value) = value {
            object.insert(*name, value);
        }
    }
    object.into()
}

fn unreachable(what: &str) -> Status {
    Status::service_unavailable(format!(
        "error trying to reach service: {what}: this server does not connect to others yet"
    ))
}

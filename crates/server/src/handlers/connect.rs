//! The subresources that connect a client to a backend: log, exec, attach, portforward, proxy.

mod log;
mod proxy;
mod stream;

use pintle_meta::{Reason, Status};
use pintle_value::{Map, Value};

use super::Call;
use crate::body::{RequestBody, Upload};
use crate::options::number_error;
use crate::request_info::flag;
use crate::respond::Response;
use crate::target::Found;

/// Serves a connecting subresource. Its response is a session: the client may pause it for hours.
pub(crate) async fn connect(
    call: &Call<'_>,
    found: &Found,
    body: &mut Upload<impl RequestBody + Send + 'static>,
) -> Result<Response, Status> {
    let mut response = answer(call, found, body).await?;
    response.body_mut().begin_session();
    Ok(response)
}

/// Reads the options, runs admission on them, and calls the subresource's handler.
async fn answer(
    call: &Call<'_>,
    found: &Found,
    body: &mut Upload<impl RequestBody + Send + 'static>,
) -> Result<Response, Status> {
    let (target, registry) = (&found.target, &call.api.registry);
    registry.catch_up().await?;
    if target.subresource == "log" {
        return log::log(call, found).await;
    }
    if call.query.has("dryRun") {
        return Err(Status::bad_request("dryRun is not supported")); // DRY-14
    }
    let kind = found.subresource.as_ref().map_or("", |part| part.kind.kind.as_str());
    let members = OPTIONS.iter().find(|(known, _)| *known == kind);
    let options = options(call, members.map_or(&[], |(_, members)| members))?;
    registry.admit_connection(target, options.clone(), &call.context()).await?;
    match target.subresource.as_str() {
        "exec" | "attach" | "portforward" => stream::stream(call, found, &options).await,
        _ => proxy::proxy(call, found, body.take()).await,
    }
}

/// The type of an option in the query.
enum Form {
    Bool,
    Text,
    Texts,
    /// Port numbers; one value may hold several, separated by commas.
    Ports,
    /// The path behind the subresource. The query cannot set it.
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
const PORTS: &[(&str, Form)] = &[("ports", Form::Ports)];
const PATH: &[(&str, Form)] = &[("path", Form::Path)];

/// The option kinds that admission sees, with their members.
const OPTIONS: &[(&str, &[(&str, Form)])] = &[
    ("NodeProxyOptions", PATH),
    ("PodAttachOptions", STREAMS),
    ("PodExecOptions", STREAMS),
    ("PodPortForwardOptions", PORTS),
    ("PodProxyOptions", PATH),
    ("ServiceProxyOptions", PATH),
];

/// Builds the options object; absent options are left out.
fn options(call: &Call<'_>, members: &[(&str, Form)]) -> Result<Value, Status> {
    let mut object = Map::new();
    for (name, form) in members {
        let value = call.query.get(name);
        let value = match form {
            Form::Bool => flag(value).then(|| true.into()),
            Form::Text => value.filter(|value| !value.is_empty()).map(Value::from),
            Form::Texts => {
                value.map(|_| Value::Array(call.query.all(name).map(Value::from).collect()))
            }
            Form::Ports => {
                let ports = call.query.all(name).flat_map(|value| value.split(',')).map(port);
                value.map(|_| ports.collect::<Result<_, _>>().map(Value::Array)).transpose()?
            }
            Form::Path => {
                let rest = call.info.resource.as_ref().map(|info| info.subpath.as_str());
                rest.filter(|rest| !rest.is_empty()).map(Value::from)
            }
        };
        if let Some(value) = value {
            object.insert(*name, value);
        }
    }
    Ok(object.into())
}

/// Parses a port, or returns upstream's 400.
fn port(text: &str) -> Result<Value, Status> {
    let number = text.parse::<u16>().map_err(|error| {
        let why = number_error("ParseUint", text, error.kind());
        Status::bad_request(format!("cannot convert to []int32: {why}"))
    })?;
    Ok(Value::Int(i64::from(number)))
}

/// The error of a backend that is unreachable or breaks its protocol; the text is upstream's.
fn failed(why: String) -> Status {
    Status::failure(Reason::Unknown, why)
}

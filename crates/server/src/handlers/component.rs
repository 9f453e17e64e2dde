//! `componentstatuses`: the health of this server's store, and of the components that upstream
//! expects beside a server.

use bytes::Bytes;
use futures_util::future::join_all;
use pintle_meta::{GroupResource, Status, fields, labels};
use pintle_registry::Verb;
use pintle_value::Value;

use super::Call;
use crate::options::list_options;
use crate::probe;
use crate::respond::{self, Item, Response};
use crate::target::Found;

/// The components, sorted by name, with the local port of their `/healthz`; `None` for this
/// server's own store.
const COMPONENTS: [(&str, Option<u16>); 3] =
    [("controller-manager", Some(10257)), ("etcd-0", None), ("scheduler", Some(10259))];

/// Serves GET of one component status or of all.
pub(super) async fn read(call: &Call<'_>, found: &Found) -> Result<Response, Status> {
    let (negotiated, rendering) = call.negotiate(found)?;
    if call.info.verb.is(Verb::Get) {
        let name = found.target.name.as_str();
        let component = COMPONENTS.into_iter().find(|(known, _)| *known == name);
        let component = component
            .ok_or_else(|| Status::not_found(&GroupResource::new("", "componentstatus"), name))?;
        let body = rendering.document(&status(call, found, component).await)?;
        return Ok(respond::object(200, body, rendering.type_name(), negotiated));
    }
    let selected = Selected::of(call, found)?;
    let components = COMPONENTS.into_iter().filter(|(name, _)| selected.has(name));
    let all = join_all(components.map(|component| status(call, found, component))).await;
    let items = all.into_iter().map(Item::Made).collect();
    respond::collection(b"{}", items, &rendering, negotiated, &call.api.runs).await
}

/// The selectors of a list.
struct Selected {
    labels: labels::Selector,
    fields: fields::Selector,
}

impl Selected {
    fn of(call: &Call<'_>, found: &Found) -> Result<Self, Status> {
        let options = list_options(call.query)?;
        let malformed = |error: pintle_meta::Error| Status::bad_request(error.to_string());
        let labels = labels::Selector::parse(&options.label_selector).map_err(malformed)?;
        let fields = fields::Selector::parse(&options.field_selector).map_err(malformed)?;
        let known = ["metadata.name", "metadata.namespace"];
        match fields.requirements().iter().find(|one| !known.contains(&one.field.as_str())) {
            None => Ok(Self { labels, fields }),
            Some(unknown) => {
                let resource = &found.target.resource;
                let version = resource.api_version();
                let why = resource.strategy.unknown_field(&version, &unknown.field);
                Err(Status::bad_request(why))
            }
        }
    }

    /// Whether a component is selected. Components have no labels and no namespace.
    fn has(&self, name: &str) -> bool {
        let field = |field: &str| if field == "metadata.name" { name } else { "" };
        self.labels.matches(|_| None) && self.fields.matches(field)
    }
}

async fn status(call: &Call<'_>, found: &Found, (name, port): (&str, Option<u16>)) -> Bytes {
    let outcome = match (port, call.api.registry.check()) {
        (Some(port), _) => probe::healthz(port).await,
        (None, Ok(())) => Ok("ok".to_owned()),
        (None, Err(_)) => Err("the store takes no writes".to_owned()),
    };
    let status = if outcome.is_ok() { "True" } else { "False" };
    let (Ok(message) | Err(message)) = outcome;
    let condition = Value::from([
        ("type", Value::from("Healthy")),
        ("status", status.into()),
        ("message", message.into()),
    ]);
    let object = Value::from([
        ("kind", Value::from("ComponentStatus")),
        ("apiVersion", "v1".into()),
        ("metadata", Value::from([("name", Value::from(name))])),
        ("conditions", vec![condition].into()),
    ]);
    let (resource, mut json) = (&found.target.resource, Vec::new());
    pintle_schema::encode::write(&resource.schema, resource.ty, &object, &mut json);
    Bytes::from(json)
}

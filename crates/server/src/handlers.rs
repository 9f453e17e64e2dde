//! The handlers of the verbs on resources: they read options, call the registry, and write a
//! response.
//!
//! It must not know any kind. Exceptions: [`review`], [`component`] and [`token`] compute their
//! answers, and [`connect`] knows the subresources of pods, nodes and services.

mod component;
pub(crate) mod connect;
mod delete;
mod read;
mod review;
pub(crate) mod snapshot;
mod token;
mod watch;
mod write;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::header::{ACCEPT, USER_AGENT};
use http::request::Parts;
use parking_lot::Mutex;
use pintle_auth::User;
use pintle_meta::Status;
use pintle_registry::admission::Waited;
use pintle_registry::request::{Context, MayCreate, Now, Recorder, Refusal, Warnings};
use pintle_registry::results::{List, Outcome};
use pintle_registry::{SubresourceBehaviour, Verb};
use pintle_trace::{Attributes, Kind, Layer, Open, Timing};

use crate::api::Api;
use crate::audit::Record;
use crate::fairness::Seat;
use crate::header_text;
use crate::negotiation::{Form, Negotiated, Preferences};
use crate::options::{IncludeObject, table_options};
use crate::query::Query;
use crate::request_info::RequestInfo;
use crate::respond::{self, Rendering, Response};
use crate::target::Found;

/// An authorized request.
pub(crate) struct Call<'a> {
    pub(crate) api: &'a Arc<Api>,
    pub(crate) head: &'a Parts,
    pub(crate) query: &'a Query,
    pub(crate) info: &'a RequestInfo,
    pub(crate) user: &'a Arc<User>,
    /// The client's address.
    pub(crate) from: IpAddr,
    pub(crate) now: Now,
    /// The warnings for the client.
    pub(crate) warnings: &'a Warnings,
    /// The audit record, if the request is audited.
    pub(crate) record: Option<&'a Arc<Record>>,
    /// The time that the request spends in each layer.
    pub(crate) timing: &'a Arc<Timing>,
    /// The seats of the request under priority and fairness. A watch takes them and gives them back
    /// once its initial events are written.
    pub(crate) seat: &'a Mutex<Option<Seat>>,
}

/// Calls the handler of the request's verb.
pub(crate) async fn handle(call: &Call<'_>, found: Found, body: Bytes) -> Result<Response, Status> {
    if let Some(deprecation) = &found.target.resource.deprecation {
        call.warnings.add(deprecation.warning.as_str()); // DEP-12
        let (resource, subresource) = (&found.target.resource.resource, &found.target.subresource);
        let removed = deprecation.removed_release.as_deref().unwrap_or_default();
        call.api.metrics.deprecated(resource, subresource, removed); // DEP-14
        if let Some(record) = call.record {
            record.annotate("k8s.io/deprecated", "true"); // DEP-13
            if !removed.is_empty() {
                record.annotate("k8s.io/removed-release", removed);
            }
        }
    }
    let Some(verb) = call.info.verb.on_resource() else { return Err(Status::wrong_method()) };
    let describe = |it: &mut Attributes| describe(call, it);
    let _span = call.timing.open(span(verb), Kind::Internal, describe).map(Open::as_parent);
    match verb {
        Verb::Create if found.target.resource.action.is_some() => {
            write::create(call, &found, body).await
        }
        _ if found.is(&SubresourceBehaviour::Token) => token::create(call, &found, body).await,
        _ if found.target.resource.storage.is_none() => {
            Box::pin(virtual_resource(call, &found, verb, body)).await
        }
        Verb::Get => read::get(call, &found).await,
        Verb::List => Box::pin(read::list(call, &found)).await,
        Verb::Watch => Box::pin(watch::watch(call, &found)).await,
        Verb::Create => write::create(call, &found, body).await,
        Verb::Update => write::update(call, &found, body).await,
        Verb::Patch => write::patch(call, &found, body).await,
        Verb::Delete => delete::delete(call, &found, body).await,
        Verb::DeleteCollection => delete::delete_collection(call, &found, body).await,
    }
}

/// The name of a verb's span.
const fn span(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "Get",
        Verb::List => "List",
        Verb::Watch => "Watch",
        Verb::Create => "Create",
        Verb::Update => "Update",
        Verb::Patch => "Patch",
        Verb::Delete | Verb::DeleteCollection => "Delete",
    }
}

/// Adds the attributes of a verb's span (upstream: `traceFields`).
fn describe(call: &Call<'_>, span: &mut Attributes) {
    let header = |name| call.head.headers.get(name).map(header_text::text).unwrap_or_default();
    span.text("accept", &header(ACCEPT));
    span.text("client", &call.from.to_string());
    if let Some(named) = &call.info.resource {
        span.text("api-group", &named.group);
        span.text("api-version", &named.version);
        span.text("resource", &named.resource);
        span.text("subresource", &named.subresource);
        span.text("namespace", &named.namespace);
        span.text("name", &named.name);
        let scope = match (named.name.is_empty(), named.namespace.is_empty()) {
            (false, _) => "resource",
            (true, false) => "namespace",
            (true, true) => "cluster",
        };
        span.text("scope", scope);
    }
    span.text("protocol", &format!("{:?}", call.head.version));
    span.text("url", call.head.uri.path());
    span.text("user-agent", &header(USER_AGENT));
}

/// Answers a request for a resource whose objects are computed and not stored.
async fn virtual_resource(
    call: &Call<'_>,
    found: &Found,
    verb: Verb,
    body: Bytes,
) -> Result<Response, Status> {
    match verb {
        Verb::Get | Verb::List => component::read(call, found).await,
        _ => review::create(call, found, body).await,
    }
}

/// Authorizes the create that an update or apply of a missing object becomes.
impl MayCreate for Call<'_> {
    fn ask(&self) -> Waited<'_, ()> {
        Box::pin(self.api.authorize(self.user, Verb::Create, self.info))
    }
}

impl Call<'_> {
    /// The `Accept` header and the other preferences of the client.
    pub(crate) fn preferences(&self) -> Preferences<'_> {
        let preferences = Preferences::new(&self.head.headers, self.query);
        preferences.with_cbor(self.api.settings.cbor)
    }

    /// Negotiates the response's encoding and form, or returns 406.
    fn negotiate(&self, found: &Found) -> Result<(Negotiated, Rendering), Status> {
        let negotiated = self.preferences().answer(found.forms(), found.encodings())?;
        Ok((negotiated, self.rendering(found, negotiated)?))
    }

    fn rendering(&self, found: &Found, negotiated: Negotiated) -> Result<Rendering, Status> {
        let include = match negotiated.form {
            Form::Table(_) => table_options(self.query)?,
            _ => IncludeObject::default(),
        };
        let resource = &found.target.resource;
        let own = found.subresource.as_ref().and_then(|part| part.printer.as_ref());
        let printer = own.unwrap_or(&resource.printer).clone();
        Ok(Rendering {
            resource: resource.clone(),
            printer,
            form: negotiated.form,
            include,
            now: self.now.unix_seconds(),
        })
    }

    /// Encodes one object, or the answer about one.
    fn respond(
        &self,
        outcome: &Outcome,
        rendering: &Rendering,
        negotiated: Negotiated,
    ) -> Result<Response, Status> {
        if negotiated.is_stored_form() {
            return respond::outcome(outcome, rendering, negotiated); // nothing is encoded
        }
        let began = Instant::now();
        let response = respond::outcome(outcome, rendering, negotiated);
        self.timing.spent(encoding_layer(negotiated), began);
        response
    }

    /// Encodes the part of a list that is encoded before it is sent.
    async fn respond_list(
        &self,
        list: List,
        rendering: &Rendering,
        negotiated: Negotiated,
    ) -> Result<Response, Status> {
        let began = Instant::now();
        let response = respond::list(list, rendering, negotiated, &self.api.runs).await;
        self.timing.spent(encoding_layer(negotiated), began);
        response
    }

    /// The context of a call on the registry: user, user agent, time, warnings, audit.
    fn context(&self) -> Context {
        let agent = self.head.headers.get(USER_AGENT).map_or(&b""[..], |value| value.as_bytes());
        Context {
            now: self.now,
            user: self.user.clone(),
            verb: self.info.verb.on_resource(),
            user_agent: String::from_utf8_lossy(agent).into(),
            warnings: self.warnings.clone(),
            timing: self.timing.clone(),
            refusal: Refusal::default(),
            recorder: self.record.map(|record| record.clone() as Arc<dyn Recorder>),
        }
    }
}

/// The layer in which a response of this form is made.
const fn encoding_layer(negotiated: Negotiated) -> Layer {
    match negotiated.form {
        Form::Object => Layer::Encoding,
        _ => Layer::Transformation,
    }
}

//! Controllers that run in the server: what keeps objects in order when nobody asks.
//!
//! Each is a future that works until it is told to stop: it follows a watch and a few timers, writes
//! through the registry like anyone else, and keeps nothing that it could not find out again. Dropping
//! the future stops it just as well; a write under way is then done or not, as if the client of it had
//! gone away.
//!
//! Must not know: HTTP, how it is decided who may do what, where objects are kept, how keys sign.

pub mod aggregation;
pub mod availability;
pub mod bootstrap;
#[cfg(test)]
mod cluster;
pub mod definitions;
mod each_namespace;
mod events;
pub mod expiry;
pub mod extensions;
pub mod finished_jobs;
pub mod flow_schemas;
pub mod garbage;
pub mod identity;
pub mod leader;
pub mod legacy_tokens;
pub mod manifests;
pub mod measures;
pub mod namespaces;
pub mod peers;
pub mod policy_types;
pub mod quotas;
mod reconcile;
mod retry;
pub mod rival;
pub mod root_ca;
mod selection;
pub mod service_accounts;
pub mod service_addresses;
pub mod service_ports;
pub mod service_ranges;
pub mod signing_requests;
pub mod storage_protection;
pub mod token_secrets;

pub use extensions::{ExtensionRequest, ExtensionResource, ExtensionServers, Served};
pub use selection::{Controller, Selection, UnknownController};

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use pintle_meta::user::{service_account_groups, split_service_account};
use pintle_meta::{GroupVersionResource, Status, User};
use pintle_registry::request::{
    Body, Context, Encoding, Now, PatchType, Refusal, Target, Warnings, WriteOptions, granted,
};
use pintle_registry::{Registry, Resource};
use pintle_value::{Str, Value, json};

/// The user that the server itself is.
const SERVER: &str = "system:apiserver";

/// Tells the time.
pub type Clock = Arc<dyn Fn() -> Now + Send + Sync>;

/// What a controller works with.
#[derive(Clone)]
pub struct Environment {
    /// The objects.
    pub registry: Arc<Registry>,
    /// The time; sleeping is tokio's.
    pub clock: Clock,
    /// How far the garbage collector is.
    pub collector: Arc<garbage::Progress>,
    /// What is measured of queues.
    pub queues: Arc<measures::Queues>,
    /// How often API services became unavailable.
    pub lapses: Arc<measures::Lapses>,
    /// Servers of further resources.
    pub extensions: Arc<dyn ExtensionServers>,
}

impl Environment {
    /// What controllers work with that begin now.
    pub fn new(registry: Arc<Registry>, clock: Clock) -> Self {
        Self {
            registry,
            clock,
            collector: Arc::default(),
            queues: Arc::default(),
            lapses: Arc::default(),
            extensions: Arc::new(extensions::NoExtensionServers),
        }
    }

    /// With servers of further resources.
    #[must_use]
    pub fn with_extensions(self, extensions: Arc<dyn ExtensionServers>) -> Self {
        Self { extensions, ..self }
    }

    /// A controller as the author of a write: the server itself, or one that a kube-controller-manager
    /// would run, under the name that it has there. It may do everything.
    fn context(&self, user: &'static str) -> Context {
        let mut author = User::server(user);
        let user_agent = if user == SERVER { "kube-apiserver" } else { "kube-controller-manager" };
        author.groups.extend(account_groups(user));
        Context {
            now: (self.clock)(),
            user: Arc::new(author.authenticated()),
            user_agent: Str::const_new(user_agent),
            warnings: Warnings::default(),
            waited: Arc::default(),
            refusal: Refusal::default(),
            recorder: None,
        }
    }

    /// A controller as other servers know it, with the rights of its service account only.
    fn account(&self, user: &'static str) -> User {
        let groups = account_groups(user).collect();
        User { name: user.to_owned(), groups, ..User::default() }.authenticated()
    }

    /// How long it is until a moment, in microseconds since 1970; `None` where it is past.
    fn until(&self, moment: i64) -> Option<Duration> {
        let left = moment.saturating_sub((self.clock)().unix_micros);
        u64::try_from(left).ok().filter(|left| *left > 0).map(Duration::from_micros)
    }

    /// The resource of that name, if it is served.
    fn resource(&self, group: &str, version: &str, resource: &str) -> Option<Arc<Resource>> {
        self.registry.resource(&GroupVersionResource::new(group, version, resource))
    }
}

/// The groups of a service account.
fn account_groups(user: &str) -> impl Iterator<Item = String> {
    let account = split_service_account(user);
    account.into_iter().flat_map(|(namespace, _)| service_account_groups(namespace))
}

/// A collection, or one object of it, or a part of that.
fn target(resource: &Arc<Resource>, namespace: &str, name: &str, subresource: &str) -> Target {
    Target {
        resource: resource.clone(),
        namespace: namespace.into(),
        name: name.into(),
        subresource: subresource.into(),
    }
}

/// `namespace/name`, or `name`.
fn split(item: &str) -> (&str, &str) {
    item.split_once('/').unwrap_or(("", item))
}

/// An object as a request's body.
fn body(object: &Value) -> Body {
    Body { bytes: json::to_string(object).into(), encoding: Encoding::Json }
}

/// Applies a status to an object, as `manager`.
async fn apply_status(
    environment: &Environment,
    part: &Target,
    status: Value,
    manager: &'static str,
) -> Result<(), Status> {
    let configuration = Value::from([
        ("apiVersion", Value::from(part.resource.api_version())),
        ("kind", part.resource.kind.clone().into()),
        ("metadata", Value::from([("name", part.name.clone())])),
        ("status", status),
    ]);
    let field_manager = Str::const_new(manager);
    let options = WriteOptions { field_manager, force: true, ..WriteOptions::default() };
    let (patch, kind) = (body(&configuration).bytes, PatchType::Apply(Encoding::Json));
    let context = environment.context(SERVER);
    environment.registry.patch(part, &patch, kind, &options, &context, &granted).await.map(|_| ())
}

/// Works until told to stop.
async fn until(shutdown: impl Future<Output = ()>, work: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        () = shutdown => {}
        () = work => {}
    }
}

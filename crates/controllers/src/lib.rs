//! Controllers that run in the server and keep objects in the state that the API promises.
//!
//! Each controller is a future that runs until shutdown. It follows watches and timers, writes
//! through the registry as any client does, and has no state that it could not rebuild. Dropping
//! the future stops it; a write in progress is then committed or not, as after a client's
//! disconnection.
//!
//! The crate must not know HTTP, authorization, the store, or how keys sign.

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
mod pace;
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
pub mod storage_migration;
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

/// The user of the server's own writes.
const SERVER: &str = "system:apiserver";

/// Returns the current time.
pub type Clock = Arc<dyn Fn() -> Now + Send + Sync>;

/// The dependencies of every controller.
#[derive(Clone)]
pub struct Environment {
    /// The objects.
    pub registry: Arc<Registry>,
    /// The clock; tokio's timers do the sleeping.
    pub clock: Clock,
    /// The progress of the garbage collector.
    pub collector: Arc<garbage::Progress>,
    /// The measures of the queues.
    pub queues: Arc<measures::Queues>,
    /// Counts how often API services became unavailable.
    pub lapses: Arc<measures::Lapses>,
    /// The extension API servers.
    pub extensions: Arc<dyn ExtensionServers>,
}

impl Environment {
    /// Makes the environment of controllers without extension API servers.
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

    /// Adds extension API servers.
    #[must_use]
    pub fn with_extensions(self, extensions: Arc<dyn ExtensionServers>) -> Self {
        Self { extensions, ..self }
    }

    /// Returns the context of a controller's writes, as the server itself or under the name of the
    /// same controller in kube-controller-manager. Its user may do everything.
    fn context(&self, user: &'static str) -> Context {
        let mut author = User::server(user);
        let user_agent = if user == SERVER { "kube-apiserver" } else { "kube-controller-manager" };
        author.groups.extend(account_groups(user));
        Context {
            now: (self.clock)(),
            user: Arc::new(author.authenticated()),
            verb: None,
            user_agent: Str::const_new(user_agent),
            warnings: Warnings::default(),
            timing: Arc::default(),
            refusal: Refusal::default(),
            recorder: None,
        }
    }

    /// Returns the user as which a controller calls extension API servers: its service account.
    fn account(&self, user: &'static str) -> User {
        let groups = account_groups(user).collect();
        User { name: user.to_owned(), groups, ..User::default() }.authenticated()
    }

    /// Returns the time until a moment, in microseconds since 1970; `None` if it is past.
    fn until(&self, moment: i64) -> Option<Duration> {
        let left = moment.saturating_sub((self.clock)().unix_micros);
        u64::try_from(left).ok().filter(|left| *left > 0).map(Duration::from_micros)
    }

    /// Returns the resource of that name, if it is served.
    fn resource(&self, group: &str, version: &str, resource: &str) -> Option<Arc<Resource>> {
        self.registry.resource(&GroupVersionResource::new(group, version, resource))
    }
}

/// Returns the groups of a service account.
fn account_groups(user: &str) -> impl Iterator<Item = String> {
    let account = split_service_account(user);
    account.into_iter().flat_map(|(namespace, _)| service_account_groups(namespace))
}

/// Returns the target of a collection, of an object, or of a subresource.
fn target(resource: &Arc<Resource>, namespace: &str, name: &str, subresource: &str) -> Target {
    Target {
        resource: resource.clone(),
        namespace: namespace.into(),
        name: name.into(),
        subresource: subresource.into(),
    }
}

/// Splits `namespace/name`, or `name`.
fn split(item: &str) -> (&str, &str) {
    item.split_once('/').unwrap_or(("", item))
}

/// Encodes an object as a request body.
fn body(object: &Value) -> Body {
    Body { bytes: json::to_string(object).into(), encoding: Encoding::Json }
}

/// Applies a status to an object with the field manager `manager`.
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

/// Runs `work` until shutdown.
async fn until(shutdown: impl Future<Output = ()>, work: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        () = shutdown => {}
        () = work => {}
    }
}

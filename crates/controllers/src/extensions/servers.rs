//! The interface to extension API servers, for controllers that handle the objects of every API.

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use pintle_meta::{GroupVersionResource, Status, User};
use pintle_registry::request::DeleteOptions;
use pintle_value::{Str, Value};
use tokio::sync::watch;

/// Knows what extension API servers serve, and sends requests to them.
pub trait ExtensionServers: Send + Sync {
    /// Returns the results of the last discovery.
    fn served(&self) -> Served;

    /// Returns a receiver that changes with the discovery results. Without extension API servers
    /// its sender is dropped.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Sends a request as a user. If the server does not respond, the request fails after a
    /// timeout. It returns 404 for a missing object only if the response names that object: a
    /// server that answers 404 to everything proves nothing.
    fn ask<'a>(
        &'a self,
        user: &'a User,
        resource: &'a ExtensionResource,
        request: ExtensionRequest<'a>,
    ) -> BoxFuture<'a, Result<Value, Status>>;

    /// Watches the metadata of all objects of a resource after a resource version, as a user. Each
    /// event is `{"type": …, "object": …}`. The stream ends with the watch, after some minutes at
    /// most.
    fn watch<'a>(
        &'a self,
        user: &'a User,
        resource: &'a ExtensionResource,
        resource_version: &'a str,
    ) -> BoxFuture<'a, Result<BoxStream<'static, Value>, Status>>;
}

/// The results of discovery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Each resource in each version.
    pub resources: Vec<ExtensionResource>,
    /// The group versions (`GROUP/VERSION`) whose servers do not answer discovery requests.
    pub silent: Vec<String>,
}

/// A resource of an extension API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionResource {
    /// Group, version and plural name.
    pub resource: GroupVersionResource,
    /// The kind of the objects.
    pub kind: Str,
    /// Whether the objects are in namespaces.
    pub namespaced: bool,
    /// The supported verbs.
    pub verbs: Vec<String>,
    /// Whether this is the group's preferred version of the resource.
    pub is_preferred: bool,
}

impl ExtensionResource {
    /// Returns the group version (`GROUP/VERSION`).
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.resource.group, self.resource.version)
    }

    /// Whether the resource supports a verb.
    pub fn has(&self, verb: &str) -> bool {
        self.verbs.iter().any(|served| served == verb)
    }
}

/// A request for objects of a resource; `namespace` is `""` for cluster-scoped objects and for all
/// namespaces.
#[derive(Clone, Copy, Debug)]
pub enum ExtensionRequest<'a> {
    /// Lists the metadata of objects page by page; the token `""` asks for the first page.
    List { namespace: &'a str, continue_token: &'a str },
    /// Gets the metadata of one object.
    Get { namespace: &'a str, name: &'a str },
    /// Patches one object with a merge patch.
    Patch { namespace: &'a str, name: &'a str, patch: &'a Value },
    /// Deletes all objects in a namespace.
    DeleteCollection { namespace: &'a str, options: &'a DeleteOptions },
    /// Deletes one object.
    Delete { namespace: &'a str, name: &'a str, options: &'a DeleteOptions },
}

/// An environment without extension API servers.
pub(crate) struct NoExtensionServers;

impl ExtensionServers for NoExtensionServers {
    fn served(&self) -> Served {
        Served::default()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }

    fn ask<'a>(
        &'a self,
        _: &'a User,
        _: &'a ExtensionResource,
        _: ExtensionRequest<'a>,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async { Err(Status::no_such_path()) })
    }

    fn watch<'a>(
        &'a self,
        _: &'a User,
        _: &'a ExtensionResource,
        _: &'a str,
    ) -> BoxFuture<'a, Result<BoxStream<'static, Value>, Status>> {
        Box::pin(async { Err(Status::no_such_path()) })
    }
}

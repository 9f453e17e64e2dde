//! The resources of extension API servers, for controllers that look after the objects of every API.

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use pintle_meta::{GroupVersionResource, Status, User};
use pintle_registry::request::DeleteOptions;
use pintle_value::{Str, Value};
use tokio::sync::watch;

/// Knows what extension API servers serve, and asks them.
pub trait ExtensionServers: Send + Sync {
    /// What they said last of what they serve.
    fn served(&self) -> Served;

    /// Tells when what they serve has changed; where there are none, its sender is gone.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Sends a request as a user. A server that does not answer gives an error after a while. An object that
    /// is not there gives 404 only if the answer names it: whoever answers 404 to everything has no say.
    fn ask<'a>(
        &'a self,
        user: &'a User,
        resource: &'a ExtensionResource,
        request: ExtensionRequest<'a>,
    ) -> BoxFuture<'a, Result<Value, Status>>;

    /// Begins to watch the metadata of all objects of a resource after a resource version, as a user. Each
    /// event is `{"type": …, "object": …}`. The stream ends with the watch, after some minutes at most.
    fn watch<'a>(
        &'a self,
        user: &'a User,
        resource: &'a ExtensionResource,
        resource_version: &'a str,
    ) -> BoxFuture<'a, Result<BoxStream<'static, Value>, Status>>;
}

/// What extension API servers serve.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Each resource in each version.
    pub resources: Vec<ExtensionResource>,
    /// The versions of groups (`GROUP/VERSION`) whose servers do not say what is in them.
    pub silent: Vec<String>,
}

/// A resource of an extension API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionResource {
    /// Its name.
    pub resource: GroupVersionResource,
    /// The kind of its objects.
    pub kind: Str,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// What can be done with it.
    pub verbs: Vec<String>,
    /// Whether this is the preferred one of the versions of its group that have it.
    pub is_preferred: bool,
}

impl ExtensionResource {
    /// The version of a group that it belongs to (`GROUP/VERSION`).
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.resource.group, self.resource.version)
    }

    /// Whether a verb is served.
    pub fn has(&self, verb: &str) -> bool {
        self.verbs.iter().any(|served| served == verb)
    }
}

/// A request about objects of a resource; `namespace` is `""` for those of the cluster and for all namespaces.
#[derive(Clone, Copy, Debug)]
pub enum ExtensionRequest<'a> {
    /// A page of the metadata of objects: the first where the token is `""`.
    List { namespace: &'a str, continue_token: &'a str },
    /// The metadata of one object.
    Get { namespace: &'a str, name: &'a str },
    /// A merge patch of one object.
    Patch { namespace: &'a str, name: &'a str, patch: &'a Value },
    /// The deletion of all objects in a namespace.
    DeleteCollection { namespace: &'a str, options: &'a DeleteOptions },
    /// The deletion of one object.
    Delete { namespace: &'a str, name: &'a str, options: &'a DeleteOptions },
}

/// Where there are none.
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

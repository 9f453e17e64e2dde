//! The resources of extension API servers, for controllers that look after the objects of every API.

use futures_util::future::BoxFuture;
use pintle_meta::{GroupVersionResource, Status, User};
use pintle_registry::request::DeleteOptions;
use pintle_value::{Str, Value};

/// Knows what extension API servers serve, and asks them.
pub trait ExtensionServers: Send + Sync {
    /// What they said last of what they serve.
    fn served(&self) -> Served;

    /// Sends a request as a user. A server that does not answer gives an error after a while.
    fn ask<'a>(
        &'a self,
        user: &'a User,
        resource: &'a ExtensionResource,
        request: ExtensionRequest<'a>,
    ) -> BoxFuture<'a, Result<Value, Status>>;
}

/// What extension API servers serve.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Each resource once, in the version of its group that is preferred.
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
}

impl ExtensionResource {
    /// Whether a verb is served.
    pub fn has(&self, verb: &str) -> bool {
        self.verbs.iter().any(|served| served == verb)
    }
}

/// A request about objects of a resource; `namespace` is `""` for those of the cluster and for all namespaces.
#[derive(Clone, Copy, Debug)]
pub enum ExtensionRequest<'a> {
    /// A first page of the metadata of objects.
    List { namespace: &'a str },
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

    fn ask<'a>(
        &'a self,
        _: &'a User,
        _: &'a ExtensionResource,
        _: ExtensionRequest<'a>,
    ) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async { Err(Status::no_such_path()) })
    }
}

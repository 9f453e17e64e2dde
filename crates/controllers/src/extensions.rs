//! Discovery of extension API servers: asks each server what it serves when its API service
//! changes, and every minute, because nothing reports other changes (upstream: the aggregator's
//! discovery manager).

mod followers;
mod servers;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pintle_meta::Status;
use pintle_registry::Resource;
use pintle_value::Value;

use crate::reconcile::{Progress, Reconciler, Source, itself, work};
use crate::{Environment, until};
pub(crate) use followers::{Followers, ObjectUpdate};
pub(crate) use servers::NoExtensionServers;
pub use servers::{ExtensionRequest, ExtensionResource, ExtensionServers, Served};

/// How long a discovery result is used, and the longest pause before a failed discovery is retried.
const REFRESH: Duration = Duration::from_secs(60);

/// Discovers the resources of extension API servers, and stores the results.
pub trait Discoverer: Send + Sync {
    /// Asks the server of an API service; removes the results of a deleted one. Returns whether the
    /// server has to be asked again, or why it did not answer. It takes a few seconds at most.
    fn discover<'a>(
        &'a self,
        name: &'a str,
        api_service: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<bool, String>>;
}

/// Keeps discovery results up to date until shutdown.
pub async fn run(
    environment: Environment,
    discoverer: Arc<dyn Discoverer>,
    shutdown: impl Future<Output = ()>,
) {
    let api_services = environment.resource("apiregistration.k8s.io", "v1", "apiservices");
    let Some(api_services) = api_services else { return };
    let extensions =
        Extensions { environment: &environment, discoverer: &*discoverer, api_services };
    until(shutdown, work(&environment, &extensions)).await;
}

/// Discovers the server of one API service.
struct Extensions<'e> {
    environment: &'e Environment,
    discoverer: &'e dyn Discoverer,
    api_services: Arc<Resource>,
}

impl Reconciler for Extensions<'_> {
    fn purpose(&self) -> &'static str {
        "find out what an extension API server serves"
    }

    fn queue(&self) -> &'static str {
        "discovery-manager"
    }

    fn sources(&self) -> Vec<Source> {
        vec![Source::new(&self.api_services, itself)]
    }

    fn delay_max(&self) -> Duration {
        REFRESH
    }

    fn reconcile<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Progress, Status>> {
        Box::pin(async move {
            let registry = &self.environment.registry;
            let stored = registry.peek(&self.api_services, "", name);
            let tree = stored.map(|stored| self.api_services.tree(&stored)).transpose()?;
            match self.discoverer.discover(name, tree.as_ref()).await {
                Ok(true) => Ok(Progress::After(REFRESH)),
                Ok(false) => Ok(Progress::Done),
                Err(why) => {
                    tracing::debug!(
                        name,
                        why,
                        "an extension API server did not answer a discovery request"
                    );
                    Ok(Progress::Waiting)
                }
            }
        })
    }
}
